"""What the networks of the report share: stages, of which the last is the one head."""

import math
from functools import partial
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from prslib.models import MODELS
from prslib.models.weights import NONE, check_weights, load_weights


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

        `prslib.models.networks.split` freezes it.

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
            training lowers (`prslib.training.learner.Learner.objective`).
        """
        if frozen_stages == 0:
            return nn.Identity(), self
        return self.stages[:frozen_stages], self.stages[frozen_stages:]


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


HEAD = "stages.3."  # of a state dict: what does not come from learned weights


class ConvNet(Staged):
    """Three convolutions, global max-pool, one linear head: 100 online steps a second on a core.

    It stands where the paper has ResNet-101 (section "Base Models"): trained in one pass over a few
    thousand small images, from random weights or from learned ones. Max-pooling over the whole
    map makes the scores independent of where in a scene a digit stands. ``stages`` holds three
    blocks, one a convolution, and the head: where a method freezes the network's lower part, it
    cuts there.

    Parameters
    ----------
    image_shape : tuple of int
        Height, width and channels of an image, in pixels.
    num_classes : int
        Outputs of the head, which is random whatever the weights.
    weights : str
        As for `prslib.models.weights.load_weights`; what `prslib.report.pretraining` can give
        has a name.

    Raises
    ------
    ValueError
        If the weights are another network's, or of images with other channels.
    """

    def __init__(self, image_shape: tuple[int, int, int], num_classes: int, weights: str = NONE):
        (*lower, last), pool, width = convnet_backbone(image_shape, weights)
        super().__init__(*lower, nn.Sequential(*last, *pool), nn.Linear(width, num_classes))


def convnet_backbone(image_shape: tuple[int, int, int], weights: str = NONE) -> Backbone:
    """Return three blocks, one a convolution, from an image to 128 maps of an eighth its width.

    Parameters
    ----------
    image_shape : tuple of int
        Height, width and channels of an image, in pixels.
    weights : str
        As for `ConvNet`.

    Returns
    -------
    Backbone
        Freshly initialised, or with the weights of a `ConvNet`.

    Raises
    ------
    ValueError
        If the weights are another network's, or of images with other channels.

    Notes
    -----
    A convolution is max-pooled before it is normalised, so that batch norm and ReLU work on a
    quarter of the places, and the next convolution, with stride 1, does too.
    """
    blocks = [
        _block(nn.Conv2d(image_shape[2], 16, kernel_size=5, stride=2, padding=2), halved=True),
        _block(nn.Conv2d(16, 32, kernel_size=3, padding=1)),
        _block(nn.Conv2d(32, 128, kernel_size=3, padding=1), halved=True),
    ]
    load_weights(Staged(*blocks), "convnet", weights, HEAD)
    return Backbone(blocks, nn.Sequential(nn.AdaptiveMaxPool2d(1), nn.Flatten()), 128)


def _block(convolution: nn.Conv2d, halved: bool = False) -> nn.Sequential:
    pool = [nn.MaxPool2d(2, ceil_mode=True)] if halved else []
    normalise = nn.BatchNorm2d(convolution.out_channels)
    return nn.Sequential(convolution, *pool, normalise, nn.ReLU(inplace=True))


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


IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of images in [0, 1]


class Normalise(nn.Module):
    """Shift and scale the channels of an image as the pretrained weights expect it.

    Parameters
    ----------
    mean, std : tuple of float
        Of every channel, for images in [0, 1].

    Examples
    --------
    >>> Normalise((0.5,), (0.25,))(torch.ones(1, 1, 1, 1)).item()
    2.0
    """

    def __init__(self, mean: tuple[float, ...], std: tuple[float, ...]):
        super().__init__()
        self.register_buffer("mean", torch.tensor(mean)[:, None, None], persistent=False)
        self.register_buffer("std", torch.tensor(std)[:, None, None], persistent=False)

    def forward(self, images: Tensor) -> Tensor:
        """Return (B, channels, H, W) of the same shape."""
        return (images - self.mean) / self.std


class TorchvisionResNet(Staged):
    """A ResNet for photographs: the paper's base model is ResNet-101 (section "Base Models").

    Seven stages: the stem with the normalisation of ImageNet before it, the four residual blocks
    (torchvision's ``layer1`` to ``layer4``), global average pool, one linear head. The head is new
    and random, whatever the weights.

    Parameters
    ----------
    image_shape : tuple of int
        Height, width and channels of an image, in pixels; 3 channels.
    num_classes : int
        Outputs of the head.
    name : str
        Torchvision's name of the network, "resnet101".
    weights : str
        As for `prslib.models.weights.load_weights`.
    """

    def __init__(
        self, image_shape: tuple[int, int, int], num_classes: int, name: str, weights: str
    ):
        stages, pool, width = resnet_backbone(image_shape, name, weights)
        super().__init__(*stages, pool, nn.Linear(width, num_classes))


def resnet_backbone(image_shape: tuple[int, int, int], name: str, weights: str) -> Backbone:
    """Return stem and residual blocks of a torchvision ResNet; He et al. 2016.

    Parameters
    ----------
    image_shape, name, weights
        As for `TorchvisionResNet`.

    Returns
    -------
    Backbone
        Five stages; the map is 1/32 of the image's width.

    Raises
    ------
    ValueError
        If images have not 3 channels, or the weights are another network's.
    ImportError
        If torchvision is not installed.
    FileNotFoundError
        If the weights are not there and cannot be fetched.
    """
    if image_shape[2] != 3:
        raise ValueError(
            f"{name}: expected images with 3 channels, as ImageNet has, got {image_shape[2]}; "
            "choose another model for this data set"
        )
    try:
        from torchvision.models import get_model
    except ImportError as error:
        raise ImportError(
            f"{name} is torchvision's, which is not installed; `pip install torchvision`"
        ) from error
    network = get_model(name, weights=None)
    load_weights(network, name, weights)
    stem = nn.Sequential(
        Normalise(IMAGENET_MEAN, IMAGENET_STD),
        network.conv1,
        network.bn1,
        network.relu,
        network.maxpool,
    )
    blocks = [network.layer1, network.layer2, network.layer3, network.layer4]
    pool = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())
    return Backbone([stem, *blocks], pool, network.fc.in_features)


resnet18 = partial(TorchvisionResNet, name="resnet18")
resnet101 = partial(TorchvisionResNet, name="resnet101")


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
