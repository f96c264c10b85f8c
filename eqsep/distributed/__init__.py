"""Fits and scores by many processes and machines, on Ray; needs the extra `eqsep[ray]`.

A fit takes the steps of one process (`eqsep.detector.learning`) unit by unit and adds up what they
give: first a summary, which gives the plan, then the evidence under it.
"""

from eqsep.distributed.fitting import fit
from eqsep.distributed.scoring import score

__all__ = ["fit", "score"]
