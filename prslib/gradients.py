"""Gradients of single samples and their products, for EWC, GSS and the gradient variance."""

from collections.abc import Callable, Iterable
from contextlib import nullcontext

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from prslib.models.networks import Staged


class EWC:
    """Elastic weight consolidation (Kirkpatrick et al. 2017, Eq. 3).

    The penalty is strength / 2 * sum of fisher * (weight - anchor) ** 2 over all weights.

    Parameters
    ----------
    model : Module
        Stages that are trained.
    strength : float
        Weight of the penalty, lambda of Eq. 3.

    Notes
    -----
    The original adds a penalty at the end of every task. Because the learner in the PRS
    paper does not know where a task ends, prslib treats every batch as a task: after
    the step on a batch, it adds a penalty with the batch's Fisher information at the
    new weights. Up to a constant, the sum of these penalties is a single penalty. Its
    Fisher information is the sum over batches, and its anchor is the mean of the past
    weights, weighted by the Fisher information of each batch. The penalty is divided by
    the number of batches, so that lambda refers to the Fisher information of one
    sample. The Fisher information is the empirical one, the mean over samples of the
    squared gradient.
    """

    def __init__(self, model: nn.Module, strength: float):
        self.strength = strength
        self.batches = 0
        self.weights = dict(model.named_parameters())
        self.total = {name: torch.zeros_like(w) for name, w in self.weights.items()}
        self.anchor = {name: w.detach().clone() for name, w in self.weights.items()}

    @torch.no_grad()
    def pull(self) -> None:
        """Add the penalty's gradient to the gradient of the loss."""
        if self.batches == 0:
            return
        scale = self.strength / self.batches
        for name, weight in self.weights.items():
            distance = weight - self.anchor[name]
            assert weight.grad is not None  # a step has just computed it
            weight.grad.addcmul_(self.total[name], distance, value=scale)

    @torch.no_grad()
    def observe(self, gradients: dict[str, Tensor]) -> None:
        """Add a batch's penalty at the present weights, from its samples' gradients."""
        self.batches += 1
        for name, weight in self.weights.items():
            fisher = gradients[name].square().mean(0)
            total, anchor = self.total[name], self.anchor[name]
            total.add_(fisher)
            share = torch.where(total > 0, fisher / total, 0)
            anchor.addcmul_(share, weight - anchor)


def sample_gradients(
    model: nn.Module, loss: Callable, inputs: Tensor, targets: Tensor
) -> dict[str, Tensor]:
    """Return the gradient of each sample's loss, (N, ...) for each parameter."""
    weights = {name: w.detach() for name, w in model.named_parameters()}

    def loss_of_sample(weights: dict, x: Tensor, y: Tensor) -> Tensor:
        return loss(functional_call(model, weights, (x[None],)), y[None])

    model.eval()  # batch norm would mix the samples of a batch
    gradients = vmap(grad(loss_of_sample), (None, 0, 0))(weights, inputs, targets)
    model.train()
    return gradients


def gradient_products(
    model: nn.Module,
    loss: Callable,
    inputs: Tensor,
    targets: Tensor,
    subset_shape: tuple[int, int],
    autocast: Callable = nullcontext,
) -> Tensor:
    """Return the inner products of gradients that GSS needs, float64 (K + B, K + B).

    The first K * n samples form K subsets of n samples, and the mean gradient of each
    subset is used. Each of the other B samples has a separate gradient.
    """
    count, size = subset_shape
    cut = count * size
    if is_plain(model):
        pairs = pair_products(model, loss, inputs, targets)
        unit = torch.eye(len(inputs) - cut, device=pairs.device).to(pairs)
        means = torch.eye(count, device=pairs.device).repeat_interleave(size, 1) / size
        averaging = torch.block_diag(means.to(pairs), unit)  # (K + B, N)
        return averaging @ pairs @ averaging.T
    # batch norm under vmap cannot compute in half precision
    single = sample_gradients(model, loss, inputs[cut:], targets[cut:])
    weights = list(model.parameters())
    means = []
    model.eval()
    for x, y in zip(inputs[:cut].split(size), targets[:cut].split(size), strict=True):
        with autocast():
            logits = model(x)
        means.append(torch.autograd.grad(loss(logits.float(), y), weights))
    model.train()
    table = torch.zeros((), dtype=torch.float64, device=inputs.device)
    for number, of_samples in enumerate(single.values()):
        of_subsets = torch.stack([gradients[number] for gradients in means])
        rows = torch.cat([of_subsets, of_samples]).flatten(1)
        table = table + (rows @ rows.T).double()
    return table


def is_plain(model: nn.Module) -> bool:
    """Return whether a network is a sequence of linear layers and ReLU.

    The network may flatten its inputs first.
    """
    kinds = {nn.Linear, nn.ReLU, nn.Flatten, nn.Sequential, Staged}
    _, *layers = [layer for layer in model.modules() if not list(layer.children())]
    names = [name for name, _ in model.named_parameters(remove_duplicate=False)]
    return (
        kinds.issuperset(map(type, model.modules()))
        and nn.Flatten not in map(type, layers)
        and {"weight", "bias"}.issuperset(name.rpartition(".")[2] for name in names)
        and len(names) == len(list(model.parameters()))  # no weights are shared
    )


def pair_products(
    model: nn.Module, loss: Callable, inputs: Tensor, targets: Tensor
) -> Tensor:
    """Return the products of all pairs of samples' gradients, float64 (N, N).

    The gradient of a linear layer's weight is the outer product of dy and x, where x is
    the input of the layer and dy is the gradient of its output. Two samples therefore
    have the product (dy . dy') (x . x'), plus dy . dy' if there is a bias. This needs far fewer
    operations than the gradients themselves.
    """
    linear = []
    x = inputs
    for _, layer in model.named_modules(remove_duplicate=False):
        if isinstance(layer, nn.Linear):
            y = layer(x)
            linear.append((x.detach(), y, layer.bias is not None))
            x = y.clone()  # ReLU may change it in place
        elif not list(layer.children()):
            x = layer(x)
    total = loss(x, targets) * len(inputs)  # the loss is a mean over samples
    slopes = torch.autograd.grad(total, [y for _, y, _ in linear])
    table = torch.zeros((), dtype=torch.float64, device=inputs.device)
    for (x, _, has_bias), dy in zip(linear, slopes, strict=True):
        table = table + ((x @ x.T + has_bias) * (dy @ dy.T)).double()
    return table


def gradient_variance(
    model: nn.Module, loss: Callable, batches: Iterable[tuple[Tensor, Tensor]]
) -> float:
    """Return the trace of the gradients' covariance (Sec. "Gradient Variance").

    It is exact: the mean squared norm of a sample's gradient minus the squared norm of
    the mean gradient. A term that all samples share, such as a penalty on the weights,
    drops out.
    """
    if is_plain(model):
        inputs, targets = (torch.cat(rows) for rows in zip(*batches, strict=True))
        pairs = pair_products(model, loss, inputs, targets)
        return max(float(pairs.diagonal().mean() - pairs.mean()), 0.0)
    count = 0
    squares = 0.0
    sums = {}
    for inputs, targets in batches:
        count += len(inputs)
        for name, rows in sample_gradients(model, loss, inputs, targets).items():
            squares += rows.square().sum().double()
            sums[name] = sums.get(name, 0) + rows.sum(0).double()
    norm = sum(total.square().sum() for total in sums.values()) / count**2
    return max(float(squares / count - norm), 0.0)
