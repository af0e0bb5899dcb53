"""Attention Consistency: class maps must follow a flip and a change of scale (Guo et al. 2019)."""

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from prslib.models.networks import Backbone, Staged, convnet_backbone, resnet_backbone

LARGER = 9 / 8  # 288 to 256 pixels
FLIP_WEIGHT, SCALE_WEIGHT = 0.6, 0.8


class AttentionConsistency(Staged):
    """A backbone with one linear head that trains on four views of an image (Appendix).

    The views are the image and its horizontal flip at two scales; their class activation maps
    must agree. Images come in one size, which is the smaller scale and the one for predictions.
    The larger scale is interpolated.
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
        """Return `Views`, which pass the frozen stages, and the `Consistency` above them."""
        lower = Views(self.stages[:frozen_stages], self.image_shape)
        return lower, Consistency(self.stages[frozen_stages:], self.weighting, lower.shapes)


class MapHead(nn.Module):
    """Pool a map (B, width, h, w) and score it; tell where each score comes from."""

    def __init__(self, pool: nn.Module, linear: nn.Linear):
        super().__init__()
        self.pool = pool
        self.linear = linear

    def forward(self, maps: Tensor) -> Tensor:
        """Return logits (B, C) of maps (B, width, h, w)."""
        return self.linear(self.pool(maps))

    def class_maps(self, maps: Tensor) -> Tensor:
        """Return class activation maps (B, C, h, w), sum_k w_ck map_k (Zhou et al. 2016).

        The weights are detached: a loss on the class maps teaches the layers below alone.
        """
        return torch.einsum("ck,bkhw->bchw", self.linear.weight.detach(), maps)


class Views(nn.Module):
    """Turn images into the four views behind the frozen stages, one flat vector a sample.

    Every view passes the frozen stages, since their output for a flipped image is not the flip of
    their output. One vector a sample is what ExStream can keep and merge.
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

    The original takes the positive rates of the whole training set, which a stream does not know.
    These are the rates over all samples trained on so far, replayed ones and this batch included.
    """

    def __init__(self, num_classes: int):
        super().__init__()
        self.register_buffer("positives", torch.zeros(num_classes))
        self.register_buffer("samples", torch.zeros(()))

    @torch.no_grad()
    def forward(self, targets: Tensor) -> Tensor:
        """Count a batch (B, C); return e^(1 - r) for each present label and e^r for the others."""
        self.positives += targets.sum(0)
        self.samples += len(targets)
        rate = self.positives / self.samples  # (C,)
        return torch.where(targets > 0, (1 - rate).exp(), rate.exp())


class Consistency(nn.Module):
    """The stages that learn, with the objective of Guo et al. 2019."""

    def __init__(self, stages: nn.Sequential, weighting: ClassWeighting, shapes: list[tuple]):
        super().__init__()
        self.stages = stages
        self.weighting = weighting
        self.shapes = [torch.Size(shape) for shape in shapes]  # of a sample's view at either scale

    def views(self, inputs: Tensor) -> list[Tensor]:
        """Return the views at the larger and the smaller scale, flips last, (2B, ...)."""
        sizes = [shape.numel() for shape in self.shapes for _ in range(2)]
        large, large_flip, small, small_flip = inputs.split(sizes, 1)
        pairs = zip(self.shapes, ((large, large_flip), (small, small_flip)), strict=True)
        return [torch.cat(pair).view(-1, *shape) for shape, pair in pairs]

    def objective(self, inputs: Tensor, targets: Tensor, _loss: Callable) -> Tensor:
        """Return the weighted cross-entropy of all views (B, D) plus their disagreement.

        As in the authors' code, cross-entropy is summed over classes and averaged over views, and
        squared differences of maps are averaged. It replaces the recipe's loss.
        """
        head = self.stages[-1]
        maps = [self.stages[:-1](views) for views in self.views(inputs)]
        logits = torch.cat([head(scale) for scale in maps])  # (4B, C)
        large, small = (head.class_maps(scale) for scale in maps)  # (2B, C, h, w)
        weight = self.weighting(targets).repeat(4, 1)
        entropy = F.binary_cross_entropy_with_logits(
            logits, targets.repeat(4, 1), weight, reduction="sum"
        )
        flips = flip_disagreement(large) + flip_disagreement(small)
        scales = scale_disagreement(large, small)
        return entropy / len(logits) + FLIP_WEIGHT * flips + SCALE_WEIGHT * scales


def flip_disagreement(maps: Tensor) -> Tensor:
    """Return the mean squared difference of maps and flipped maps of flipped images, the last B."""
    own, flipped = maps.chunk(2)
    return F.mse_loss(own, flipped.flip(3))


def scale_disagreement(large: Tensor, small: Tensor) -> Tensor:
    """Return the mean squared difference of two scales' maps; the smaller is resampled."""
    resampled = F.interpolate(small, large.shape[2:], mode="bilinear", align_corners=False)
    return F.mse_loss(large, resampled)


convnet_consistency = partial(AttentionConsistency, backbone=convnet_backbone)
resnet101_consistency = partial(
    AttentionConsistency, backbone=partial(resnet_backbone, name="resnet101")
)
