"""Compute the gradient of every sample, or of groups of them, by `torch.func`.

EWC, GSS and the gradient variance need more than a batch's own gradient.
"""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from prslib.checks import expected
from prslib.training.device import Inputs
from prslib.training.replay import Replay

SAMPLES_AT_ONCE = 20  # as in a training step: measuring needs no more memory


def group_gradients(
    model: nn.Module, loss: Callable, inputs: Tensor, targets: Tensor
) -> dict[str, Tensor]:
    """Return the gradient of each group's loss by parameter, (G, ...) each.

    Inputs are (G, n, ...) and targets (G, n, C): G groups of n samples. Frozen
    parameters have none. Dropout is off, and batch norm uses its running statistics: a
    batch's own would make a sample's gradient depend on the others.
    """
    names = list(model.named_parameters(remove_duplicate=False))
    if len(names) > len(list(model.parameters())):  # functional_call mixes them up
        raise TypeError(expected("a network whose layers share no weights", model))
    weights = {name: w for name, w in model.named_parameters() if w.requires_grad}

    def loss_of_group(weights: dict, inputs: Tensor, targets: Tensor) -> Tensor:
        return loss(functional_call(model, weights, (inputs,)), targets)

    training = [layer for layer in model.modules() if layer.training]
    model.eval()
    gradients = vmap(grad(loss_of_group), (None, 0, 0))(weights, inputs, targets)
    for layer in training:
        layer.training = True
    return {name: rows.detach() for name, rows in gradients.items()}


def sample_gradients(
    model: nn.Module, loss: Callable, inputs: Tensor, targets: Tensor
) -> dict[str, Tensor]:
    """Return the gradient of each sample's own loss by parameter, (N, ...) each."""
    return group_gradients(model, loss, inputs[:, None], targets[:, None])


def gradient_products(subsets: dict[str, Tensor], samples: dict[str, Tensor]) -> Tensor:
    """Return the products GSS reads, float64 (K + B, K + B), of K means and B samples.

    Two subsets are never compared: their product stays 0.
    """
    count, new = (len(next(iter(rows.values()))) for rows in (subsets, samples))
    device = next(iter(samples.values())).device
    table = torch.zeros(count + new, count + new, dtype=torch.float64, device=device)
    for name in samples:
        means, single = subsets[name].flatten(1), samples[name].flatten(1)
        table[:count, count:] += means @ single.T
        table[count:, count:] += single @ single.T
        table.diagonal()[:count] += torch.linalg.vector_norm(means, dim=1) ** 2
    table[count:, :count] = table[:count, count:].T
    return table


def squared_gradients(
    model: nn.Module, loss: Callable, inputs: Tensor, targets: Tensor
) -> dict[str, Tensor]:
    """Return the mean over samples of each parameter's squared gradient (EWC)."""
    gradients = sample_gradients(model, loss, inputs, targets)
    return {name: rows.square().mean(0) for name, rows in gradients.items()}


def gradient_variance(
    model: nn.Module, loss: Callable, batches: Iterable[tuple[Tensor, Tensor]]
) -> float:
    """Return the trace of the gradients' covariance (Sec. "Gradient Variance")."""
    # Exact: the mean squared norm of a sample's gradient less the squared norm of the
    # mean one. A term of the loss that all samples share, such as a penalty on the
    # weights, drops out.
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
