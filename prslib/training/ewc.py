"""Elastic weight consolidation without tasks: what mattered to the stream so far holds on."""

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor


class EWC:
    """Pull weights back to where the stream needed them (Kirkpatrick et al. 2017, Eq. 3).

    The penalty is ``strength / 2 * sum of fisher * (weight - anchor) ** 2``.

    Parameters
    ----------
    parameters : iterable of (str, Tensor)
        The trained weights by name, as ``named_parameters`` gives them.
    strength : float
        Lambda; the paper's 15000 was found on its own data (Appendix, "Baselines").

    Notes
    -----
    The original method adds one penalty at the end of every task. In the paper's setting the
    learner is not told where a task ends and the paper does not say how its EWC comes to know. Here
    every batch is a task of its own: after its step it leaves a penalty with its Fisher information
    at the weights that step led to. A sum of such penalties is again one of the same form, up to a
    constant: its Fisher is the sum, its anchor the mean of the past weights, each weighted by its
    batch's Fisher. Nothing is approximated by keeping these two alone. The sum is divided by
    the number of batches, so that lambda does not grow with the stream and weighs a Fisher of one
    sample, as in a single task.

    The Fisher is the empirical one, the mean over the batch of the squared gradients of each
    sample's loss, with the labels that the sample has, one or many.

    Examples
    --------
    >>> weight = torch.tensor([1.0], requires_grad=True)
    >>> ewc = EWC([("weight", weight)], strength=10.0)
    >>> ewc.observe({"weight": torch.tensor([0.5])})
    >>> weight.data += 1
    >>> weight.grad = torch.zeros(1)
    >>> ewc.pull()
    >>> weight.grad
    tensor([5.])
    """

    def __init__(self, parameters: Iterable[tuple[str, Tensor]], strength: float):
        self.strength = strength
        self.batches = 0
        self._parameters = {name: weight for name, weight in parameters if weight.requires_grad}
        self._total = {name: torch.zeros_like(w) for name, w in self._parameters.items()}
        self._anchor = {name: w.detach().clone() for name, w in self._parameters.items()}

    @torch.no_grad()
    def pull(self) -> None:
        """Add the penalty's gradient to the weights' ``grad``; nothing before the first batch."""
        if self.batches == 0:
            return
        scale = self.strength / self.batches
        for name, weight in self._parameters.items():
            weight.grad.addcmul_(self._total[name], weight - self._anchor[name], value=scale)

    @torch.no_grad()
    def observe(self, squares: Mapping[str, Tensor]) -> None:
        """Add the penalty that a batch leaves at the present weights.

        Parameters
        ----------
        squares : mapping of str to Tensor
            The batch's Fisher for every weight, as `prslib.training.gradients.squared_gradients` gives it.
        """
        self.batches += 1
        for name, weight in self._parameters.items():
            total, anchor = self._total[name].add_(squares[name]), self._anchor[name]
            share = torch.where(total > 0, squares[name] / total, 0)
            anchor.addcmul_(share, weight - anchor)

    def state_dict(self) -> dict:
        """Return the penalty as the stream has made it so far."""
        return {"batches": self.batches, "total": self._total, "anchor": self._anchor}

    @torch.no_grad()
    def load_state_dict(self, state: dict) -> None:
        """Go back to what `state_dict` returned, in place."""
        self.batches = state["batches"]
        for name in self._parameters:
            self._total[name].copy_(state["total"][name])
            self._anchor[name].copy_(state["anchor"][name])
