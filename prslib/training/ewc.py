"""Elastic Weight Consolidation, online (Kirkpatrick et al. 2017)."""

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor


class EWC:
    """A pull on weights to where the stream needed them (Kirkpatrick et al., Eq. 3).

    The penalty is strength / 2 * sum of fisher * (weight - anchor) ** 2. The original
    adds one at the end of every task. The paper's learner is not told where a task
    ends, and the paper does not say how its EWC comes to know. Here every batch is a
    task: after its step it adds a penalty with its Fisher information at the new
    weights. Up to a constant the sum of these is one penalty: its Fisher is the sum,
    its anchor the mean of the past weights, weighted by their batches' Fisher. The sum
    is divided by the number of batches, so that lambda weighs a Fisher of one sample,
    as in a single task. The Fisher is the empirical one: the mean of each sample's
    squared gradient of the loss with its own labels. Lambda is the paper's (Appendix).
    """

    def __init__(self, parameters: Iterable[tuple[str, Tensor]], strength: float):
        self.strength = strength
        self.batches = 0
        self.weights = {name: w for name, w in parameters if w.requires_grad}
        self.total = {name: torch.zeros_like(w) for name, w in self.weights.items()}
        self.anchor = {name: w.detach().clone() for name, w in self.weights.items()}

    @torch.no_grad()
    def pull(self) -> None:
        """Add the penalty's gradient to the weights' ``grad``; none before a batch."""
        if self.batches == 0:
            return
        scale = self.strength / self.batches
        for name, weight in self.weights.items():
            distance = weight - self.anchor[name]
            assert weight.grad is not None  # a step has just set it
            weight.grad.addcmul_(self.total[name], distance, value=scale)

    @torch.no_grad()
    def observe(self, fisher: Mapping[str, Tensor]) -> None:
        """Add a batch's penalty at the present weights, given every weight's Fisher."""
        self.batches += 1
        for name, weight in self.weights.items():
            total, anchor = self.total[name], self.anchor[name]
            total.add_(fisher[name])
            share = torch.where(total > 0, fisher[name] / total, 0)
            anchor.addcmul_(share, weight - anchor)

    def state_dict(self) -> dict:
        """Return the penalty of the stream so far."""
        return {"batches": self.batches, "total": self.total, "anchor": self.anchor}

    def load_state_dict(self, state: dict) -> None:
        """Go back to what `state_dict` returned."""
        vars(self).update(state)
