"""The kernel engine: rows -> kernel values at landmarks -> sums -> coefficients, on CPU or GPU.

| module | what it knows |
|---|---|
| `kernels` | the formulas k(x, c) and the distances in them, for NumPy and torch alike |
| `nystroem` | landmarks, kernel values at them, sums that add up and are solved |
| `ellipsoid` | how columns move together in normal rows |
| `trees` | trees with leaves that hold sums |
| `loops` | how loops are compiled, sums and exponentials that several share, threads for rows |
| `gpu`, `tiles` | single precision on a GPU, summed exactly (torch, Triton) |
"""
