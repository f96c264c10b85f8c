"""Networks with a member axis: an ensemble is an axis of the tensors, not a loop (torch).

The layers are ordinary torch modules. With `n_members=None` they have no member axis and go into
anybody's `nn.Sequential`; with a number they map (n, k, d_in) -> (n, k, d_out).
"""

from importlib.util import find_spec

if find_spec("torch") is None:
    raise ImportError("eqsep's networks need PyTorch. Install it with: pip install 'eqsep[nn]'")

from eqsep.networks.layers import BatchNorm, Bump, LeakyReLU, Linear, RadialBasis
from eqsep.networks.network import Hidden, Network, build_separator, member_streams
from eqsep.networks.plan import Data, History, Training
from eqsep.networks.training import train

__all__ = [
    "BatchNorm",
    "Bump",
    "Data",
    "Hidden",
    "History",
    "LeakyReLU",
    "Linear",
    "Network",
    "RadialBasis",
    "Training",
    "build_separator",
    "member_streams",
    "train",
]
