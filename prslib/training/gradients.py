"""Compute gradients of single samples and of groups in one pass, and their variance.

A layer's gradient follows from its input and from the gradient of its output: for a linear layer it
is their outer product. One pass over all samples records both; the backward pass skips the weights.
No sample passes alone, and no gradient of the whole model is held for each.
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
from prslib.training.replay import Part, joined

SAMPLES_AT_ONCE = 20  # as in a training step by default: measuring needs no more memory
Moments = tuple[Tensor, dict[str, Tensor]]  # squared norms (N,), and each parameter's sum


def gradient_products(
    model: nn.Module, loss: Callable, inputs: Tensor, targets: Tensor, sizes: Sequence[int]
) -> Tensor:
    """Return the inner products of groups' gradients, float64 (G, G) (GSS, Sec. 3).

    Samples (N, ...) come group after group, and ``sizes`` add up to N. The gradients are those of
    the groups' mean losses.
    """
    if sum(sizes) != len(inputs):
        raise ValueError(
            f"sizes: expected a sum of {len(inputs)}, one for each sample, got {sum(sizes)}; "
            "pass the samples group after group"
        )
    sizes = torch.as_tensor(sizes)
    total = torch.zeros(len(sizes), len(sizes), dtype=torch.float64, device=inputs.device)

    def add(_name: str, layer: nn.Module, given: Tensor, grad: Tensor) -> None:
        total.add_(LAYERS[type(layer)].products(layer, given, grad, sizes))

    visit_layers(model, loss, inputs, targets, add)
    return total


def squared_gradients(model: nn.Module, loss: Callable, inputs: Tensor, targets: Tensor) -> dict:
    """Return the samples' mean squared gradient of every trained parameter, by name (EWC)."""
    squares = {}

    def keep(name: str, layer: nn.Module, given: Tensor, grad: Tensor) -> None:
        prefix = f"{name}." if name else ""
        if isinstance(layer, nn.Linear):  # the square of an outer product is that of the squares
            moments = grad.square(), given.square()
            found = {"weight": moments[0].T @ moments[1] / len(grad), "bias": moments[0].mean(0)}
            found = _trained(layer, found)
        else:
            own = LAYERS[type(layer)].of_samples(layer, given, grad)
            found = {part: gradients.square().mean(0) for part, gradients in own.items()}
        squares.update({prefix + part: value for part, value in found.items()})

    visit_layers(model, loss, inputs, targets, keep)
    return squares


def gradient_variance(
    model: nn.Module, loss: Callable, batches: Iterable[tuple[Tensor, Tensor]]
) -> float:
    """Return the trace of the covariance of the samples' gradients (Sec. "Gradient Variance").

    It is the mean squared norm of a sample's gradient less the squared norm of the mean gradient.
    The batches hold inputs (B, ...) and targets (B, ...) of all samples; their size changes the
    memory that is needed, not the result.
    """
    # Exact, with one gradient of the whole model held, the sum. A term of the loss that all samples
    # share, such as a penalty on the weights, drops out of a covariance.
    count, squares, sums = 0, 0.0, {}

    def add(name: str, layer: nn.Module, given: Tensor, grad: Tensor) -> None:
        nonlocal squares
        norms, totals = LAYERS[type(layer)].moments(layer, given, grad)
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


def memory_variance(
    learner, images: Images, labels: Tensor, memory: Memory, sampler: Sampler
) -> float:
    """Return the gradient variance over all that a memory holds: images, or ExStream's vectors."""

    def batches() -> Iterator[tuple[Tensor, Tensor]]:
        slots, none = memory.filled, np.empty(0, np.int64)
        for start in range(0, len(slots), SAMPLES_AT_ONCE):
            some = slots[start : start + SAMPLES_AT_ONCE]
            yield learner.join(images, labels, joined(none, some, sampler, memory))

    return gradient_variance(learner.upper, learner.loss, batches())


def measured(
    parts: Iterable[Part], marks: Iterable[int], measure: Callable[[int], None], step: int = 0
) -> list[Part]:
    """Return a stepwise stream that measures after the marked steps, their samples placed."""
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


def visit_layers(
    model: nn.Module, loss: Callable, inputs: Tensor, targets: Tensor, visit: Callable
) -> None:
    """Call ``visit`` with name, layer, its input and its output's gradient, layer by layer.

    The backward pass calls it, so a layer's tensors are free before the next one's are needed. The
    output's gradient is that of each sample's own loss. The model is in evaluation mode meanwhile:
    with a batch's statistics, batch norm would make a sample's gradient depend on the others.
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
        output.register_hook(lambda grad: visit(trained[layer], layer, given.pop(layer), grad))
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


def _linear_of_samples(layer: nn.Linear, given: Tensor, grad: Tensor) -> dict[str, Tensor]:
    parts = {"weight": grad[:, :, None] * given[:, None, :], "bias": grad}
    return _trained(layer, parts)


def _linear_products(layer: nn.Linear, given: Tensor, grad: Tensor, sizes: Tensor) -> Tensor:
    """Multiply inner products of inputs with those of output gradients, then average."""
    inputs = torch.zeros(len(given), len(given), dtype=given.dtype, device=given.device)
    if layer.weight.requires_grad:
        inputs += given @ given.T
    if layer.bias is not None and layer.bias.requires_grad:
        inputs += 1
    mean = _means(sizes, given)  # (G, N)
    return mean @ (inputs * (grad @ grad.T)) @ mean.T


def _conv_of_samples(layer: nn.Conv2d, given: Tensor, grad: Tensor) -> dict[str, Tensor]:
    patches = F.unfold(given, layer.kernel_size, layer.dilation, layer.padding, layer.stride)
    weight = grad.flatten(2) @ patches.transpose(1, 2)  # (N, out, in * kernel)
    parts = {"weight": weight.view(-1, *layer.weight.shape), "bias": grad.sum((2, 3))}
    return _trained(layer, parts)


def _conv_products(layer: nn.Conv2d, given: Tensor, grad: Tensor, sizes: Tensor) -> Tensor:
    """Multiply the groups' own gradients; those of single samples come from one product."""
    listed = sizes.tolist()
    alone = (sizes == 1).repeat_interleave(sizes).to(given.device)
    parts = _conv_of_samples(layer, given[alone], grad[alone])
    total = torch.zeros(len(listed), len(listed), dtype=given.dtype, device=given.device)
    if "weight" in parts:
        groups = zip(given.split(listed), grad.split(listed), strict=True)
        shape, how = layer.weight.shape, (layer.stride, layer.padding, layer.dilation)
        sums = [conv2d_weight(x, shape, dy, *how) for x, dy in groups if len(x) > 1]
        single = parts["weight"].flatten(0, 1).contiguous(memory_format=torch.channels_last)
        rows = torch.cat([*sums, single])  # (G * out, in, kernel), with channels last in memory
        rows = rows.permute(0, 2, 3, 1).reshape(len(listed), -1)
        place = torch.cat([(sizes > 1).nonzero(), (sizes == 1).nonzero()])[:, 0].to(given.device)
        means = sizes.to(rows)[place].reciprocal()
        total[place[:, None], place] = (rows @ rows.T) * means[:, None] * means
    if "bias" in parts:
        bias = _means(sizes, given) @ grad.sum((2, 3))
        total += bias @ bias.T
    return total


def _norm_of_samples(layer: nn.BatchNorm2d, given: Tensor, grad: Tensor) -> dict[str, Tensor]:
    bias = grad.sum((2, 3))
    moment = (grad * given).sum((2, 3)) - layer.running_mean * bias
    parts = {"weight": moment * (layer.running_var + layer.eps).rsqrt(), "bias": bias}
    return _trained(layer, parts)


def _norm_products(layer: nn.BatchNorm2d, given: Tensor, grad: Tensor, sizes: Tensor) -> Tensor:
    parts = _norm_of_samples(layer, given, grad).values()
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


def _moments(layer: nn.Module, given: Tensor, grad: Tensor) -> Moments:
    """Take the moments from the samples' own gradients: right for layers with few parameters."""
    parts = LAYERS[type(layer)].of_samples(layer, given, grad)
    norms = sum(part.flatten(1).square().sum(1) for part in parts.values())
    return norms, {name: part.sum(0) for name, part in parts.items()}


def _linear_moments(layer: nn.Linear, given: Tensor, grad: Tensor) -> Moments:
    """Multiply squared norms: a sample's gradient is an outer product."""
    scale, totals = grad.new_zeros(len(grad)), {}
    if layer.weight.requires_grad:
        scale = scale + given.square().sum(1)
        totals["weight"] = grad.T @ given
    if layer.bias is not None and layer.bias.requires_grad:
        scale = scale + 1
        totals["bias"] = grad.sum(0)
    return scale * grad.square().sum(1), totals


def _conv_moments(layer: nn.Conv2d, given: Tensor, grad: Tensor) -> Moments:
    """Multiply inner products of patches with those of output gradients where that costs less.

    A sample's weight gradient is the product of (out, L) and (L, in * kernel) for L places. Its
    squared norm also follows from the two matrices (L, L) of inner products between places.
    """
    out, places = grad.shape[1], grad[0, 0].numel()
    fan_in = layer.weight[0].numel()
    if not layer.weight.requires_grad or places * (out + fan_in) >= out * fan_in:
        return _moments(layer, given, grad)
    how = (layer.stride, layer.padding, layer.dilation)
    patches = F.unfold(given, layer.kernel_size, layer.dilation, layer.padding, layer.stride)
    grad_flat = grad.flatten(2)
    norms = (patches.mT @ patches * (grad_flat.mT @ grad_flat)).sum((1, 2))
    totals = {"weight": conv2d_weight(given, layer.weight.shape, grad, *how)}
    if layer.bias is not None and layer.bias.requires_grad:
        bias = grad.sum((2, 3))
        norms, totals["bias"] = norms + bias.square().sum(1), bias.sum(0)
    return norms, totals


@dataclass(frozen=True)
class LayerGradients:
    """A kind of layer's gradients, from its inputs and its outputs' gradients, (N, ...) each."""

    of_samples: Callable[..., dict[str, Tensor]]  # each parameter's, (N, ...)
    products: Callable[..., Tensor]  # given the groups' sizes, their inner products (G, G)
    moments: Callable[..., Moments] = _moments
    check: Callable[[str, nn.Module], None] = lambda name, layer: None  # TypeError if not right


LAYERS: dict[type[nn.Module], LayerGradients] = {
    nn.Linear: LayerGradients(_linear_of_samples, _linear_products, _linear_moments),
    nn.Conv2d: LayerGradients(_conv_of_samples, _conv_products, _conv_moments, _check_conv),
    nn.BatchNorm2d: LayerGradients(_norm_of_samples, _norm_products, check=_check_norm),
}
