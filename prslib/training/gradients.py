"""Gradients of single samples and of small groups, from one forward and one backward pass.

A layer's gradient follows from its input and from the gradient of its output: for a linear layer
it is their outer product. Both are recorded in one pass over all samples; the backward pass skips
the weights. No sample is passed alone, and no gradient of the whole model is ever held.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.grad import conv2d_weight

from prslib.memory import Memory
from prslib.samplers import Sampler
from prslib.training.device import Images
from prslib.training.replay import Joined, Part


def gradient_products(
    model: nn.Module, loss: Callable, inputs: Tensor, targets: Tensor, sizes: Sequence[int]
) -> Tensor:
    """Return the inner products of the gradients of several groups of samples (GSS, Sec. 3).

    Parameters
    ----------
    model : torch.nn.Module
        Built of the layers in `LAYERS`, each called once; its trained parameters count.
    loss : callable
        Takes scores and targets, returns the mean over samples.
    inputs, targets : Tensor (N, ...)
        The samples, group after group.
    sizes : sequence of int, length G, sum N
        How many samples each group has.

    Returns
    -------
    Tensor of float64, (G, G)
        Inner products of the gradients of the groups' mean losses.

    Raises
    ------
    ValueError
        If the sizes do not add up to N.
    TypeError
        If the model has trained parameters in a layer that is not in `LAYERS`, or has none.

    Notes
    -----
    The model is in evaluation mode meanwhile: batch norm uses its running statistics and leaves
    them alone. Otherwise a sample's gradient would depend on its company.

    Examples
    --------
    >>> layer = nn.Linear(1, 1, bias=False)
    >>> values = torch.tensor([[1.0], [2.0]])
    >>> gradient_products(layer, lambda scores, _: scores.mean(), values, values, [1, 1])
    tensor([[1., 2.],
            [2., 4.]], dtype=torch.float64)
    """
    if sum(sizes) != len(inputs):
        raise ValueError(
            f"sizes: expected a sum of {len(inputs)}, one for each sample, got {sum(sizes)}; "
            "pass the samples group after group"
        )
    sizes = torch.as_tensor(sizes)
    total = torch.zeros(len(sizes), len(sizes), dtype=torch.float64, device=inputs.device)

    def add(_name: str, layer: nn.Module, given: Tensor, asked: Tensor) -> None:
        total.add_(LAYERS[type(layer)].products(layer, given, asked, sizes))

    visit_layers(model, loss, inputs, targets, add)
    return total


def squared_gradients(model: nn.Module, loss: Callable, inputs: Tensor, targets: Tensor) -> dict:
    """Return the mean over samples of their squared gradients, the empirical Fisher (EWC).

    Parameters
    ----------
    model, loss, inputs, targets
        As for `gradient_products`.

    Returns
    -------
    dict of str to Tensor
        For every trained parameter, by name, a tensor of its shape.

    Raises
    ------
    TypeError
        If the model has trained parameters in a layer that is not in `LAYERS`, or has none.

    Examples
    --------
    >>> layer = nn.Linear(1, 1, bias=False)
    >>> values = torch.tensor([[1.0], [2.0]])
    >>> squared_gradients(layer, lambda scores, _: scores.mean(), values, values)
    {'weight': tensor([[2.5000]])}
    """
    squares = {}

    def keep(name: str, layer: nn.Module, given: Tensor, asked: Tensor) -> None:
        prefix = f"{name}." if name else ""
        for part, gradients in LAYERS[type(layer)].of_samples(layer, given, asked).items():
            squares[prefix + part] = gradients.square().mean(0)

    visit_layers(model, loss, inputs, targets, keep)
    return squares


def visit_layers(
    model: nn.Module, loss: Callable, inputs: Tensor, targets: Tensor, visit: Callable
) -> None:
    """Call ``visit`` with name, layer, its input and its output's gradient, layer by layer.

    It is called in the backward pass, so that a layer's tensors are free again before the next
    one's are needed. The output's gradient is that of each sample's own loss. The model is in
    evaluation mode meanwhile, so that samples do not depend on each other; TypeError where a
    layer with trained parameters is not in `LAYERS`.
    """
    trained = {
        layer: name
        for name, layer in model.named_modules()
        if any(parameter.requires_grad for parameter in layer.parameters(recurse=False))
    }
    for layer, name in trained.items():
        if type(layer) not in LAYERS:
            known = ", ".join(kind.__name__ for kind in LAYERS)
            raise TypeError(
                f"layer {name!r}: expected one of {known}, got {type(layer).__name__}; "
                "add its gradients to prslib.training.gradients.LAYERS"
            )
        LAYERS[type(layer)].check(name, layer)
    if not trained:
        raise TypeError("model: expected trained parameters, got none that requires a gradient")
    shared = Counter(parameter for layer in trained for parameter in layer.parameters(False))
    if shared.total() > len(shared):
        raise TypeError(
            "model: expected every parameter in one layer, got one that several share; shared "
            "weights have no gradient that follows from a single input"
        )
    given = {}

    def watch(layer: nn.Module, arguments: tuple, output: Tensor) -> Tensor:
        if layer in given:
            raise TypeError(
                f"layer {trained[layer]!r}: expected one call, got two; "
                "shared layers have no gradient that follows from a single input"
            )
        given[layer] = arguments[0].detach()
        if isinstance(layer, nn.Linear) and given[layer].dim() != 2:
            raise TypeError(
                f"layer {trained[layer]!r}: expected inputs of shape (N, features), got "
                f"{tuple(given[layer].shape)}; a sample with several has no outer product"
            )
        first = not output.requires_grad  # its weights are detached
        output.requires_grad_()
        output.register_hook(lambda asked: visit(trained[layer], layer, given.pop(layer), asked))
        return output.clone() if first else output  # what follows may change it in place, no leaf

    training = [layer for layer in model.modules() if layer.training]
    hooks = [layer.register_forward_hook(watch) for layer in trained]
    try:
        model.eval()
        detached = {name: parameter.detach() for name, parameter in model.named_parameters()}
        with torch.enable_grad():
            scores = functional_call(model, detached, (inputs,))
            (loss(scores, targets) * len(inputs)).backward()
    finally:
        for hook in hooks:
            hook.remove()
        for layer in training:
            layer.training = True


def _check_conv(name: str, layer: nn.Conv2d) -> None:
    if layer.groups != 1 or layer.padding_mode != "zeros" or isinstance(layer.padding, str):
        raise TypeError(
            f"layer {name!r}: expected one group and zero padding given in numbers, got {layer}; "
            "only such convolutions have their gradients in prslib.training.gradients"
        )


def _check_norm(name: str, layer: nn.BatchNorm2d) -> None:
    if layer.running_mean is None:
        raise TypeError(
            f"layer {name!r}: expected running statistics, got {layer}; without them a sample's "
            "gradient depends on its company"
        )


def _linear_of_samples(layer: nn.Linear, given: Tensor, asked: Tensor) -> dict[str, Tensor]:
    parts = {"weight": asked[:, :, None] * given[:, None, :], "bias": asked}
    return _trained(layer, parts)


def _linear_products(layer: nn.Linear, given: Tensor, asked: Tensor, sizes: Tensor) -> Tensor:
    """Multiply inner products of inputs with those of output gradients, then average."""
    inputs = torch.zeros(len(given), len(given), dtype=given.dtype, device=given.device)
    if layer.weight.requires_grad:
        inputs += given @ given.T
    if layer.bias is not None and layer.bias.requires_grad:
        inputs += 1
    mean = _means(sizes, given)  # (G, N)
    return mean @ (inputs * (asked @ asked.T)) @ mean.T


def _conv_of_samples(layer: nn.Conv2d, given: Tensor, asked: Tensor) -> dict[str, Tensor]:
    patches = F.unfold(given, layer.kernel_size, layer.dilation, layer.padding, layer.stride)
    weight = asked.flatten(2) @ patches.transpose(1, 2)  # (N, out, in * kernel)
    parts = {"weight": weight.view(-1, *layer.weight.shape), "bias": asked.sum((2, 3))}
    return _trained(layer, parts)


def _conv_products(layer: nn.Conv2d, given: Tensor, asked: Tensor, sizes: Tensor) -> Tensor:
    """Multiply the groups' own gradients; those of single samples come from one product."""
    listed = sizes.tolist()
    alone = (sizes == 1).repeat_interleave(sizes).to(given.device)
    parts = _conv_of_samples(layer, given[alone], asked[alone])
    total = torch.zeros(len(listed), len(listed), dtype=given.dtype, device=given.device)
    if "weight" in parts:
        groups = zip(given.split(listed), asked.split(listed), strict=True)
        shape, how = layer.weight.shape, (layer.stride, layer.padding, layer.dilation)
        sums = [conv2d_weight(x, shape, dy, *how) for x, dy in groups if len(x) > 1]
        single = parts["weight"].flatten(0, 1).contiguous(memory_format=torch.channels_last)
        rows = torch.cat([*sums, single])  # (G * out, in, kernel), with channels last in memory
        rows = rows.permute(0, 2, 3, 1).reshape(len(listed), -1)
        place = torch.cat([(sizes > 1).nonzero(), (sizes == 1).nonzero()])[:, 0].to(given.device)
        means = sizes.to(rows)[place].reciprocal()
        total[place[:, None], place] = (rows @ rows.T) * means[:, None] * means
    if "bias" in parts:
        bias = _means(sizes, given) @ asked.sum((2, 3))
        total += bias @ bias.T
    return total


def _norm_of_samples(layer: nn.BatchNorm2d, given: Tensor, asked: Tensor) -> dict[str, Tensor]:
    bias = asked.sum((2, 3))
    moment = (asked * given).sum((2, 3)) - layer.running_mean * bias
    parts = {"weight": moment * (layer.running_var + layer.eps).rsqrt(), "bias": bias}
    return _trained(layer, parts)


def _norm_products(layer: nn.BatchNorm2d, given: Tensor, asked: Tensor, sizes: Tensor) -> Tensor:
    parts = _norm_of_samples(layer, given, asked).values()
    rows = _means(sizes, given) @ torch.cat(list(parts), 1)
    return rows @ rows.T


def _trained(layer: nn.Module, parts: dict[str, Tensor]) -> dict[str, Tensor]:
    own = dict(layer.named_parameters(recurse=False))
    return {name: part for name, part in parts.items() if name in own and own[name].requires_grad}


def _means(sizes: Tensor, like: Tensor) -> Tensor:
    """Return the matrix (G, N) that averages the samples of each group."""
    groups = torch.arange(len(sizes)).repeat_interleave(sizes)
    means = torch.zeros(len(sizes), int(sizes.sum()))
    means[groups, torch.arange(len(groups))] = 1 / sizes[groups].float()
    return means.to(like)


@dataclass(frozen=True)
class LayerGradients:
    """How a kind of layer gives its gradients from its inputs and its outputs' gradients.

    Parameters
    ----------
    of_samples : callable
        Takes the layer, inputs and output gradients; returns each parameter's (N, ...).
    products : callable
        Takes also the groups' sizes; returns the inner products (G, G).
    check : callable
        Takes the layer's name and the layer; raises TypeError for one that these are not right for.
    """

    of_samples: Callable[..., dict[str, Tensor]]
    products: Callable[..., Tensor]
    check: Callable[[str, nn.Module], None] = lambda name, layer: None


LAYERS: dict[type[nn.Module], LayerGradients] = {
    nn.Linear: LayerGradients(_linear_of_samples, _linear_products),
    nn.Conv2d: LayerGradients(_conv_of_samples, _conv_products, _check_conv),
    nn.BatchNorm2d: LayerGradients(_norm_of_samples, _norm_products, _check_norm),
}


SAMPLES_AT_ONCE = 20  # as many as a training step has by default: no measurement needs more memory


def gradient_variance(
    model: nn.Module, loss: Callable, batches: Iterable[tuple[Tensor, Tensor]]
) -> float:
    """Return the trace of the covariance of the samples' gradients (Sec. "Gradient Variance").

    Parameters
    ----------
    model : torch.nn.Module
        Built of the layers in `prslib.training.gradients.LAYERS`, each called once; its trained parameters
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
    learner, images: Images, labels: Tensor, memory: Memory, sampler: Sampler
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
