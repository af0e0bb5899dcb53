"""The variance of the gradient over samples, from their norms alone, and when a run measures it."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator

import numpy as np
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.grad import conv2d_weight

from prslib.gradients import LAYERS, visit_layers
from prslib.learner import Learner
from prslib.memory import Memory
from prslib.residence import Images
from prslib.samplers import Sampler
from prslib.stream import Joined, Part

SAMPLES_AT_ONCE = 20  # as many as a training step has by default: no measurement needs more memory


def gradient_variance(
    model: nn.Module, loss: Callable, batches: Iterable[tuple[Tensor, Tensor]]
) -> float:
    """Return the trace of the covariance of the samples' gradients (Sec. "Gradient Variance").

    Parameters
    ----------
    model : torch.nn.Module
        Built of the layers in `prslib.gradients.LAYERS`, each called once; its trained parameters
        count.
    loss : callable
        Takes scores and targets, returns the mean over samples.
    batches : iterable of (Tensor, Tensor)
        Inputs (B, ...) and targets (B, ...) of all samples, a few at a time. How they are cut
        changes the memory that is needed, not the result.

    Returns
    -------
    float
        The mean over samples of the squared norm of a sample's gradient, less the squared norm of
        the mean gradient, in squared units of the loss per unit of weight; 0 or above.

    Raises
    ------
    ValueError
        If there is no sample.
    TypeError
        If the model has trained parameters in a layer that is not in `LAYERS`, or has none.

    Notes
    -----
    Exact, with one gradient of the whole model held at a time, the sum. A sample's squared norm is
    the sum over the layers, each of which has it from its input and its output's gradient: for a
    linear layer it is the product of their squared norms. The trace divides by the number of
    samples, as the paper's expectation does.

    The model is in evaluation mode meanwhile. With the statistics of a batch, batch norm would make
    a sample's gradient depend on its company, and no sample would have a gradient of its own; the
    running statistics keep samples independent, and how they are cut into batches does not matter.
    What is added to the loss for all samples alike, such as a penalty on the weights, drops out of
    a covariance and is not needed here.

    Examples
    --------
    >>> import torch
    >>> layer = nn.Linear(1, 1, bias=False)
    >>> values = torch.tensor([[1.0], [3.0]])
    >>> gradient_variance(layer, lambda scores, _: scores.mean(), [(values, values)])
    1.0
    """
    count, squares, sums = 0, 0.0, {}

    def add(name: str, layer: nn.Module, given: Tensor, asked: Tensor) -> None:
        nonlocal squares
        norms, totals = KINDS.get(type(layer), _any)(layer, given, asked)
        squares += norms.double().sum()
        for part, total in totals.items():
            sums[name, part] = sums.get((name, part), 0) + total.double()

    for inputs, targets in batches:
        visit_layers(model, loss, inputs, targets, add)
        count += len(inputs)
    if count == 0:
        raise ValueError("batches: expected at least one sample, got none; fill the memory first")
    mean = sum(total.square().sum() for total in sums.values()) / count**2
    return max(float(squares / count - mean), 0.0)


Moments = tuple[Tensor, dict[str, Tensor]]  # squared norms (N,), and each parameter's sum


def _any(layer: nn.Module, given: Tensor, asked: Tensor) -> Moments:
    """Take the moments from the samples' own gradients: for layers with few parameters."""
    parts = LAYERS[type(layer)].of_samples(layer, given, asked)
    norms = sum(part.flatten(1).square().sum(1) for part in parts.values())
    return norms, {name: part.sum(0) for name, part in parts.items()}


def _linear(layer: nn.Linear, given: Tensor, asked: Tensor) -> Moments:
    """Multiply squared norms: a sample's gradient is an outer product."""
    scale, totals = asked.new_zeros(len(asked)), {}
    if layer.weight.requires_grad:
        scale = scale + given.square().sum(1)
        totals["weight"] = asked.T @ given
    if layer.bias is not None and layer.bias.requires_grad:
        scale = scale + 1
        totals["bias"] = asked.sum(0)
    return scale * asked.square().sum(1), totals


def _conv(layer: nn.Conv2d, given: Tensor, asked: Tensor) -> Moments:
    """Multiply inner products of patches with those of output gradients where that costs less.

    A sample's weight gradient is the product of (out, L) and (L, in * kernel) for L places. Its
    squared norm also follows from the two matrices (L, L) of inner products between places.
    """
    out, places = asked.shape[1], asked[0, 0].numel()
    fan_in = layer.weight[0].numel()
    if not layer.weight.requires_grad or places * (out + fan_in) >= out * fan_in:
        return _any(layer, given, asked)
    how = (layer.stride, layer.padding, layer.dilation)
    patches = F.unfold(given, layer.kernel_size, layer.dilation, layer.padding, layer.stride)
    asked_flat = asked.flatten(2)
    norms = (patches.mT @ patches * (asked_flat.mT @ asked_flat)).sum((1, 2))
    totals = {"weight": conv2d_weight(given, layer.weight.shape, asked, *how)}
    if layer.bias is not None and layer.bias.requires_grad:
        bias = asked.sum((2, 3))
        norms, totals["bias"] = norms + bias.square().sum(1), bias.sum(0)
    return norms, totals


KINDS: dict[type[nn.Module], Callable[..., Moments]] = {nn.Linear: _linear, nn.Conv2d: _conv}


def memory_variance(
    learner: Learner, images: Images, labels: Tensor, memory: Memory, sampler: Sampler
) -> float:
    """Return the gradient variance over all that a memory holds (Sec. "Gradient Variance").

    Parameters
    ----------
    learner : Learner
        The network as it is; its trained part counts, with the training loss.
    images : Images
        The training images.
    labels : Tensor
        Their labels, on the learner's device.
    memory : Memory
        Where the samples' indices are, in the column "index".
    sampler : Sampler
        Whose memory it is. One that keeps vectors (ExStream) has those taken for its samples, with
        the one label that each stands for.

    Returns
    -------
    float
        As `gradient_variance`.
    """

    def batches() -> Iterator[tuple[Tensor, Tensor]]:
        slots = memory.filled
        for start in range(0, len(slots), SAMPLES_AT_ONCE):
            some = slots[start : start + SAMPLES_AT_ONCE]
            if hasattr(sampler, "vectors"):
                none = np.empty(0, np.int64)
                yield learner.join(
                    images, labels, Joined(none, sampler.vectors(some), sampler.labels[some])
                )
            else:
                yield learner.join(images, labels, memory.read(some)["index"])

    return gradient_variance(learner.upper, learner.loss, batches())


def watched(
    parts: Iterable[Part], marks: Iterable[int], measure: Callable[[int], None], step: int = 0
) -> list[Part]:
    """Return a stepwise stream with a measurement after some steps; our own choice.

    Parameters
    ----------
    parts : iterable of Part
        Their batches are made step by step and taken in order, each after the step on the one
        before.
    marks : iterable of int
        After how many steps to measure, rising, each at least 1; without any, nothing changes.
    measure : callable
        Takes the number of steps. It is called when that many steps have been taken and their
        samples placed in memory, before the next one.
    step : int
        Steps that were taken before the first of these batches.

    Returns
    -------
    list of Part
        The same batches.

    Examples
    --------
    >>> parts = [Part((0,), [1, 2]), Part((0, 1), [3])]
    >>> [list(p.batches) for p in watched(parts, [2, 3], lambda step: print("after", step))]
    after 2
    after 3
    [[1, 2], [3]]
    """
    left = deque(marks)
    if not left:
        return list(parts)

    def look() -> None:
        if left and left[0] == step:
            measure(int(left.popleft()))

    def take(batches: Iterable) -> Iterator:
        nonlocal step
        for batch in batches:
            look()
            yield batch
            step += 1
        look()

    return [Part(part.seen, take(part.batches)) for part in parts]
