"""The kernel engine: rows -> kernel values at landmarks -> sums -> coefficients, on CPU or GPU.

`kernels` has the formulas, `nystroem` landmarks and sums, `ellipsoid` and `trees` other terms of a
score, `loops` what is compiled and runs in threads, `gpu` and `tiles` sums on a GPU.
"""
