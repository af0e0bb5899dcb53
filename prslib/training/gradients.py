"""Compute gradients of single samples and of groups in one pass, and their variance.

A layer's gradient follows from its input and from the gradient of its output: for a linear layer it
is their outer product. One pass over all samples records both; the backward pass skips the weights.
No sample passes alone, and no gradient of the whole model is held for each.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.grad import conv2d_weight

from prslib.memory import Memory
from prslib.samplers import Sampler
from prslib.training.device import Inputs

SAMPLES_AT_ONCE = 20  # as in a training step by default: measuring needs no more memory
Products = tuple[
    Tensor, Tensor
]  # with the single samples (K + B, B), and of subsets' squares (K,)
Moments = tuple[
    Tensor, dict[str, Tensor]
]  # squared norms (N,), and each parameter's sum


def gradient_products(
    model: nn.Module,
    loss: Callable,
    inputs: Tensor,
    targets: Tensor,
    subsets: tuple[int, int],
) -> Tensor:
    """Return the inner products of gradients that GSS reads, float64 (K + B, K + B)."""
    # The first K * n samples are K subsets of n, each with its mean loss; the other B stand alone.
    # Two subsets are never compared: their product stays 0.
    known = subsets[0]
    count = known + len(inputs) - math.prod(subsets)
    table = torch.zeros(count, count, dtype=torch.float64, device=inputs.device)

    def add(_name: str, layer: nn.Module, given: Tensor, grad: Tensor) -> None:
        columns, squares = PRODUCTS[type(layer)](layer, given, grad, subsets)
        table[:, known:].add_(columns)
        table.diagonal()[:known].add_(squares)

    visit_layers(model, loss, inputs, targets, add)
    table[known:, :known] = table[:known, known:].T
    return table


def squared_gradients(
    model: nn.Module, loss: Callable, inputs: Tensor, targets: Tensor
) -> dict:
    """Return the samples' mean squared gradient of every trained parameter, by name (EWC)."""
    squares = {}

    def keep(name: str, layer: nn.Module, given: Tensor, grad: Tensor) -> None:
        prefix = f"{name}." if name else ""
        if isinstance(
            layer, nn.Linear
        ):  # the square of an outer product is that of the squares
            moments = grad.square(), given.square()
            found = {
                "weight": moments[0].T @ moments[1] / len(grad),
                "bias": moments[0].mean(0),
            }
            found = _present(layer, found)
        else:
            own = OF_SAMPLES[type(layer)](layer, given, grad)
            found = {
                part: gradients.square().mean(0) for part, gradients in own.items()
            }
        squares.update({prefix + part: value for part, value in found.items()})

    visit_layers(model, loss, inputs, targets, keep)
    return squares


def gradient_variance(
    model: nn.Module, loss: Callable, batches: Iterable[tuple[Tensor, Tensor]]
) -> float:
    """Return the trace of the covariance of the samples' gradients (Sec. "Gradient Variance")."""
    # Exact: the mean squared norm of a sample's gradient less the squared norm of the mean one. A
    # term of the loss that all samples share, such as a penalty on the weights, drops out.
    count, squares, sums = 0, 0.0, {}

    def add(name: str, layer: nn.Module, given: Tensor, grad: Tensor) -> None:
        nonlocal squares
        norms, totals = MOMENTS[type(layer)](layer, given, grad)
        squares += norms.double().sum()
        for part, total in totals.items():
            sums[name, part] = sums.get((name, part), 0) + total.double()

    for inputs, targets in batches:
        visit_layers(model, loss, inputs, targets, add)
        count += len(inputs)
    if count == 0:
        raise ValueError(
            "batches: expected at least one sample, got none; fill the memory first"
        )
    mean = sum(total.square().sum() for total in sums.values()) / count**2
    return max(float(squares / count - mean), 0.0)


def memory_variance(
    learner: Any, inputs: Inputs, labels: Inputs, memory: Memory, sampler: Sampler
) -> float:
    """Return the gradient variance over a memory's images, or ExStream's vectors."""
    slots, none = memory.filled, np.empty(0, np.int64)
    batches = (
        learner.join(
            inputs, labels, none, slots[i : i + SAMPLES_AT_ONCE], memory, sampler
        )
        for i in range(0, len(slots), SAMPLES_AT_ONCE)
    )
    return gradient_variance(learner.upper, learner.loss, batches)


def visit_layers(
    model: nn.Module, loss: Callable, inputs: Tensor, targets: Tensor, visit: Callable
) -> None:
    """Call ``visit`` with name, layer, its input and its output's gradient, layer by layer."""
    # The backward pass calls it, so a layer's tensors are free before the next one's are needed.
    # The gradient is that of each sample's own loss: in evaluation mode, since with a batch's
    # statistics batch norm would make it depend on the others.
    trained = {
        layer: name
        for name, layer in model.named_modules()
        if any(parameter.requires_grad for parameter in layer.parameters(recurse=False))
    }
    for layer, name in trained.items():
        if not _is_known(layer):
            raise TypeError(
                f"layer {name!r}: expected Linear, BatchNorm2d with running statistics, or Conv2d "
                f"with one group and zero padding given in numbers, got {layer}; add its gradients "
                "to prslib.training.gradients"
            )
    if len(list(model.named_parameters(remove_duplicate=False))) > len(
        list(model.parameters())
    ):
        raise TypeError(
            "model: expected every parameter in one layer, got one that several share; shared "
            "weights have no gradient that follows from a single input"
        )
    given = {}

    def watch(layer: nn.Module, arguments: tuple, output: Tensor) -> Tensor:
        given[layer] = arguments[0].detach()
        if isinstance(layer, nn.Linear) and given[layer].dim() != 2:
            raise TypeError(
                f"layer {trained[layer]!r}: expected inputs of shape (N, features), got "
                f"{tuple(given[layer].shape)}; a sample with several has no outer product"
            )
        first = not output.requires_grad  # no weight asks for a gradient
        output.requires_grad_()
        output.register_hook(
            lambda grad: visit(trained[layer], layer, given.pop(layer), grad)
        )
        return (
            output.clone() if first else output
        )  # what follows may change it in place, no leaf

    training = [layer for layer in model.modules() if layer.training]
    learning = [
        parameter for parameter in model.parameters() if parameter.requires_grad
    ]
    hooks = [layer.register_forward_hook(watch) for layer in trained]
    try:
        model.eval().requires_grad_(False)
        with torch.enable_grad():
            (loss(model(inputs), targets) * len(inputs)).backward()
    finally:
        for parameter in learning:
            parameter.requires_grad_()
        for hook in hooks:
            hook.remove()
        for layer in training:
            layer.training = True


def _is_known(layer: nn.Module) -> bool:
    """Return whether a sample's gradients in this layer follow from one input and its output's."""
    if isinstance(layer, nn.Conv2d):
        plain = layer.padding_mode == "zeros" and not isinstance(layer.padding, str)
        return layer.groups == 1 and plain
    # with a batch's own statistics a sample's gradient would depend on the others
    return type(layer) in PRODUCTS and getattr(layer, "track_running_stats", True)


def _linear_products(
    layer: nn.Linear, given: Tensor, grad: Tensor, subsets: tuple
) -> Products:
    """Multiply inner products of inputs with those of output gradients, then average."""
    known, bias = math.prod(subsets), int(layer.bias is not None)
    columns = (given @ given[known:].T + bias) * (grad @ grad[known:].T)  # (N, B)
    x, dy = (
        rows[:known].unflatten(0, subsets) for rows in (given, grad)
    )  # (K, n, features)
    squares = (x @ x.mT + bias) * (dy @ dy.mT)  # (K, n, n)
    return _means(columns, subsets), squares.mean((1, 2))


def _conv_of_samples(
    layer: nn.Conv2d, given: Tensor, grad: Tensor
) -> dict[str, Tensor]:
    weight = grad.flatten(2) @ _patches(layer, given).transpose(
        1, 2
    )  # (N, out, in * kernel)
    parts = {"weight": weight.view(-1, *layer.weight.shape), "bias": grad.sum((2, 3))}
    return _present(layer, parts)


def _conv_products(
    layer: nn.Conv2d, given: Tensor, grad: Tensor, subsets: tuple
) -> Products:
    """Multiply the subsets' own gradients; those of single samples come from one product."""
    known, size = math.prod(subsets), subsets[1]
    parts = _conv_of_samples(layer, given[known:], grad[known:])
    starts = range(0, known, size)
    means = [
        _conv_sum(layer, given[i : i + size], grad[i : i + size]) / size for i in starts
    ]
    single = parts["weight"].flatten(0, 1).contiguous(memory_format=torch.channels_last)
    rows = torch.cat(
        [*means, single]
    )  # ((K + B) * out, in, kernel), with channels last in memory
    rows = rows.permute(0, 2, 3, 1).reshape(-1, layer.weight.numel())
    if layer.bias is not None:
        rows = torch.cat([rows, _means(grad.sum((2, 3)), subsets)], 1)
    return _products(rows, subsets)


def _norm_of_samples(
    layer: nn.BatchNorm2d, given: Tensor, grad: Tensor
) -> dict[str, Tensor]:
    bias = grad.sum((2, 3))
    moment = (grad * given).sum((2, 3)) - layer.running_mean * bias
    parts = {"weight": moment * (layer.running_var + layer.eps).rsqrt(), "bias": bias}
    return _present(layer, parts)


def _norm_products(
    layer: nn.BatchNorm2d, given: Tensor, grad: Tensor, subsets: tuple
) -> Products:
    parts = _norm_of_samples(layer, given, grad).values()
    return _products(_means(torch.cat(list(parts), 1), subsets), subsets)


def _present(layer: nn.Module, parts: dict[str, Tensor]) -> dict[str, Tensor]:
    return {
        name: part for name, part in parts.items() if getattr(layer, name) is not None
    }


def _means(rows: Tensor, subsets: tuple[int, int]) -> Tensor:
    """Average the rows of each subset: (N, D) to (K + B, D)."""
    known = math.prod(subsets)
    return torch.cat([rows[:known].unflatten(0, subsets).mean(1), rows[known:]])


def _products(rows: Tensor, subsets: tuple[int, int]) -> Products:
    """Multiply gradients (K + B, D) as `gradient_products` needs them."""
    return rows @ rows[subsets[0] :].T, rows[: subsets[0]].square().sum(1)


def _moments(layer: nn.Module, given: Tensor, grad: Tensor) -> Moments:
    """Take the moments from the samples' own gradients: right for layers with few parameters."""
    parts = OF_SAMPLES[type(layer)](layer, given, grad)
    norms = sum(part.flatten(1).square().sum(1) for part in parts.values())
    return norms, {name: part.sum(0) for name, part in parts.items()}


def _linear_moments(layer: nn.Linear, given: Tensor, grad: Tensor) -> Moments:
    """Multiply squared norms: a sample's gradient is an outer product."""
    scale, totals = given.square().sum(1), {"weight": grad.T @ given}
    if layer.bias is not None:
        scale, totals["bias"] = scale + 1, grad.sum(0)
    return scale * grad.square().sum(1), totals


def _conv_moments(layer: nn.Conv2d, given: Tensor, grad: Tensor) -> Moments:
    """Multiply inner products of patches with those of output gradients where that costs less."""
    # A sample's weight gradient is the product of (out, L) and (L, in * kernel) for L places. Its
    # squared norm also follows from the two matrices (L, L) of inner products between places.
    out, places = grad.shape[1], grad[0, 0].numel()
    fan_in = layer.weight[0].numel()
    if places * (out + fan_in) >= out * fan_in:
        return _moments(layer, given, grad)
    patches, grad_flat = _patches(layer, given), grad.flatten(2)
    norms = (patches.mT @ patches * (grad_flat.mT @ grad_flat)).sum((1, 2))
    totals = {"weight": _conv_sum(layer, given, grad)}
    if layer.bias is not None:
        bias = grad.sum((2, 3))
        norms, totals["bias"] = norms + bias.square().sum(1), bias.sum(0)
    return norms, totals


def _patches(layer: nn.Conv2d, given: Tensor) -> Tensor:
    """Return what the kernel sees at every place, (N, in * kernel, L)."""
    return F.unfold(
        given, layer.kernel_size, layer.dilation, layer.padding, layer.stride
    )


def _conv_sum(layer: nn.Conv2d, given: Tensor, grad: Tensor) -> Tensor:
    how = layer.stride, layer.padding, layer.dilation
    return conv2d_weight(given, layer.weight.shape, grad, *how)


# of a kind of layer, given its inputs and the gradients of its outputs, (N, ...) each
PRODUCTS = {  # of subsets and single samples, given K and n
    nn.Linear: _linear_products,
    nn.Conv2d: _conv_products,
    nn.BatchNorm2d: _norm_products,
}
MOMENTS = {
    nn.Linear: _linear_moments,
    nn.Conv2d: _conv_moments,
    nn.BatchNorm2d: _moments,
}
OF_SAMPLES = {nn.Conv2d: _conv_of_samples, nn.BatchNorm2d: _norm_of_samples}  # (N, ...)
