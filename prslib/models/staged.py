"""What the networks of the report share: stages, of which the last is the one head."""

from torch import Tensor, nn


class Staged(nn.Module):
    """Run images through stages one after another (Appendix, "Base Architectures").

    A method that freezes the network's lower part cuts it between two stages.

    Parameters
    ----------
    *stages : torch.nn.Module
        From the image to the logits; the last one is the linear head.
    """

    def __init__(self, *stages: nn.Module):
        super().__init__()
        self.stages = nn.Sequential(*stages)

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
            Float, (B, D).
        """
        return self.stages[:-1](images)

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits (B, num_classes) of images (B, channels, H, W)."""
        return self.stages(images)
