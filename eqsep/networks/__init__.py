"""Networks with a member axis: an ensemble is an axis of the tensors (torch).

The layers are ordinary torch modules. With `n_members=None`, the default, they map
(n, d_in) -> (n, d_out); with `n_members=k` they map (n, k, d_in) -> (n, k, d_out), or (n, 1, d_in)
where all members share their input.
"""

from eqsep.errors import MissingExtraError

try:
    import torch  # noqa: F401  all modules below need it: here it is missed first
except ModuleNotFoundError as error:
    message = "eqsep's networks need PyTorch. Install it with: pip install 'eqsep[nn]'"
    raise MissingExtraError(message) from error

from eqsep.networks.layers import (
    Activate,
    BatchNorm,
    Bump,
    Distance,
    Hidden,
    LeakyReLULayer,
    Linear,
    Network,
    RadialBasisLayer,
    build_separator,
    member_streams,
)
from eqsep.networks.trainer import train
from eqsep.networks.training import Data, Training, TrainingHistory

__all__ = ["Activate", "BatchNorm", "Bump", "Data", "Distance", "Hidden", "LeakyReLULayer"]
__all__ += ["Linear", "Network", "RadialBasisLayer", "Training", "TrainingHistory"]
__all__ += ["build_separator", "member_streams", "train"]
