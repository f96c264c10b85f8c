"""Fits and scores by many processes and machines, on Ray; needs the extra `eqsep[ray]`.

A fit takes the steps of one process (`eqsep.detector.first_fit`): units of rows are summarised, the
summaries merged into one, which gives the plan; then the evidence that each unit gives under it is
added up. Both are a map and a tree of sums by Ray Data, which also repeats what is lost
with a process that dies. The result does not depend on how many processes there are.

| module | what it knows |
|---|---|
| `cluster` | Ray: joined, or started and ended |
| `units` | rows divided: files and parts of them, or blocks of Ray Data |
| `mapping` | what is made of each unit, and added up in a tree; any function of any items |
| `fitting`, `scoring` | a detector fitted; rows scored |
"""

from eqsep.distributed.fitting import fit
from eqsep.distributed.scoring import score

__all__ = ["fit", "score"]
