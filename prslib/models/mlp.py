"""A small fully connected network for Imbal-MNISTseq."""

import math

from torch import nn

from prslib.models.staged import Staged


class MLP(Staged):
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
        super().__init__(
            nn.Sequential(nn.Flatten(), nn.Linear(math.prod(image_shape), 64), nn.ReLU()),
            nn.Sequential(nn.Linear(64, 64), nn.ReLU()),
            nn.Linear(64, num_classes),
        )
