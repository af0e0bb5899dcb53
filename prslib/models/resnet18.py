"""ResNet-18 for images of 32 pixels, for Imbal-SVHNseq."""

import torch.nn.functional as F
from torch import Tensor, nn

from prslib.models.staged import Staged


class Block(nn.Module):
    """Two 3x3 convolutions and a shortcut (He et al. 2016).

    Parameters
    ----------
    before, after : int
        Channels in and out.
    stride : int
        Of the first convolution.
    """

    def __init__(self, before: int, after: int, stride: int):
        super().__init__()
        self.path = nn.Sequential(
            nn.Conv2d(before, after, kernel_size=3, stride=stride, padding=1, bias=False),
            nn.BatchNorm2d(after),
            nn.ReLU(),
            nn.Conv2d(after, after, kernel_size=3, padding=1, bias=False),
            nn.BatchNorm2d(after),
        )
        self.shortcut = nn.Identity()
        if before != after:
            self.shortcut = nn.Sequential(
                nn.Conv2d(before, after, kernel_size=1, stride=stride, bias=False),
                nn.BatchNorm2d(after),
            )

    def forward(self, images: Tensor) -> Tensor:
        """Return (B, after, H / stride, W / stride) of (B, before, H, W)."""
        return F.relu(self.path(images) + self.shortcut(images))


class ResNet18(Staged):
    """Four stages of two blocks behind a 3x3 stem of stride 1 (Appendix, "Single-labeled ...").

    The paper says ResNet18; the stem without max-pool and the width of 128 channels in the first
    stage, doubled in each of the next, are the released code's. Torchvision's has its width fixed
    at 64, so this one is written out. Nothing is pretrained.

    Parameters
    ----------
    image_shape : tuple of int
        Height, width and channels of an image, in pixels.
    num_classes : int
        Outputs of the head.
    width : int
        Channels of the first stage.
    """

    def __init__(self, image_shape: tuple[int, int, int], num_classes: int, width: int = 128):
        super().__init__(
            nn.Sequential(
                nn.Conv2d(image_shape[2], width, kernel_size=3, padding=1, bias=False),
                nn.BatchNorm2d(width),
                nn.ReLU(),
            ),
            _two_blocks(width, width, 1),
            _two_blocks(width, 2 * width, 2),
            _two_blocks(2 * width, 4 * width, 2),
            nn.Sequential(
                *_two_blocks(4 * width, 8 * width, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten()
            ),
            nn.Linear(8 * width, num_classes),
        )


def _two_blocks(before: int, after: int, stride: int) -> nn.Sequential:
    return nn.Sequential(Block(before, after, stride), Block(after, after, 1))
