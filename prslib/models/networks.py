"""Build the plain networks and the ResNets, as stages that end with a head."""

import math
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pkgutil import resolve_name
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from prslib.checks import expected, naming_extra, one_of
from prslib.models import MODELS
from prslib.models.weights import check_weights, load_weights, weights_for_seed

IMAGENET_MEAN = (0.485, 0.456, 0.406)  # of images in [0, 1]
IMAGENET_STD = (0.229, 0.224, 0.225)


class Staged(nn.Module):
    """Network of stages, the last of which is the head (Appendix, "Base Architectures").

    Parameters
    ----------
    *stages : Module
        Modules that are applied in this order. A method may freeze the first stages.

    Examples
    --------
    >>> network = Staged(nn.Linear(8, 4), nn.Linear(4, 2))
    >>> network.features(torch.zeros(1, 8)).shape, network(torch.zeros(1, 8)).shape
    (torch.Size([1, 4]), torch.Size([1, 2]))
    """

    def __init__(self, *stages: nn.Module):
        super().__init__()
        self.stages = nn.Sequential(*stages)

    @property
    def head(self) -> Any:
        """Last stage, which is a linear layer in the plain networks."""
        return self.stages[-1]

    def features(self, inputs: Tensor) -> Tensor:
        """Return the input of the head.

        Parameters
        ----------
        inputs : tensor of float of shape (B, channels, H, W) or (B, D)
            Images in [0, 1], or features.

        Returns
        -------
        tensor of float of shape (B, width)
            Output of the last stage before the head.
        """
        return self.stages[:-1](inputs)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return logits (B, C) of images in [0, 1], (B, channels, H, W), or features (B, D)."""
        return self.stages(inputs)

    def split(self, frozen_stages: int) -> tuple[nn.Module, nn.Module]:
        """Return the frozen stages and the trained ones."""
        if frozen_stages == 0:
            return nn.Identity(), self
        return self.stages[:frozen_stages], self.stages[frozen_stages:]


# stages from (B, channels, H, W) to (B, width, h, w); pooling to (B, width); the width
Layers = tuple[list[nn.Module], nn.Module, int]


def channels_of(image_shape: tuple) -> int:
    """Return the number of channels in an image's shape: height, width, channels."""
    if len(image_shape) != 3:
        what = "image_shape with height, width and channels"
        raise ValueError(expected(what, image_shape, "mlp and head accept others"))
    return image_shape[2]


def mlp(image_shape: tuple, num_classes: int, widths: tuple = (64, 64)) -> Staged:
    """Return hidden layers with ReLU and a linear head ("Single-labeled ...")."""
    # The paper says "a 2 layer fully connected network"; the widths are the released
    # code's.
    sizes = [math.prod(image_shape), *widths]
    hidden = [nn.Sequential(nn.Linear(*pair), nn.ReLU()) for pair in pairwise(sizes)]
    hidden[0].insert(0, nn.Flatten())
    return Staged(*hidden, nn.Linear(sizes[-1], num_classes))


# on features; `studies/head.py` compares step sizes
head = partial(mlp, widths=(256,))


def convnet(stages: list, pool: nn.Sequential, width: int, num_classes: int) -> Staged:
    """Return a small backbone with a linear head, in place of ResNet-101."""
    # It learns in one pass over a few thousand small images. Max-pooling over the whole
    # map makes the scores independent of a digit's position in a scene.
    *lower, last = stages
    pooled = nn.Sequential(*last, *pool)
    return Staged(*lower, pooled, nn.Linear(width, num_classes))


def convnet_backbone(image_shape: tuple[int, int, int], weights: str) -> Layers:
    """Return three one-convolution blocks; the map is an eighth as wide as the image."""
    first = nn.Conv2d(channels_of(image_shape), 16, kernel_size=5, stride=2, padding=2)
    second = nn.Conv2d(16, 32, kernel_size=3, padding=1)
    third = nn.Conv2d(32, 128, kernel_size=3, padding=1)
    blocks = [_block(first, halved=True), _block(second), _block(third, halved=True)]
    load_weights(Staged(*blocks), "convnet", weights, head="stages.3.")
    return blocks, nn.Sequential(nn.AdaptiveMaxPool2d(1), nn.Flatten()), 128


def _block(convolution: nn.Conv2d, halved: bool = False) -> nn.Sequential:
    # pooled first, so that batch norm and ReLU process a quarter of the values
    pool = [nn.MaxPool2d(2, ceil_mode=True)] if halved else []
    normalise = nn.BatchNorm2d(convolution.out_channels)
    return nn.Sequential(convolution, *pool, normalise, nn.ReLU(inplace=True))


def resnet18(image_shape: tuple, num_classes: int, width: int = 128) -> Staged:
    """Return four stages of two blocks behind a 3x3 stem ("Single-labeled ...")."""
    # The paper says ResNet18. The stem without max-pool and the first stage's width are
    # the released code's. Torchvision's width is fixed at 64, so its blocks are put
    # together here.
    first = nn.Conv2d(
        channels_of(image_shape), width, kernel_size=3, padding=1, bias=False
    )
    stem = nn.Sequential(first, nn.BatchNorm2d(width), nn.ReLU())
    lower = _two_blocks(width, width, 1)
    *upper, last = (_two_blocks(n * width, 2 * n * width, 2) for n in (1, 2, 4))
    pooled = nn.Sequential(*last, nn.AdaptiveAvgPool2d(1), nn.Flatten())
    return Staged(stem, lower, *upper, pooled, nn.Linear(8 * width, num_classes))


def _two_blocks(before: int, after: int, stride: int) -> nn.Sequential:
    with naming_extra("training"):
        from torchvision.models.resnet import BasicBlock
    first = BasicBlock(before, after, stride)
    if before != after:
        shortcut = nn.Conv2d(before, after, kernel_size=1, stride=stride, bias=False)
        first.downsample = nn.Sequential(shortcut, nn.BatchNorm2d(after))
    return nn.Sequential(first, BasicBlock(after, after))


class Normalise(nn.Module):
    """Normalise images in [0, 1], (B, 3, H, W), by ImageNet's mean and deviation."""

    mean: Tensor
    std: Tensor

    # torchvision's module would wait for a GPU, to check that no deviation is 0
    def __init__(self):
        super().__init__()
        for name, values in (("mean", IMAGENET_MEAN), ("std", IMAGENET_STD)):
            row = torch.tensor(values).view(-1, 1, 1)
            self.register_buffer(name, row, persistent=False)

    def forward(self, images: Tensor) -> Tensor:
        """Return images of the same shape."""
        return (images - self.mean) / self.std


def resnet_backbone(
    image_shape: tuple[int, int, int], weights: str, name: str
) -> Layers:
    """Return stem and blocks of a torchvision ResNet; the map is 1/32 as wide as the image."""
    channels = channels_of(image_shape)
    if channels != 3:
        what = f"images with 3 channels for {name}"
        raise ValueError(expected(what, channels, "choose another model"))
    with naming_extra("training"):
        from torchvision.models import get_model
    net: Any = get_model(name, weights=None)
    load_weights(net, name, weights)
    stem = nn.Sequential(Normalise(), net.conv1, net.bn1, net.relu, net.maxpool)
    stages = [stem, net.layer1, net.layer2, net.layer3, net.layer4]
    pool = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())
    return stages, pool, net.fc.in_features


resnet101_backbone = partial(resnet_backbone, name="resnet101")


def resnet(stages: list, pool: nn.Module, width: int, num_classes: int) -> Staged:
    """Return a ResNet for photographs, such as the paper's (section "Base Models")."""
    # the head has random initial weights
    return Staged(*stages, pool, nn.Linear(width, num_classes))


def make_model(
    name: str,
    image_shape: tuple[int, ...],
    num_classes: int,
    seed: int | np.random.SeedSequence,
    weights: str | None = None,
) -> Staged:
    """Build a network before its first step (Appendix, "Base Architectures").

    Parameters
    ----------
    name : str
        A key of `MODELS`.
    image_shape : tuple of int
        Shape of an input: height, width and channels of an image, or (D,) for features.
    num_classes : int
        Number of outputs of the head, which all tasks share.
    seed : int or numpy.random.SeedSequence
        Seed of the random weights; torch's global generator is not changed.
    weights : str, optional
        The network's initial weights: "none" for random weights, one of its
        `Architecture.published_weights`, or a file with its state dict. The default is
        its `Architecture.default_weights`. Networks without published weights ignore
        this argument.

    Returns
    -------
    Staged
        Maps float images in [0, 1], (B, channels, H, W), to logits (B, num_classes).
        Its method ``features`` returns the input of the head. Its ``stages`` are a
        Sequential that ends with the head.

    Raises
    ------
    ValueError
        If the name is unknown, the shape does not fit, or a file is not a state dict.
    RuntimeError
        If the weights belong to another network or another number of channels.
    FileNotFoundError
        If the weights are missing and cannot be downloaded.

    Examples
    --------
    >>> model = make_model("convnet", (32, 32, 3), num_classes=70, seed=0)
    >>> model(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 70])
    """
    row = MODELS[one_of("model", name, MODELS)]
    if isinstance(seed, np.random.SeedSequence):
        seed = int(seed.generate_state(1, dtype="uint64")[0] >> 1)
    if row.published_weights:
        weights = row.default_weights if weights is None else weights
        weights = weights_for_seed(weights, seed)
        check_weights(name, weights, row.published_weights)
    inputs = [tuple(image_shape)]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if row.backbone:
            inputs = _resolve(row.backbone)(tuple(image_shape), weights)
        network = _resolve(row.made_by)(*inputs, num_classes)
    return network


def _resolve(maker: str | Callable) -> Callable:
    if isinstance(maker, str):
        return resolve_name(f"prslib.models.{maker}")
    return maker
