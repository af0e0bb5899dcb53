"""RNN-Attention: a recurrent head reads one region of a map after another (Wang et al. 2017)."""

import math
from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from prslib.models.networks import Backbone, Staged, convnet_backbone, resnet_backbone

STEPS = 5  # regions that are scored, K
LARGEST, SMALLEST = 0.5, 0.1  # alpha and beta: sizes of a region, as parts of the map's
LOCALISATION, ANCHOR, POSITIVE = 0.1, 0.01, 0.1  # weights of the losses
WIDEST = 512  # of the recurrent state


class RNNAttention(Staged):
    """A backbone and a recurrent head that moves over its map (Appendix).

    The paper pretrains the whole network on ImageNet. Here the backbone takes published weights
    where there are any, and the recurrent head begins random.
    """

    def __init__(
        self,
        image_shape: tuple[int, int, int],
        num_classes: int,
        backbone: Callable[..., Backbone],
        **options,
    ):
        stages, pool, width = backbone(image_shape, **options)
        super().__init__(*stages, RecurrentAttention(pool, width, num_classes))

    def features(self, images: Tensor) -> Tensor:
        """Return what is scored, step after step, (B, K * hidden), of float images."""
        seen, _ = self.head.look(self.stages[:-1](images))
        return seen.transpose(0, 1).flatten(1)

    def split(self, frozen_stages: int) -> tuple[nn.Module, nn.Module]:
        """Return the frozen stages, and those above them with their objective."""
        return self.stages[:frozen_stages], Localising(self.stages[frozen_stages:])


class RecurrentAttention(nn.Module):
    """Look at the whole map, then at K regions of it, and keep every class's best score.

    A spatial transformer cuts a region out: the map, from -1 to 1 on both axes, is read at a grid
    scaled by (s_x, s_y) and moved by (t_x, t_y). An LSTM reads one region after another; its state
    scores the region and gives the place of the next. As in Wang et al., the look at the whole map
    places the first region and is not scored.

    The paper leaves open how a region is read. Here it has half as many places a side as the map,
    since it covers at most half of it, and it is pooled as the backbone pools. The state is as wide
    as the map, at most 512.
    """

    def __init__(self, pool: nn.Module, width: int, num_classes: int):
        super().__init__()
        hidden = min(width, WIDEST)
        self.pool = pool
        self.read = nn.Linear(width, hidden)
        self.recurrent = nn.LSTMCell(hidden, hidden)
        self.state = nn.Linear(hidden, hidden)
        self.where = nn.Linear(hidden, 4)
        self.classify = nn.Linear(hidden, num_classes)
        start = torch.cat([torch.full((STEPS, 2), LARGEST), anchors()], 1)  # (K, 4)
        self.register_buffer("start", start, persistent=False)
        self._initialise(hidden, num_classes)

    @torch.no_grad()
    def _initialise(self, hidden: int, num_classes: int) -> None:
        # In Wang et al. `where` gives s and t themselves. Here it gives what is added to a size of
        # 0.5 at the step's anchor, and begins at zero, as a spatial transformer's usually does: the
        # first regions meet their constraints and together cover the map. With all regions in the
        # middle and torch's defaults, one pass over the embedded data taught the network only that
        # most labels are absent.
        nn.init.kaiming_normal_(self.state.weight, nonlinearity="relu")
        self.state.bias.zero_()
        for weight in (self.recurrent.weight_ih, self.recurrent.weight_hh):
            for gate in weight.chunk(4):
                nn.init.orthogonal_(gate)
        self.recurrent.bias_ih.zero_()
        self.recurrent.bias_hh.zero_()
        self.recurrent.bias_ih[hidden : 2 * hidden] = 1  # the forget gate begins open
        self.where.weight.zero_()
        self.where.bias.zero_()
        self.classify.bias.fill_(-math.log(max(num_classes - 1, 1)))  # odds of one label in C

    def look(self, maps: Tensor) -> tuple[Tensor, Tensor]:
        """Return what is seen in the regions, (K, B, hidden), and the regions, (K, B, 4)."""
        memory, all_seen, regions = None, [], []
        for step in range(STEPS + 1):
            if step > 0:
                regions.append(self.start[step - 1] + self.where(all_seen[-1]).float())
            region = cut(maps, regions[-1]) if regions else maps
            memory = self.recurrent(F.relu(self.read(self.pool(region))), memory)
            all_seen.append(F.relu(self.state(memory[0])))
        return torch.stack(all_seen[1:]), torch.stack(regions)

    def scores(self, seen: Tensor) -> Tensor:
        """Return every class's best logit over the regions, (B, C), of what was seen in them."""
        return self.classify(seen).amax(0)

    def forward(self, maps: Tensor) -> Tensor:
        """Return logits (B, C) of maps (B, width, h, w)."""
        return self.scores(self.look(maps)[0])


class Localising(nn.Module):
    """The stages that learn, with the objective of Wang et al. 2017."""

    def __init__(self, stages: nn.Sequential):
        super().__init__()
        self.stages = stages

    def objective(self, inputs: Tensor, targets: Tensor, loss: Callable) -> Tensor:
        """Return the loss of the best scores plus a tenth of the regions' own.

        Wang et al. train on the squared distance of softmaxed scores. Predictions in this report
        are thresholded at a probability of 0.5 a class, so the recipe's loss replaces it.
        """
        head = self.stages[-1]
        seen, regions = head.look(self.stages[:-1](inputs))
        return loss(head.scores(seen), targets) + LOCALISATION * localisation_loss(
            regions, head.start[:, 2:]
        )


def cut(maps: Tensor, regions: Tensor) -> Tensor:
    """Read a region (s_x, s_y, t_x, t_y) of every map, bilinearly; Jaderberg et al. 2015.

    Maps (B, width, h, w) and regions (B, 4) give (B, width, h / 2, w / 2), rounded up; places
    outside of the map read 0.
    """
    width, height, right, down = regions.T[..., None, None]
    rows, columns = (_middles(-(-size // 2), maps.device) for size in maps.shape[2:])
    places = torch.broadcast_tensors(width * columns + right, height * rows[:, None] + down)
    grid = torch.stack(places, -1)  # sums and products only: no autocast rounds them to bfloat16
    return F.grid_sample(maps, grid, align_corners=False)


def _middles(count: int, device: torch.device) -> Tensor:
    """Return the middles of that many equal parts of the way from -1 to 1."""
    return torch.linspace(1 / count - 1, 1 - 1 / count, count, device=device)


def anchors() -> Tensor:
    """Return where the regions are drawn to, (K, 2): the middle, then points of a circle."""
    angle = 2 * torch.pi * (torch.arange(STEPS - 1) + 0.5) / (STEPS - 1)
    circle = torch.stack([angle.cos(), angle.sin()], 1) / 2**0.5
    return torch.cat([torch.zeros(1, 2), circle])


def localisation_loss(regions: Tensor, anchors: Tensor) -> Tensor:
    """Return how far regions (K, B, 4) are from their constraints and anchors (K, 2).

    The mean of: squares of what abs(s) exceeds alpha by, a hundredth of half the squared distance
    from the anchor, and a tenth of what s falls below beta by, which keeps s positive.
    """
    size, place = regions[..., :2], regions[..., 2:]
    scale = F.relu(size.abs() - LARGEST).square().sum(-1)  # (K, B)
    positive = F.relu(SMALLEST - size).sum(-1)
    anchor = (place - anchors[:, None]).square().sum(-1) / 2
    return (scale + ANCHOR * anchor + POSITIVE * positive).mean()


convnet_recurrent = partial(RNNAttention, backbone=convnet_backbone)
resnet101_recurrent = partial(RNNAttention, backbone=partial(resnet_backbone, name="resnet101"))
