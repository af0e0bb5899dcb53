"""A small convolutional network for the embedded data sets."""

from torch import nn

from prslib.models.staged import Backbone, Staged


class ConvNet(Staged):
    """Three convolutions, global max-pool, one linear head: 80 online steps a second on a core.

    It stands where the paper has ResNet-101 (section "Base Models"): trained from scratch, in one
    pass over a few thousand small images. Max-pooling over the whole map makes the scores
    independent of where in a scene a digit stands. ``stages`` holds three blocks, one a
    convolution, and the head: where a method freezes the network's lower part, it cuts there.

    Parameters
    ----------
    image_shape : tuple of int
        Height, width and channels of an image, in pixels.
    num_classes : int
        Outputs of the head.
    """

    def __init__(self, image_shape: tuple[int, int, int], num_classes: int):
        (*lower, last), pool, width = convnet_backbone(image_shape)
        super().__init__(*lower, nn.Sequential(*last, *pool), nn.Linear(width, num_classes))


def convnet_backbone(image_shape: tuple[int, int, int]) -> Backbone:
    """Return three blocks, one a convolution, from an image to 128 maps of a quarter its width.

    Parameters
    ----------
    image_shape : tuple of int
        Height, width and channels of an image, in pixels.

    Returns
    -------
    Backbone
        Freshly initialised.
    """
    blocks = [
        _block(image_shape[2], 24, kernel_size=5, stride=2, padding=2),
        _block(24, 48, kernel_size=3, stride=2, padding=1),
        _block(48, 128, kernel_size=3, padding=1),
    ]
    return Backbone(blocks, nn.Sequential(nn.AdaptiveMaxPool2d(1), nn.Flatten()), 128)


def _block(channels: int, width: int, **convolution: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(channels, width, **convolution), nn.BatchNorm2d(width), nn.ReLU(inplace=True)
    )
