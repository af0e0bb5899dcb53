"""RNN-Attention: a recurrent network looks at one region of the map after another."""

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
    """A backbone and a recurrent head that moves over its map (Wang et al. 2017; Appendix).

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
    The paper pretrains the whole network on ImageNet. Here the backbone has learned weights where
    there are any, and the recurrent head begins at random.
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

    A region is cut out by a spatial transformer: the map is read at a grid of places, scaled by
    (s_x, s_y) and moved by (t_x, t_y), with the map from -1 to 1 on both axes. An LSTM reads one
    region after another; its state scores the region and says where the next one is.

    Parameters
    ----------
    pool : torch.nn.Module
        From a region, (B, width, h, w), to one vector, (B, width).
    width : int
        Channels of the map.
    num_classes : int
        Number of classes C.

    Notes
    -----
    The first look, at the whole map, places the first region and is not scored; Wang et al. do the
    same. The paper leaves open the following. A region is read at half as many places a side as
    the map has, as it is to cover at most half of it, and is pooled as the backbone pools; the
    state is as wide as the map, at most 512.

    Wang et al. let one layer give s and t themselves. Here it gives what is added to a size of 0.5
    at the step's anchor, and its weights begin at zero, as a spatial transformer's usually do: the
    regions begin within their constraints and together cover the map. The recurrent weights begin
    orthogonal with an open forget gate, and the scores at the odds of one label in C. One pass is
    too short to learn these: with all regions in the middle and torch's defaults, the network
    learned in one pass over our embedded data that most labels are absent, and no more.
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
        self.classify.bias.fill_(-math.log(max(num_classes - 1, 1)))

    def look(self, maps: Tensor) -> tuple[Tensor, Tensor]:
        """Return what is seen in the K regions, and where they are.

        Parameters
        ----------
        maps : Tensor
            (B, width, h, w).

        Returns
        -------
        seen : Tensor
            (K, B, hidden).
        regions : Tensor
            (K, B, 4): s_x, s_y, t_x, t_y.
        """
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
    """The part of the network that learns, and what it learns from (Wang et al. 2017).

    Parameters
    ----------
    stages : torch.nn.Sequential
        From what is not frozen to the logits; the last is a `RecurrentAttention`.
    """

    def __init__(self, stages: nn.Sequential):
        super().__init__()
        self.stages = stages

    def objective(self, inputs: Tensor, targets: Tensor, loss: Callable) -> Tensor:
        """Return what a step lowers: the loss of the best scores and a tenth of the regions' own.

        Parameters
        ----------
        inputs : Tensor
            What the frozen part gives, (B, ...).
        targets : Tensor
            Float multi-hot (B, C).
        loss : callable
            The recipe's loss, of logits and targets.

        Returns
        -------
        Tensor
            A scalar.

        Notes
        -----
        Wang et al. train on the squared distance of softmaxed scores. Predictions in this report
        are thresholded at a probability of 0.5 a class, so that the recipe's loss stands there.
        """
        head = self.stages[-1]
        seen, regions = head.look(self.stages[:-1](inputs))
        return loss(head.scores(seen), targets) + LOCALISATION * localisation_loss(
            regions, head.start[:, 2:]
        )


def cut(maps: Tensor, regions: Tensor) -> Tensor:
    """Read a region of every map, by bilinear interpolation; Jaderberg et al. 2015.

    Parameters
    ----------
    maps : Tensor
        (B, width, h, w).
    regions : Tensor
        (B, 4): s_x, s_y, t_x, t_y. What lies outside of the map reads 0.

    Returns
    -------
    Tensor
        (B, width, h / 2, w / 2), rounded up.

    Examples
    --------
    >>> maps = torch.arange(16.0).view(1, 1, 4, 4)
    >>> cut(maps, torch.tensor([[0.5, 0.5, -0.5, 0.5]]))  # the corner below on the left
    tensor([[[[ 8.,  9.],
              [12., 13.]]]])
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
    """Return where the K regions are drawn to: the middle, then points of a circle around it.

    Returns
    -------
    Tensor
        (K, 2), x and y; for K = 5 the middles of the map's quarters follow the middle.

    Examples
    --------
    >>> anchors()[1]
    tensor([0.5000, 0.5000])
    """
    angle = 2 * torch.pi * (torch.arange(STEPS - 1) + 0.5) / (STEPS - 1)
    circle = torch.stack([angle.cos(), angle.sin()], 1) / 2**0.5
    return torch.cat([torch.zeros(1, 2), circle])


def localisation_loss(regions: Tensor, anchors: Tensor) -> Tensor:
    """Return how far the regions are from what they should be (Wang et al. 2017).

    Parameters
    ----------
    regions : Tensor
        (K, B, 4): s_x, s_y, t_x, t_y.
    anchors : Tensor
        (K, 2), as `anchors` gives them.

    Returns
    -------
    Tensor
        A scalar, the mean over regions and samples: squares of what abs(s) has above alpha, a
        hundredth of half the squared distance from the anchors, and a tenth of what s lacks to
        beta, so that it stays positive.

    Examples
    --------
    >>> middles = torch.cat([torch.full((5, 2), 0.3), anchors()], 1)[:, None]
    >>> localisation_loss(middles, anchors()).item()
    0.0
    """
    size, place = regions[..., :2], regions[..., 2:]
    scale = F.relu(size.abs() - LARGEST).square().sum(-1)
    positive = F.relu(SMALLEST - size).sum(-1)
    anchor = (place - anchors[:, None]).square().sum(-1) / 2
    return (scale + ANCHOR * anchor + POSITIVE * positive).mean()


convnet_recurrent = partial(RNNAttention, backbone=convnet_backbone)
resnet101_recurrent = partial(RNNAttention, backbone=partial(resnet_backbone, name="resnet101"))
