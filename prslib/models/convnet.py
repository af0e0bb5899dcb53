"""A small convolutional network for the embedded data sets."""

from torch import nn

from prslib.models.pretrained import load_weights
from prslib.models.staged import Backbone, Staged
from prslib.models.weights import NONE

HEAD = "stages.3."  # of a state dict: what does not come from learned weights


class ConvNet(Staged):
    """Three convolutions, global max-pool, one linear head: 100 online steps a second on a core.

    It stands where the paper has ResNet-101 (section "Base Models"): trained in one pass over a few
    thousand small images, from random weights or from learned ones. Max-pooling over the whole
    map makes the scores independent of where in a scene a digit stands. ``stages`` holds three
    blocks, one a convolution, and the head: where a method freezes the network's lower part, it
    cuts there.

    Parameters
    ----------
    image_shape : tuple of int
        Height, width and channels of an image, in pixels.
    num_classes : int
        Outputs of the head, which is random whatever the weights.
    weights : str
        As for `prslib.models.pretrained.load_weights`; what `prslib.pretraining` can give
        has a name.

    Raises
    ------
    ValueError
        If the weights are another network's, or of images with other channels.
    """

    def __init__(self, image_shape: tuple[int, int, int], num_classes: int, weights: str = NONE):
        (*lower, last), pool, width = convnet_backbone(image_shape, weights)
        super().__init__(*lower, nn.Sequential(*last, *pool), nn.Linear(width, num_classes))


def convnet_backbone(image_shape: tuple[int, int, int], weights: str = NONE) -> Backbone:
    """Return three blocks, one a convolution, from an image to 128 maps of an eighth its width.

    Parameters
    ----------
    image_shape : tuple of int
        Height, width and channels of an image, in pixels.
    weights : str
        As for `ConvNet`.

    Returns
    -------
    Backbone
        Freshly initialised, or with the weights of a `ConvNet`.

    Raises
    ------
    ValueError
        If the weights are another network's, or of images with other channels.

    Notes
    -----
    A convolution is max-pooled before it is normalised, so that batch norm and ReLU work on a
    quarter of the places, and the next convolution, with stride 1, does too.
    """
    blocks = [
        _block(nn.Conv2d(image_shape[2], 16, kernel_size=5, stride=2, padding=2), halved=True),
        _block(nn.Conv2d(16, 32, kernel_size=3, padding=1)),
        _block(nn.Conv2d(32, 128, kernel_size=3, padding=1), halved=True),
    ]
    load_weights(Staged(*blocks), "convnet", weights, HEAD)
    return Backbone(blocks, nn.Sequential(nn.AdaptiveMaxPool2d(1), nn.Flatten()), 128)


def _block(convolution: nn.Conv2d, halved: bool = False) -> nn.Sequential:
    pool = [nn.MaxPool2d(2, ceil_mode=True)] if halved else []
    normalise = nn.BatchNorm2d(convolution.out_channels)
    return nn.Sequential(convolution, *pool, normalise, nn.ReLU(inplace=True))
