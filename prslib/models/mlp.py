"""A small fully connected network for Imbal-MNISTseq."""

import math

from torch import Tensor, nn


class MLP(nn.Module):
    """Two hidden layers of 64 and one linear head, ReLU (Appendix, "Single-labeled ...").

    The paper says "a 2 layer fully connected network"; the widths are the released code's.

    Parameters
    ----------
    image_shape : tuple of int
        Height, width and channels of an image, in pixels.
    num_classes : int
        Outputs of the head.
    """

    def __init__(self, image_shape: tuple[int, int, int], num_classes: int):
        super().__init__()
        self.stages = nn.Sequential(
            nn.Sequential(nn.Flatten(), nn.Linear(math.prod(image_shape), 64), nn.ReLU()),
            nn.Sequential(nn.Linear(64, 64), nn.ReLU()),
            nn.Linear(64, num_classes),
        )

    @property
    def head(self) -> nn.Linear:
        """The linear layer that gives the logits, the last of ``stages``."""
        return self.stages[-1]

    def features(self, images: Tensor) -> Tensor:
        """Return what the head sees.

        Parameters
        ----------
        images : Tensor
            Float, (B, channels, H, W).

        Returns
        -------
        Tensor
            Float, (B, 64).
        """
        return self.stages[:-1](images)

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits (B, num_classes) of images (B, channels, H, W)."""
        return self.stages(images)
