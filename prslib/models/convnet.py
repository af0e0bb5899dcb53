"""A small convolutional network for the embedded data sets."""

from torch import nn

from prslib.models.staged import Staged


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
        channels = image_shape[2]
        super().__init__(
            _block(channels, 24, kernel_size=5, stride=2, padding=2),
            _block(24, 48, kernel_size=3, stride=2, padding=1),
            nn.Sequential(
                *_block(48, 128, kernel_size=3, padding=1), nn.AdaptiveMaxPool2d(1), nn.Flatten()
            ),
            nn.Linear(128, num_classes),
        )


def _block(channels: int, width: int, **convolution: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(channels, width, **convolution), nn.BatchNorm2d(width), nn.ReLU()
    )
