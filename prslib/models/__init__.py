"""The networks, by name."""

from functools import partial

import torch
from torch import nn

from prslib.models.architecture import Architecture
from prslib.models.attention_consistency import AttentionConsistency
from prslib.models.convnet import ConvNet, convnet_backbone
from prslib.models.mlp import MLP
from prslib.models.resnet18 import ResNet18
from prslib.models.rnn_attention import RNNAttention
from prslib.models.staged import Staged
from prslib.models.torchvision_resnet import TorchvisionResNet, resnet_backbone
from prslib.models.weights import check_weights

_RESNET101 = {"vector_stages": 3, "published_weights": ("IMAGENET1K_V1", "IMAGENET1K_V2")}
_OF_RESNET101 = partial(resnet_backbone, name="resnet101")
_SMALL = {"gpu_share": 1 / 8}
_MULTILABEL = {"objective_for": "multilabel_soft_margin"}
_RESNET, _CONSISTENCY, _RECURRENT = (
    {"stands_for": name} for name in ("ResNet101", "Attention Consistency", "RNN-Attention")
)

MODELS: dict[str, Architecture] = {
    "convnet": Architecture(ConvNet, 4, **_RESNET, **_SMALL),
    "convnet_attention_consistency": Architecture(
        partial(AttentionConsistency, backbone=convnet_backbone),
        4,
        **_MULTILABEL,
        **_CONSISTENCY,
        **_SMALL,
    ),
    "convnet_rnn_attention": Architecture(
        partial(RNNAttention, backbone=convnet_backbone),
        4,
        **_MULTILABEL,
        **_RECURRENT,
        **_SMALL,
    ),
    "mlp": Architecture(MLP, 3, stacks=True, **_SMALL),
    "resnet18": Architecture(ResNet18, 6),
    "resnet18_imagenet": Architecture(
        partial(TorchvisionResNet, name="resnet18"), 7, 3, published_weights=("IMAGENET1K_V1",)
    ),
    "resnet101": Architecture(
        partial(TorchvisionResNet, name="resnet101"), 7, **_RESNET101, **_RESNET
    ),
    "resnet101_attention_consistency": Architecture(
        partial(AttentionConsistency, backbone=_OF_RESNET101),
        6,
        **_RESNET101,
        **_MULTILABEL,
        **_CONSISTENCY,
    ),
    "resnet101_rnn_attention": Architecture(
        partial(RNNAttention, backbone=_OF_RESNET101),
        6,
        **_RESNET101,
        **_MULTILABEL,
        **_RECURRENT,
    ),
}


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
        `Architecture.published_weights`, or a file in torchvision's format; by default the first
        of those names. Networks without such names do not look at it.

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
        return row.make(image_shape, num_classes, **options)


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
    torch.Size([2, 24, 16, 16])
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
