"""Attention Consistency: what a network looks at must follow a flip and a change of scale."""

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from prslib.models.networks import Backbone, Staged, convnet_backbone, resnet_backbone

LARGER = 9 / 8  # 288 to 256 pixels
FLIP_WEIGHT, SCALE_WEIGHT = 0.6, 0.8


class AttentionConsistency(Staged):
    """A plain network that trains on four views of an image (Guo et al. 2019; Appendix).

    In use it is its backbone with one linear head. In training it sees the image and its
    horizontal flip at two scales, and its class activation maps must agree (`Consistency`).

    Parameters
    ----------
    image_shape : tuple of int
        Height, width and channels of an image, in pixels.
    num_classes : int
        Outputs of the head.
    backbone : callable
        Takes ``image_shape`` and the options, returns a `Backbone`.
    **options
        The backbone's, such as ``weights``.

    Notes
    -----
    Images come in one size. It is the smaller scale, 256 pixels for photographs, and the one that
    is used for predictions; the larger, 9/8 of it, is interpolated.
    """

    def __init__(
        self,
        image_shape: tuple[int, int, int],
        num_classes: int,
        backbone: Callable[..., Backbone],
        **options,
    ):
        stages, pool, width = backbone(image_shape, **options)
        super().__init__(*stages, MapHead(pool, nn.Linear(width, num_classes)))
        self.image_shape = image_shape
        self.weighting = ClassWeighting(num_classes)

    def features(self, images: Tensor) -> Tensor:
        """Return what the linear layer sees, (B, width), of images (B, channels, H, W)."""
        return self.head.pool(self.stages[:-1](images))

    def split(self, frozen_stages: int) -> tuple[nn.Module, nn.Module]:
        """Return a lower part that gives all views as one tensor, and the `Consistency` above it.

        Parameters
        ----------
        frozen_stages : int
            How many stages the views have passed, 0 to all but the head.

        Returns
        -------
        lower : torch.nn.Module
            Takes images, (B, channels, H, W), gives (B, D).
        upper : torch.nn.Module
            Takes what ``lower`` gives.
        """
        lower = Views(self.stages[:frozen_stages], self.image_shape)
        return lower, Consistency(self.stages[frozen_stages:], self.weighting, lower.shapes)


class MapHead(nn.Module):
    """Pool a map, score it with one linear layer, and say where each score comes from.

    Parameters
    ----------
    pool : torch.nn.Module
        From the map to one vector, (B, width, h, w) to (B, width).
    linear : torch.nn.Linear
        From that vector to the logits.
    """

    def __init__(self, pool: nn.Module, linear: nn.Linear):
        super().__init__()
        self.pool = pool
        self.linear = linear

    def forward(self, maps: Tensor) -> Tensor:
        """Return logits (B, C) of maps (B, width, h, w)."""
        return self.linear(self.pool(maps))

    def class_maps(self, maps: Tensor) -> Tensor:
        """Return class activation maps: at every place sum_k w_ck map_k (Zhou et al. 2016).

        Parameters
        ----------
        maps : Tensor
            (B, width, h, w).

        Returns
        -------
        Tensor
            (B, C, h, w). The weights are detached: what is asked of the class maps teaches the
            layers below and not this one.
        """
        return torch.einsum("ck,bkhw->bchw", self.linear.weight.detach(), maps)


class Views(nn.Module):
    """Give an image and its flip at two scales, in one flat vector a sample; Guo et al. 2019.

    What is frozen is passed once for every view, as its answer to a flipped image is not the flip
    of its answer. One vector a sample is what a memory of features can keep and merge (ExStream).

    Parameters
    ----------
    stages : torch.nn.Sequential
        The frozen part of the network, empty where all of it learns.
    image_shape : tuple of int
        Height, width and channels of an image, in pixels.
    """

    def __init__(self, stages: nn.Sequential, image_shape: tuple[int, int, int]):
        super().__init__()
        self.stages = stages.eval()
        height, width, channels = image_shape
        self.larger = round(height * LARGER), round(width * LARGER)
        like = next(stages.parameters(), torch.empty(0))
        with torch.no_grad():
            scales = self._scales(like.new_zeros(1, channels, height, width))
        self.shapes = [tuple(scale.shape[1:]) for scale in scales]

    def _scales(self, images: Tensor) -> list[Tensor]:
        """Return the views at the larger and at the image's own scale, flips last, (2B, ...)."""
        large = F.interpolate(images, self.larger, mode="bilinear", align_corners=False)
        return [self.stages(torch.cat([x, x.flip(3)])) for x in (large, images)]

    def forward(self, images: Tensor) -> Tensor:
        """Return (B, D): for both scales the image's view, then its flip's."""
        halves = [half for scale in self._scales(images) for half in scale.chunk(2)]
        return torch.cat([half.flatten(1) for half in halves], 1)


class ClassWeighting(nn.Module):
    """Weigh labels by how rare they are in the stream so far (Li et al. 2015, in Guo et al. 2019).

    Parameters
    ----------
    num_classes : int
        Number of classes C.

    Notes
    -----
    The original takes the positive rates of the whole training set. In a stream they are not
    known: these are the rates over every sample that the network was trained on so far, the
    present batch and all replayed samples included.

    Examples
    --------
    >>> ClassWeighting(2)(torch.tensor([[1.0, 0.0], [1.0, 1.0]]))
    tensor([[1.0000, 1.6487],
            [1.0000, 1.6487]])
    """

    def __init__(self, num_classes: int):
        super().__init__()
        self.register_buffer("positives", torch.zeros(num_classes))
        self.register_buffer("samples", torch.zeros(()))

    @torch.no_grad()
    def forward(self, targets: Tensor) -> Tensor:
        """Count a batch (B, C); return e^(1 - r) where a label is there and e^r where it is not."""
        self.positives += targets.sum(0)
        self.samples += len(targets)
        rate = self.positives / self.samples  # (C,)
        return torch.where(targets > 0, (1 - rate).exp(), rate.exp())


class Consistency(nn.Module):
    """The part of the network that learns, and what it learns from (Guo et al. 2019).

    Parameters
    ----------
    stages : torch.nn.Sequential
        From what is not frozen to the logits; the last is a `MapHead`.
    weighting : ClassWeighting
        Counts the labels.
    shapes : list of tuple of int
        Shape of a sample's view at either scale, as `Views` gives it.
    """

    def __init__(self, stages: nn.Sequential, weighting: ClassWeighting, shapes: list[tuple]):
        super().__init__()
        self.stages = stages
        self.weighting = weighting
        self.shapes = [torch.Size(shape) for shape in shapes]

    def views(self, inputs: Tensor) -> list[Tensor]:
        """Return the views at the larger and the smaller scale, flips last, (2B, ...)."""
        sizes = [shape.numel() for shape in self.shapes for _ in range(2)]
        large, large_flip, small, small_flip = inputs.split(sizes, 1)
        pairs = zip(self.shapes, ((large, large_flip), (small, small_flip)), strict=True)
        return [torch.cat(pair).view(-1, *shape) for shape, pair in pairs]

    def objective(self, inputs: Tensor, targets: Tensor, _loss: Callable) -> Tensor:
        """Return what a step lowers: weighted cross-entropy of all views, and their disagreement.

        Parameters
        ----------
        inputs : Tensor
            As `Views` gives them, (B, D).
        targets : Tensor
            Float multi-hot (B, C).
        _loss : callable
            The recipe's loss, in place of which the weighted cross-entropy stands.

        Returns
        -------
        Tensor
            A scalar. Cross-entropy is summed over classes and averaged over views, as in the
            authors' code; squared differences of maps are averaged.
        """
        head = self.stages[-1]
        maps = [self.stages[:-1](views) for views in self.views(inputs)]
        logits = torch.cat([head(scale) for scale in maps])  # (4B, C)
        large, small = (head.class_maps(scale) for scale in maps)
        weight = self.weighting(targets).repeat(4, 1)
        entropy = F.binary_cross_entropy_with_logits(
            logits, targets.repeat(4, 1), weight, reduction="sum"
        )
        flips = flip_disagreement(large) + flip_disagreement(small)
        scales = scale_disagreement(large, small)
        return entropy / len(logits) + FLIP_WEIGHT * flips + SCALE_WEIGHT * scales


def flip_disagreement(maps: Tensor) -> Tensor:
    """Return the mean squared difference of maps and flipped maps of flipped images.

    Parameters
    ----------
    maps : Tensor
        (2B, C, h, w), those of the flipped images last.

    Returns
    -------
    Tensor
        A scalar, 0 where what is seen in the flipped image is the flip of what is seen.

    Examples
    --------
    >>> left, right = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]])
    >>> flip_disagreement(torch.stack([left, right])[:, None]).item()
    0.0
    """
    own, flipped = maps.chunk(2)
    return F.mse_loss(own, flipped.flip(3))


def scale_disagreement(large: Tensor, small: Tensor) -> Tensor:
    """Return the mean squared difference of two scales' maps, the smaller resampled to the larger.

    Parameters
    ----------
    large, small : Tensor
        (2B, C, h, w) each, of any two sizes.

    Returns
    -------
    Tensor
        A scalar.

    Examples
    --------
    >>> scale_disagreement(torch.ones(2, 1, 3, 3), torch.zeros(2, 1, 2, 2)).item()
    1.0
    """
    resampled = F.interpolate(small, large.shape[2:], mode="bilinear", align_corners=False)
    return F.mse_loss(large, resampled)


convnet_consistency = partial(AttentionConsistency, backbone=convnet_backbone)
resnet101_consistency = partial(
    AttentionConsistency, backbone=partial(resnet_backbone, name="resnet101")
)
