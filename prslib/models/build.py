"""A network by its name, and cut in two where its lower part is to stay as it is."""

import torch
from torch import nn

from prslib.models import MODELS
from prslib.models.staged import Staged
from prslib.models.weights import check_weights


def make_model(
    name: str,
    image_shape: tuple[int, int, int],
    num_classes: int,
    seed,
    weights: str | None = None,
) -> nn.Module:
    """Build a network before its first step (Appendix, "Base Architectures").

    Parameters
    ----------
    name : str
        A key of `MODELS`.
    image_shape : tuple of int
        Height, width and channels of an image, in pixels.
    num_classes : int
        Outputs of the one head that all tasks share.
    seed : int or numpy.random.SeedSequence
        Where random weights come from; torch's global generator is left as it was.
    weights : str, optional
        What the network begins with where it can have learned before: "none", a name of its
        `Architecture.published_weights`, or a file that holds its state dict; by default its
        `Architecture.default_weights`. Networks without such names do not look at it.

    Returns
    -------
    torch.nn.Module
        Maps float images (B, channels, H, W) to logits (B, num_classes); its method
        ``features`` gives what the head sees. Its ``stages``, a Sequential whose last member is
        the head, can be frozen from below (`split`).

    Raises
    ------
    ValueError
        If the name is unknown, or the weights are another network's.
    FileNotFoundError
        If the weights are not there and cannot be fetched.

    Examples
    --------
    >>> make_model("convnet", (32, 32, 3), num_classes=70, seed=0)(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 70])
    """
    if name not in MODELS:
        raise ValueError(f"unknown model {name!r}; known models: {', '.join(sorted(MODELS))}")
    if not isinstance(seed, int):
        seed = int(seed.generate_state(1, dtype="uint64")[0] >> 1)
    row, options = MODELS[name], {}
    if row.published_weights:
        options["weights"] = row.default_weights if weights is None else weights
        check_weights(name, options["weights"], row.published_weights)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return row.factory(image_shape, num_classes, **options)


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
        Frozen: without gradients, batch norm on its running statistics. A plain network's gives
        back its input where nothing is frozen.
    upper : torch.nn.Module
        Takes what ``lower`` gives. It returns logits, or has an ``objective`` of its own.

    Raises
    ------
    ValueError
        If the network has no stages to freeze, or not so many.

    Examples
    --------
    >>> lower, upper = split(make_model("convnet", (32, 32, 3), 70, seed=0), frozen_stages=1)
    >>> lower(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 16, 8, 8])
    """
    stages = model.stages if isinstance(model, Staged) else ()
    if frozen_stages and not 0 < frozen_stages < len(stages):
        raise ValueError(
            f"frozen_stages: expected 0 to {max(len(stages) - 1, 0)}, as {type(model).__name__} "
            f"has {len(stages)} stages, got {frozen_stages}; the last stage must learn"
        )
    if not stages:
        return nn.Identity(), model
    lower, upper = model.split(frozen_stages)
    return lower.eval().requires_grad_(False), upper
