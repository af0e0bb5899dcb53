"""What the networks of the report share: stages, of which the last is the one head."""

from typing import NamedTuple

from torch import Tensor, nn


class Backbone(NamedTuple):
    """The part of a network that an architecture builds upon.

    Parameters
    ----------
    stages : list of torch.nn.Module
        From the image to a map, (B, channels, H, W) to (B, width, h, w).
    pool : torch.nn.Module
        From the map to one vector, (B, width, h, w) to (B, width).
    width : int
        Channels of the map.
    """

    stages: list[nn.Module]
    pool: nn.Module
    width: int


class Staged(nn.Module):
    """Run images through stages one after another (Appendix, "Base Architectures").

    A method that freezes the network's lower part cuts it between two stages.

    Parameters
    ----------
    *stages : torch.nn.Module
        From the image to the logits; the last one is the head.
    """

    def __init__(self, *stages: nn.Module):
        super().__init__()
        self.stages = nn.Sequential(*stages)

    @property
    def head(self) -> nn.Module:
        """What gives the logits, the last of ``stages``; a linear layer in the plain networks."""
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
            Float, (B, D).
        """
        return self.stages[:-1](images)

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits (B, num_classes) of images (B, channels, H, W)."""
        return self.stages(images)

    def split(self, frozen_stages: int) -> tuple[nn.Module, nn.Module]:
        """Return a lower part, to be frozen, and an upper one that learns.

        `prslib.models.build.split` freezes it.

        Parameters
        ----------
        frozen_stages : int
            How many stages the lower part holds, 0 to all but the head.

        Returns
        -------
        lower : torch.nn.Module
            Takes images, gives one tensor (B, ...).
        upper : torch.nn.Module
            Takes what ``lower`` gives. Where it has a method ``objective``, that is what a step of
            training lowers (`prslib.learner.Learner.objective`).
        """
        if frozen_stages == 0:
            return nn.Identity(), self
        return self.stages[:frozen_stages], self.stages[frozen_stages:]
