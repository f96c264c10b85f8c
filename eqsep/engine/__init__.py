"""The kernel engine: rows -> kernel values at landmarks -> sums -> coefficients, on CPU or GPU.

| module | what it knows |
|---|---|
| `kernels` | the formulas k(x, c), for NumPy and torch alike |
| `manhattan` | distances of rows to landmarks, column by column |
| `nystroem` | landmarks, kernel values at them, sums that add up and are solved |
| `ellipsoid` | how columns move together in normal rows |
| `trees` | trees with leaves that hold sums |
| `keys` | keys of rows, the same for equal ones |
| `loops` | how loops are compiled, sums and exponentials that several share, threads for rows |
| `gpu`, `tiles` | single precision on a GPU, summed exactly (torch, Triton) |
"""
