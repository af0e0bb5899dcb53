"""Torchvision's ResNets, cut into stages, with the weights that it publishes for them."""

from functools import partial

import torch
from torch import Tensor, nn

from prslib.models.pretrained import load_weights
from prslib.models.staged import Backbone, Staged

IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of images in [0, 1]


class Normalise(nn.Module):
    """Shift and scale the channels of an image as the pretrained weights expect it.

    Parameters
    ----------
    mean, std : tuple of float
        Of every channel, for images in [0, 1].

    Examples
    --------
    >>> Normalise((0.5,), (0.25,))(torch.ones(1, 1, 1, 1)).item()
    2.0
    """

    def __init__(self, mean: tuple[float, ...], std: tuple[float, ...]):
        super().__init__()
        self.register_buffer("mean", torch.tensor(mean)[:, None, None], persistent=False)
        self.register_buffer("std", torch.tensor(std)[:, None, None], persistent=False)

    def forward(self, images: Tensor) -> Tensor:
        """Return (B, channels, H, W) of the same shape."""
        return (images - self.mean) / self.std


class TorchvisionResNet(Staged):
    """A ResNet for photographs: the paper's base model is ResNet-101 (section "Base Models").

    Seven stages: the stem with the normalisation of ImageNet before it, the four residual blocks
    (torchvision's ``layer1`` to ``layer4``), global average pool, one linear head. The head is new
    and random, whatever the weights.

    Parameters
    ----------
    image_shape : tuple of int
        Height, width and channels of an image, in pixels; 3 channels.
    num_classes : int
        Outputs of the head.
    name : str
        Torchvision's name of the network, "resnet101".
    weights : str
        As for `prslib.models.pretrained.load_weights`.
    """

    def __init__(
        self, image_shape: tuple[int, int, int], num_classes: int, name: str, weights: str
    ):
        stages, pool, width = resnet_backbone(image_shape, name, weights)
        super().__init__(*stages, pool, nn.Linear(width, num_classes))


def resnet_backbone(image_shape: tuple[int, int, int], name: str, weights: str) -> Backbone:
    """Return stem and residual blocks of a torchvision ResNet; He et al. 2016.

    Parameters
    ----------
    image_shape, name, weights
        As for `TorchvisionResNet`.

    Returns
    -------
    Backbone
        Five stages; the map is 1/32 of the image's width.

    Raises
    ------
    ValueError
        If images have not 3 channels, or the weights are another network's.
    ImportError
        If torchvision is not installed.
    FileNotFoundError
        If the weights are not there and cannot be fetched.
    """
    if image_shape[2] != 3:
        raise ValueError(
            f"{name}: expected images with 3 channels, as ImageNet has, got {image_shape[2]}; "
            "choose another model for this data set"
        )
    try:
        from torchvision.models import get_model
    except ImportError as error:
        raise ImportError(
            f"{name} is torchvision's, which is not installed; `pip install torchvision`"
        ) from error
    network = get_model(name, weights=None)
    load_weights(network, name, weights)
    stem = nn.Sequential(
        Normalise(IMAGENET_MEAN, IMAGENET_STD),
        network.conv1,
        network.bn1,
        network.relu,
        network.maxpool,
    )
    blocks = [network.layer1, network.layer2, network.layer3, network.layer4]
    pool = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())
    return Backbone([stem, *blocks], pool, network.fc.in_features)


resnet18 = partial(TorchvisionResNet, name="resnet18")
resnet101 = partial(TorchvisionResNet, name="resnet101")
