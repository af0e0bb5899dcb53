"""Two networks with attention and special objectives (Appendix).

Attention Consistency (Guo et al. 2019): class maps must follow flips and scalings of the
image. RNN-Attention (Wang et al. 2017): a recurrent head reads a map region by region.
"""

import math
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from prslib.models.networks import Staged

# of Attention Consistency
LARGER = 9 / 8  # ratio of the two scales, 288 to 256 pixels
FLIP_WEIGHT = 0.6
SCALE_WEIGHT = 0.8

# of RNN-Attention
# number of regions that are scored, K
STEPS = 5
# alpha and beta: limits for the size of a region, relative to the map
LARGEST = 0.5
SMALLEST = 0.1
# weights of the losses
LOCALISATION = 0.1
ANCHOR = 0.01
POSITIVE = 0.1


class AttentionConsistency(Staged):
    """A backbone and a linear head, trained on an image and its flip at two scales."""

    # Images have the smaller scale, which predictions use; the larger is interpolated.

    def __init__(self, stages: list, pool: nn.Module, width: int, num_classes: int):
        linear = nn.Linear(width, num_classes)
        head = nn.Sequential(OrderedDict(pool=pool, linear=linear))
        super().__init__(*stages, head)
        self.weighting = ClassWeighting(num_classes)

    def features(self, inputs: Tensor) -> Tensor:
        """Return the linear layer's input, (B, width), for images (B, channels, H, W)."""
        return self.head.pool(self.stages[:-1](inputs))

    def split(self, frozen_stages: int) -> tuple[nn.Module, nn.Module]:
        """Return `Views` through frozen stages, and the `Consistency` above them."""
        lower = Views(self.stages[:frozen_stages])
        upper = self.stages[frozen_stages:]
        return lower, Consistency(upper, self.weighting, lower.shapes)


class Views(nn.Module):
    """Apply frozen stages to four views of each image; join the outputs in one vector."""

    # Every view passes through the frozen stages, because their output for a flipped
    # image is not the flipped output. ExStream can store and merge the vectors.

    def __init__(self, stages: nn.Sequential):
        super().__init__()
        self.stages = stages
        # of a view at the larger and the smaller scale; `Consistency` shares this list
        self.shapes: list[torch.Size] = []

    def forward(self, images: Tensor) -> Tensor:
        """Return (B, D): per scale, the view of the image, then the view of its flip."""
        larger = [round(size * LARGER) for size in images.shape[2:]]
        large = _resized(images, larger)
        scales = [self.stages(torch.cat([x, x.flip(3)])) for x in (large, images)]
        self.shapes[:] = [scale.shape[1:] for scale in scales]
        views = [view for scale in scales for view in scale.chunk(2)]
        return torch.cat([view.flatten(1) for view in views], 1)


class ClassWeighting(nn.Module):
    """Weight labels by their rarity so far (Li et al. 2015; Guo et al. 2019)."""

    # The original uses the class rates of the whole training set, which are unknown in
    # a stream. Here rates are computed over all samples trained on so far, including
    # replayed ones and the current batch.

    positives: Tensor
    samples: Tensor

    def __init__(self, num_classes: int):
        super().__init__()
        self.register_buffer("positives", torch.zeros(num_classes))
        self.register_buffer("samples", torch.zeros(()))

    @torch.no_grad()
    def forward(self, targets: Tensor) -> Tensor:
        """Add a batch (B, C) to the counts, and return the weights of its labels.

        For a class with the rate r, positives have the weight e^(1 - r), and negatives
        have the weight e^r.
        """
        self.positives += targets.sum(0)
        self.samples += len(targets)
        rate = self.positives / self.samples  # (C,)
        return torch.where(targets > 0, (1 - rate).exp(), rate.exp())


class Consistency(nn.Module):
    """The trained stages, with the objective of Guo et al. 2019."""

    def __init__(self, stages: nn.Sequential, weighting: nn.Module, shapes: list):
        super().__init__()
        self.stages = stages
        self.weighting = weighting
        # of a view at the larger and the smaller scale
        self.shapes = shapes

    def views(self, inputs: Tensor) -> list[Tensor]:
        """Return the views at the larger and the smaller scale, flips last."""
        scales = inputs.split([2 * shape.numel() for shape in self.shapes], 1)
        pairs = zip(self.shapes, scales, strict=True)
        return [torch.cat(scale.chunk(2, 1)).view(-1, *shape) for shape, scale in pairs]

    def objective(self, inputs: Tensor, targets: Tensor, _loss: Callable) -> Tensor:
        """Return the cross-entropy of all views (B, D) plus their disagreement."""
        # As in the authors' code, cross-entropy is summed over classes and averaged
        # over views, and squared differences of maps are averaged.
        head: Any = self.stages[-1]
        maps = [self.stages[:-1](views) for views in self.views(inputs)]
        logits = torch.cat([head(scale) for scale in maps])  # (4B, C)
        # Class maps are sum_k w_ck map_k (Zhou et al. 2016). The weights are detached, so
        # that a loss on the class maps trains only the layers below.
        linear = head.linear.weight.detach()
        large, small = (torch.einsum("ck,bkhw->bchw", linear, scale) for scale in maps)
        weight = self.weighting(targets).repeat(4, 1)
        entropy = F.binary_cross_entropy_with_logits(
            logits, targets.repeat(4, 1), weight, reduction="sum"
        )
        flips = flip_disagreement(large) + flip_disagreement(small)
        scales = F.mse_loss(large, _resized(small, large.shape[2:]))
        return entropy / len(logits) + FLIP_WEIGHT * flips + SCALE_WEIGHT * scales


def _resized(maps: Tensor, size: Sequence[int]) -> Tensor:
    return F.interpolate(maps, size, mode="bilinear", align_corners=False)


def flip_disagreement(maps: Tensor) -> Tensor:
    """Return the mean squared difference of maps and flipped maps of flipped images."""
    upright, flipped = maps.chunk(2)
    return F.mse_loss(upright, flipped.flip(3))


class RNNAttention(Staged):
    """A backbone and a recurrent head that moves over its map (Appendix)."""

    # The paper pretrains the whole network on ImageNet. Here the recurrent head has
    # random initial weights.

    def __init__(self, stages: list, pool: nn.Module, width: int, num_classes: int):
        super().__init__(*stages, RecurrentAttention(pool, width, num_classes))

    def features(self, inputs: Tensor) -> Tensor:
        """Return the states that are scored, joined over steps, (B, K * hidden)."""
        seen, _ = self.head.look(self.stages[:-1](inputs))
        return seen.transpose(0, 1).flatten(1)

    def split(self, frozen_stages: int) -> tuple[nn.Module, nn.Module]:
        """Return the frozen stages, and the trained ones with their objective."""
        return self.stages[:frozen_stages], Localising(*self.stages[frozen_stages:])


class RecurrentAttention(nn.Module):
    """Look at the map, then at K regions of it; keep the best score of every class."""

    # As in Wang et al., an LSTM reads one region after another. Its state scores the
    # region and locates the next one; the whole map, which is read first, locates the
    # first region and is not scored. The paper leaves open how a region is read. Here
    # a region's grid has half as many points per side as the map, because a region
    # covers at most half of a side. The region is pooled like the backbone's map.

    start: Tensor

    def __init__(self, pool: nn.Module, width: int, num_classes: int):
        super().__init__()
        hidden = min(width, 512)
        self.pool = pool
        self.read = nn.Linear(width, hidden)
        self.recurrent = nn.LSTMCell(hidden, hidden)
        self.state = nn.Linear(hidden, hidden)
        self.where = nn.Linear(hidden, 4)
        self.classify = nn.Linear(hidden, num_classes)
        start = torch.cat([torch.full((STEPS, 2), LARGEST), anchors()], 1)  # (K, 4)
        self.register_buffer("start", start, persistent=False)
        # In Wang et al., `where` predicts s and t. Here it predicts differences from a
        # size of 0.5 and the step's anchor, and starts at zero, as is usual for spatial
        # transformers: the first regions satisfy their constraints and together cover
        # the map. With all regions in the middle and torch's default weights, the
        # network learned in one pass over the embedded data only that most labels are
        # absent.
        nn.init.kaiming_normal_(self.state.weight, nonlinearity="relu")
        for weight in (self.recurrent.weight_ih, self.recurrent.weight_hh):
            for gate in weight.detach().chunk(4):
                nn.init.orthogonal_(gate)
        biases = self.state.bias, self.recurrent.bias_ih, self.recurrent.bias_hh
        for zero in (*biases, self.where.weight, self.where.bias):
            nn.init.zeros_(zero)
        # the forget gate starts open
        nn.init.ones_(self.recurrent.bias_ih[hidden : 2 * hidden])
        # a probability of 1 / C for each label
        nn.init.constant_(self.classify.bias, -math.log(max(num_classes - 1, 1)))

    def look(self, maps: Tensor) -> tuple[Tensor, Tensor]:
        """Return the states of the regions, (K, B, hidden), and the regions."""
        memory, all_seen, regions = None, [], []
        for step in range(STEPS + 1):
            if step > 0:
                regions.append(self.start[step - 1] + self.where(all_seen[-1]).float())
            region = cut(maps, regions[-1]) if regions else maps
            memory = self.recurrent(F.relu(self.read(self.pool(region))), memory)
            all_seen.append(F.relu(self.state(memory[0])))
        return torch.stack(all_seen[1:]), torch.stack(regions)

    def scores(self, seen: Tensor) -> Tensor:
        """Return every class's best logit over the regions, (B, C)."""
        return self.classify(seen).amax(0)

    def forward(self, maps: Tensor) -> Tensor:
        """Return logits (B, C) of maps (B, width, h, w)."""
        return self.scores(self.look(maps)[0])


class Localising(nn.Sequential):
    """The trained stages, with the objective of Wang et al. 2017."""

    def objective(self, inputs: Tensor, targets: Tensor, loss: Callable) -> Tensor:
        """Return the loss of the best scores plus a tenth of the localisation loss."""
        # Wang et al. train on the squared distance of softmaxed scores. The recipe's
        # loss replaces it, because predictions in this report are thresholded at a
        # probability of 0.5 per class.
        head: Any = self[-1]
        seen, regions = head.look(self[:-1](inputs))
        penalty = localisation_loss(regions, head.start[:, 2:])
        return loss(head.scores(seen), targets) + LOCALISATION * penalty


def cut(maps: Tensor, regions: Tensor) -> Tensor:
    """Sample a region of every map bilinearly (Jaderberg et al. 2015).

    The result is half as wide and half as high as the map.
    """
    # A region (s_x, s_y, t_x, t_y) is the map, from -1 to 1 on both axes, scaled and
    # then moved.
    width, height, right, down = regions.T[..., None, None]
    # midpoints of equal parts
    counts = [-(-size // 2) for size in maps.shape[2:]]
    rows, columns = (
        torch.linspace(1 / n - 1, 1 - 1 / n, n, device=maps.device) for n in counts
    )
    places = torch.broadcast_tensors(
        width * columns + right, height * rows[:, None] + down
    )
    # only sums and products, which autocast does not round to bfloat16
    grid = torch.stack(places, -1)
    return F.grid_sample(maps, grid, align_corners=False)


def anchors() -> Tensor:
    """Return K anchors (K, 2): the middle of the map, then points on a circle around it."""
    angle = 2 * torch.pi * (torch.arange(STEPS - 1) + 0.5) / (STEPS - 1)
    circle = torch.stack([angle.cos(), angle.sin()], 1) / 2**0.5
    return torch.cat([torch.zeros(1, 2), circle])


def localisation_loss(regions: Tensor, anchors: Tensor) -> Tensor:
    """Return the penalty of regions (K, B, 4) for their sizes and distances to anchors."""
    size, place = regions[..., :2], regions[..., 2:]
    scale = F.relu(size.abs() - LARGEST).square().sum(-1)  # (K, B)
    positive = F.relu(SMALLEST - size).sum(-1)  # no region is mirrored
    anchor = (place - anchors[:, None]).square().sum(-1) / 2
    return (scale + ANCHOR * anchor + POSITIVE * positive).mean()
