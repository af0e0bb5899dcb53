"""The networks, by name."""

import torch
from torch import nn

from prslib.models.convnet import ConvNet
from prslib.models.mlp import MLP
from prslib.models.resnet18 import ResNet18

MODELS: dict[str, type[nn.Module]] = {
    "convnet": ConvNet,
    "mlp": MLP,
    "resnet18": ResNet18,
}


def make_model(name: str, image_shape: tuple[int, int, int], num_classes: int, seed) -> nn.Module:
    """Build a freshly initialised network (Appendix, "Base Architectures").

    Parameters
    ----------
    name : str
        A key of `MODELS`.
    image_shape : tuple of int
        Height, width and channels of an image, in pixels.
    num_classes : int
        Outputs of the one head that all tasks share.
    seed : int or numpy.random.SeedSequence
        Where the initial weights come from; torch's global generator is left as it was.

    Returns
    -------
    torch.nn.Module
        Maps float images (B, channels, H, W) to logits (B, num_classes); its method
        ``features`` gives what the head sees. Where ``stages`` is there, a Sequential whose last
        member is the head, its lower part can be frozen (`split`).

    Raises
    ------
    ValueError
        If the name is unknown.

    Examples
    --------
    >>> make_model("convnet", (32, 32, 3), num_classes=70, seed=0)(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 70])
    """
    if name not in MODELS:
        raise ValueError(f"unknown model {name!r}; known models: {', '.join(sorted(MODELS))}")
    if not isinstance(seed, int):
        seed = int(seed.generate_state(1, dtype="uint64")[0] >> 1)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return MODELS[name](image_shape, num_classes)


def split(model: nn.Module, frozen_stages: int) -> tuple[nn.Module, nn.Module]:
    """Cut a network into a lower part that stays as it is and an upper one that learns.

    Parameters
    ----------
    model : torch.nn.Module
        The network; its ``stages`` are needed where any are frozen.
    frozen_stages : int
        How many of its stages are frozen, counted from the image.

    Returns
    -------
    lower : torch.nn.Module
        Frozen: without gradients, batch norm on its running statistics. Gives back its input where
        nothing is frozen.
    upper : torch.nn.Module
        Takes what ``lower`` gives and returns logits.

    Raises
    ------
    ValueError
        If the network has no stages to freeze, or not so many.

    Examples
    --------
    >>> lower, upper = split(make_model("convnet", (32, 32, 3), 70, seed=0), frozen_stages=1)
    >>> lower(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 32, 16, 16])
    """
    if frozen_stages == 0:
        return nn.Identity(), model
    stages = getattr(model, "stages", ())
    if not 0 < frozen_stages < len(stages):
        raise ValueError(
            f"frozen_stages: expected 0 to {max(len(stages) - 1, 0)}, as {type(model).__name__} "
            f"has {len(stages)} stages, got {frozen_stages}; the last stage must learn"
        )
    return stages[:frozen_stages].eval().requires_grad_(False), stages[frozen_stages:]
