"""Compute gradients of single samples, or only their products.

EWC, GSS and the gradient variance need them.
"""

from collections.abc import Callable, Iterable
from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from prslib.checks import expected
from prslib.models.networks import Staged
from prslib.training.device import Inputs
from prslib.training.replay import Replay

SAMPLES_AT_ONCE = 20  # as in a training step


def sample_gradients(
    model: nn.Module, loss: Callable, inputs: Tensor, targets: Tensor
) -> dict[str, Tensor]:
    """Return the gradient of each sample's own loss by parameter, (N, ...) each.

    Frozen parameters have none.
    """
    refuse_shared_weights(model)
    weights = {name: w for name, w in model.named_parameters() if w.requires_grad}

    def loss_of_sample(weights: dict, x: Tensor, y: Tensor) -> Tensor:
        return loss(functional_call(model, weights, (x[None],)), y[None])

    was_training = model.training
    model.eval()  # else a sample's gradient would depend on the others of its batch
    rows = vmap(grad(loss_of_sample), (None, 0, 0))(weights, inputs, targets)
    model.train(was_training)
    return {name: gradients.detach() for name, gradients in rows.items()}


def refuse_shared_weights(model: nn.Module) -> None:
    """Refuse a network whose layers share weights: their gradients would mix."""
    names = list(model.named_parameters(remove_duplicate=False))
    if len(names) > len(list(model.parameters())):
        raise TypeError(expected("a network whose layers share no weights", model))


def gradient_products(
    model: nn.Module,
    loss: Callable,
    inputs: Tensor,
    targets: Tensor,
    subset_shape: tuple[int, int],
    autocast: Callable = nullcontext,
) -> Tensor:
    """Return the products that GSS reads, float64 (K + B, K + B).

    The first K * n samples are K subsets of n, each with its mean gradient. The other B
    samples stand for themselves, each with its own gradient. The subsets' forward passes
    are in the context ``autocast()``: they are most of the work.
    """
    count, size = subset_shape
    cut = count * size
    if is_plain(model):
        pairs = pair_products(model, loss, inputs, targets)
        unit = partial(torch.eye, dtype=pairs.dtype, device=pairs.device)
        means = torch.eye(count, device=pairs.device).repeat_interleave(size, 1) / size
        averaging = torch.block_diag(means.to(pairs), unit(len(inputs) - cut))
        return averaging @ pairs @ averaging.T
    # batch norm under vmap takes no half precision
    single = sample_gradients(model, loss, inputs[cut:], targets[cut:])
    weights = [w for w in model.parameters() if w.requires_grad]
    gradient = partial(torch.autograd.grad, allow_unused=True, materialize_grads=True)
    subsets = [rows[:cut].split(size) for rows in (inputs, targets)]
    was_training = model.training
    model.eval()
    means = []
    for x, y in zip(*subsets, strict=True):
        with autocast():
            logits = model(x)
        means.append(gradient(loss(logits.float(), y), weights))
    model.train(was_training)
    table = torch.zeros((), dtype=torch.float64, device=inputs.device)
    for number, of_samples in enumerate(single.values()):
        of_subsets = torch.stack([gradients[number] for gradients in means])
        rows = torch.cat([of_subsets, of_samples]).flatten(1)
        table = table + (rows @ rows.T).double()
    return table


def is_plain(model: nn.Module) -> bool:
    """Tell whether a network is linear layers and ReLU, one after another, all trained.

    It may flatten its inputs first.
    """
    kinds = {nn.Linear, nn.ReLU, nn.Flatten, nn.Sequential, Staged}
    # the first may flatten the inputs
    _, *layers = [layer for layer in model.modules() if not list(layer.children())]
    names = {name.rpartition(".")[2] for name, _ in model.named_parameters()}
    return (
        kinds.issuperset(map(type, model.modules()))
        and nn.Flatten not in map(type, layers)
        and all(weight.requires_grad for weight in model.parameters())
        and {"weight"} <= names <= {"weight", "bias"}  # not of spectral_norm
    )


def pair_products(
    model: nn.Module, loss: Callable, inputs: Tensor, targets: Tensor
) -> Tensor:
    """Return the products of all pairs of samples' gradients, float64 (N, N).

    The network is plain (`is_plain`). The gradient of a linear layer's weight is the
    outer product of dy, the gradient of its output, and its input x. So two samples
    have the product (dy . dy') (x . x'), and dy . dy' for the bias: far less to compute
    than the gradients themselves.
    """
    refuse_shared_weights(model)
    linear = []
    x = inputs
    for _, layer in model.named_modules(remove_duplicate=False):
        if isinstance(layer, nn.Linear):
            y = layer(x)
            linear.append((x.detach(), y, layer.bias is not None))
            x = y.clone()  # ReLU may change it in place
        elif not isinstance(layer, nn.Sequential | Staged):
            x = layer(x)
    total = loss(x, targets) * len(inputs)  # the loss is a mean over samples
    slopes = torch.autograd.grad(total, [y for _, y, _ in linear])
    table = torch.zeros((), dtype=torch.float64, device=inputs.device)
    for (x, _, has_bias), dy in zip(linear, slopes, strict=True):
        table = table + ((x @ x.T + has_bias) * (dy @ dy.T)).double()
    return table


def squared_gradients(
    model: nn.Module, loss: Callable, inputs: Tensor, targets: Tensor
) -> dict[str, Tensor]:
    """Return the mean over samples of each parameter's squared gradient (EWC)."""
    gradients = sample_gradients(model, loss, inputs, targets)
    return {name: rows.square_().mean(0) for name, rows in gradients.items()}


def gradient_variance(
    model: nn.Module, loss: Callable, batches: Iterable[tuple[Tensor, Tensor]]
) -> float:
    """Return the trace of the gradients' covariance (Sec. "Gradient Variance")."""
    # Exact: the mean squared norm of a sample's gradient less the squared norm of the
    # mean one. A term of the loss that all samples share, such as a penalty on the
    # weights, drops out.
    columns = list(zip(*batches, strict=True)) if is_plain(model) else []
    if columns:
        inputs, targets = map(torch.cat, columns)
        pairs = pair_products(model, loss, inputs, targets)
        return max(float(pairs.diagonal().mean() - pairs.mean()), 0.0)
    count = 0
    squares = 0.0
    sums = {}
    for inputs, targets in batches:
        gradients = sample_gradients(model, loss, inputs, targets)
        for name, rows in gradients.items():
            squares += rows.square().sum().double()
            sums[name] = sums.get(name, 0) + rows.sum(0).double()
        count += len(inputs)
    if count == 0:
        raise ValueError(expected("at least one sample", "none"))
    mean = sum(total.square().sum() for total in sums.values()) / count**2
    return max(float(squares / count - mean), 0.0)


def memory_variance(
    learner: Any, inputs: Inputs, labels: Inputs, replay: Replay
) -> float:
    """Return the gradient variance over a memory's images, or ExStream's vectors."""
    slots = replay.memory.filled
    no_rows = np.empty(0, np.int64)
    batches = (
        learner.join(inputs, labels, no_rows, slots[i : i + SAMPLES_AT_ONCE], replay)
        for i in range(0, len(slots), SAMPLES_AT_ONCE)
    )
    return gradient_variance(learner.upper, learner.loss, batches)
