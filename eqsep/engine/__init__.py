"""The kernel engine: rows -> kernel values at landmarks -> sums -> coefficients, on CPU or GPU.

| module | what it knows |
|---|---|
| `kernels` | the formulas k(x, c), for NumPy and torch alike |
| `compiled` | Manhattan distances and weighted sums by compiled loops; the threads rows go to |
| `machine_code` | what is compiled, called, and on disk for the next process, without Numba |
| `emission` | loops to machine code, by Numba |
| `code_cache` | on disk, too: loops that need Numba in every process |
| `distances` | squared distances by one matrix product, at any scale |
| `nystroem` | landmarks, kernel values of NumPy rows at them, sums that add up and are solved |
| `tensors` | the same for tensors, and for rows whose landmarks are on a device |
| `gpu`, `tiles` | single precision on a GPU, summed exactly (torch, Triton) |
| `parameters` | what a kernel separator can be fitted with, and merged |
"""
