"""Compute gradients of samples and of groups of them in one pass, and their variance.

A layer's gradient follows from its input x and from the gradient of its output, dy: for
a linear layer it is their outer product. One pass over all samples records both; the
backward pass skips the weights. No sample passes alone, and no gradient of the whole
model is kept for each.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.grad import conv2d_weight

from prslib.checks import expected
from prslib.training.device import Inputs
from prslib.training.replay import Replay

SAMPLES_AT_ONCE = 20  # as in a training step: measuring needs no more memory
Products = tuple[Tensor, Tensor]  # with single samples (K + B, B); squares (K,)
Moments = tuple[Tensor, dict[str, Tensor]]  # squared norms (N,); parameters' sums


def gradient_products(
    model: nn.Module,
    loss: Callable,
    inputs: Tensor,
    targets: Tensor,
    subsets: tuple[int, int],
) -> Tensor:
    """Return the products of gradients that GSS reads, float64 (K + B, K + B)."""
    # The first K * n samples are K subsets of n, each with its mean loss; the other B
    # stand alone. Two subsets are never compared: their product stays 0.
    count = subsets[0]
    size = count + len(inputs) - math.prod(subsets)
    table = torch.zeros(size, size, dtype=torch.float64, device=inputs.device)

    def add(_name: str, layer: nn.Module, x: Tensor, dy: Tensor) -> None:
        columns, squares = PRODUCTS[type(layer)](layer, x, dy, subsets)
        table[:, count:].add_(columns)
        table.diagonal()[:count].add_(squares)

    visit_layers(model, loss, inputs, targets, add)
    table[count:, :count] = table[:count, count:].T
    return table


def squared_gradients(
    model: nn.Module, loss: Callable, inputs: Tensor, targets: Tensor
) -> dict[str, Tensor]:
    """Return the mean over samples of each parameter's squared gradient (EWC)."""
    squares = {}

    def keep(name: str, layer: nn.Module, x: Tensor, dy: Tensor) -> None:
        if isinstance(layer, nn.Linear):  # an outer product's square is the squares'
            weight = dy.square().T @ x.square() / len(dy)
            bias = dy.square().mean(0)
            means = _present(layer, {"weight": weight, "bias": bias})
        else:
            gradients = _of_samples(layer, x, dy)
            means = {key: rows.square().mean(0) for key, rows in gradients.items()}
        prefix = f"{name}." if name else ""
        squares.update({prefix + key: mean for key, mean in means.items()})

    visit_layers(model, loss, inputs, targets, keep)
    return squares


def gradient_variance(
    model: nn.Module, loss: Callable, batches: Iterable[tuple[Tensor, Tensor]]
) -> float:
    """Return the trace of the gradients' covariance (Sec. "Gradient Variance")."""
    # Exact: the mean squared norm of a sample's gradient less the squared norm of the
    # mean one. A term of the loss that all samples share, such as a penalty on the
    # weights, drops out.
    count, squares, sums = 0, 0.0, {}

    def add(name: str, layer: nn.Module, x: Tensor, dy: Tensor) -> None:
        nonlocal squares
        norms, totals = _moments(layer, x, dy)
        squares += norms.double().sum()
        for key, total in totals.items():
            sums[name, key] = sums.get((name, key), 0) + total.double()

    for inputs, targets in batches:
        visit_layers(model, loss, inputs, targets, add)
        count += len(inputs)
    if count == 0:
        raise ValueError(expected("at least one sample", "none"))
    mean = sum(total.square().sum() for total in sums.values()) / count**2
    return max(float(squares / count - mean), 0.0)


def memory_variance(
    learner: Any, inputs: Inputs, labels: Inputs, replay: Replay
) -> float:
    """Return the gradient variance over a memory's images, or ExStream's vectors."""
    slots, no_rows = replay.memory.filled, np.empty(0, np.int64)
    batches = (
        learner.join(inputs, labels, no_rows, slots[i : i + SAMPLES_AT_ONCE], replay)
        for i in range(0, len(slots), SAMPLES_AT_ONCE)
    )
    return gradient_variance(learner.upper, learner.loss, batches)


def visit_layers(
    model: nn.Module, loss: Callable, inputs: Tensor, targets: Tensor, visit: Callable
) -> None:
    """Call ``visit`` with each layer's name, the layer, its x and its dy."""
    # The backward pass calls it, so a layer's tensors are free before the next one's
    # are needed. The gradient is that of each sample's own loss: in evaluation mode,
    # since with a batch's statistics batch norm would make it depend on the others.
    trained = {
        layer: name
        for name, layer in model.named_modules()
        if any(weight.requires_grad for weight in layer.parameters(recurse=False))
    }
    _check(model, trained)
    inputs_of = {}

    def watch(layer: nn.Module, arguments: tuple, output: Tensor) -> Tensor:
        inputs_of[layer] = arguments[0].detach()
        is_leaf = not output.requires_grad  # no weight asks for a gradient
        output.requires_grad_()
        output.register_hook(
            lambda dy: visit(trained[layer], layer, inputs_of.pop(layer), dy)
        )
        return output.clone() if is_leaf else output  # a leaf may not change in place

    training = [layer for layer in model.modules() if layer.training]
    learning = [weight for weight in model.parameters() if weight.requires_grad]
    hooks = [layer.register_forward_hook(watch) for layer in trained]
    model.eval().requires_grad_(False)
    with torch.enable_grad():
        (loss(model(inputs), targets) * len(inputs)).backward()
    for weight in learning:
        weight.requires_grad_()
    for hook in hooks:
        hook.remove()
    for layer in training:
        layer.training = True


def _check(model: nn.Module, layers: dict[nn.Module, str]) -> None:
    """Refuse layers whose gradients do not follow from one x and one dy."""
    # nor does that of a weight that several layers share
    shared = len(list(model.named_parameters(remove_duplicate=False)))
    shared -= len(list(model.parameters()))
    for layer, name in layers.items():
        plain = type(layer) in PRODUCTS
        if isinstance(layer, nn.Conv2d):
            plain = layer.groups == 1 and layer.padding_mode == "zeros"
        if not plain or shared:
            what = "layers with own weights: Linear, BatchNorm2d, Conv2d of one group"
            advice = "add its gradients to prslib.training.gradients"
            raise TypeError(expected(what, f"{name!r}: {layer}", advice))


# Functions of a layer, its x and dy, (N, ...) each. With subsets (K, n) the first K * n
# samples are averaged in groups of n.


def _linear_products(
    layer: nn.Linear, x: Tensor, dy: Tensor, subsets: tuple[int, int]
) -> Products:
    """Multiply products of inputs with those of output gradients, then average."""
    cut, bias = math.prod(subsets), int(layer.bias is not None)
    columns = (x @ x[cut:].T + bias) * (dy @ dy[cut:].T)  # (N, B)
    x, dy = x[:cut].unflatten(0, subsets), dy[:cut].unflatten(0, subsets)  # (K, n, D)
    squares = (x @ x.mT + bias) * (dy @ dy.mT)  # (K, n, n)
    return _means(columns, subsets), squares.mean((1, 2))


def _conv_products(
    layer: nn.Conv2d, x: Tensor, dy: Tensor, subsets: tuple[int, int]
) -> Products:
    """Multiply the subsets' gradients; single samples' come from one product."""
    cut, size = math.prod(subsets), subsets[1]
    single = _of_samples(layer, x[cut:], dy[cut:])["weight"].flatten(0, 1)
    single = single.contiguous(memory_format=torch.channels_last)
    starts = range(0, cut, size)
    means = [_conv_sum(layer, x[i : i + size], dy[i : i + size]) / size for i in starts]
    rows = torch.cat([*means, single])  # ((K + B) * out, in, kernel), channels last
    rows = rows.permute(0, 2, 3, 1).reshape(-1, layer.weight.numel())
    if layer.bias is not None:
        rows = torch.cat([rows, _means(dy.sum((2, 3)), subsets)], 1)
    return _products(rows, subsets)


def _norm_products(
    layer: nn.BatchNorm2d, x: Tensor, dy: Tensor, subsets: tuple[int, int]
) -> Products:
    rows = torch.cat(list(_of_samples(layer, x, dy).values()), 1)
    return _products(_means(rows, subsets), subsets)


PRODUCTS = {
    nn.Linear: _linear_products,
    nn.Conv2d: _conv_products,
    nn.BatchNorm2d: _norm_products,
}


def _means(rows: Tensor, subsets: tuple[int, int]) -> Tensor:
    """Average the rows of each subset: (N, D) to (K + B, D)."""
    cut = math.prod(subsets)
    return torch.cat([rows[:cut].unflatten(0, subsets).mean(1), rows[cut:]])


def _products(rows: Tensor, subsets: tuple[int, int]) -> Products:
    """Multiply gradients (K + B, D) as `gradient_products` needs them."""
    return rows @ rows[subsets[0] :].T, rows[: subsets[0]].square().sum(1)


def _of_samples(
    layer: nn.Conv2d | nn.BatchNorm2d, x: Tensor, dy: Tensor
) -> dict[str, Tensor]:
    """Return the gradient of every sample by parameter, (N, ...)."""
    gradients = {"bias": dy.sum((2, 3))}
    if isinstance(layer, nn.Conv2d):
        weight = dy.flatten(2) @ _patches(layer, x).transpose(1, 2)
        weight = weight.view(-1, *layer.weight.shape)  # (N, out, in, kernel)
    else:
        moment = (dy * x).sum((2, 3)) - layer.running_mean * gradients["bias"]
        weight = moment * (layer.running_var + layer.eps).rsqrt()
    return _present(layer, {"weight": weight, **gradients})


def _present(layer: nn.Module, gradients: dict[str, Tensor]) -> dict[str, Tensor]:
    return {k: rows for k, rows in gradients.items() if getattr(layer, k) is not None}


def _moments(layer: nn.Module, x: Tensor, dy: Tensor) -> Moments:
    """Return squared norms of the samples' gradients (N,) and their sums."""
    if isinstance(layer, nn.Linear):  # a sample's gradient is an outer product
        norms = (x.square().sum(1) + (layer.bias is not None)) * dy.square().sum(1)
        return norms, _present(layer, {"weight": dy.T @ x, "bias": dy.sum(0)})
    # A sample's weight gradient is the product of (out, L) and (L, in * kernel) for L
    # places. Its squared norm also follows from the two matrices (L, L) of products
    # between places, which costs less where places are few.
    out, places = dy.shape[1], dy[0, 0].numel()
    fan_in = layer.weight[0].numel()
    if isinstance(layer, nn.Conv2d) and places * (out + fan_in) < out * fan_in:
        patches, dy_flat = _patches(layer, x), dy.flatten(2)
        norms = (patches.mT @ patches * (dy_flat.mT @ dy_flat)).sum((1, 2))
        totals = {"weight": _conv_sum(layer, x, dy)}
        if layer.bias is not None:
            bias = dy.sum((2, 3))
            norms, totals["bias"] = norms + bias.square().sum(1), bias.sum(0)
        return norms, totals
    gradients = _of_samples(layer, x, dy)
    norms = sum(rows.flatten(1).square().sum(1) for rows in gradients.values())
    return norms, {key: rows.sum(0) for key, rows in gradients.items()}


def _patches(layer: nn.Conv2d, x: Tensor) -> Tensor:
    """Return what the kernel sees at every place, (N, in * kernel, L)."""
    return F.unfold(x, layer.kernel_size, layer.dilation, layer.padding, layer.stride)


def _conv_sum(layer: nn.Conv2d, x: Tensor, dy: Tensor) -> Tensor:
    """Return the sum of the samples' weight gradients."""
    geometry = layer.stride, layer.padding, layer.dilation
    return conv2d_weight(x, layer.weight.shape, dy, *geometry)
