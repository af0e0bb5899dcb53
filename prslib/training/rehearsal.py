"""Methods of training that combine the losses of new and replayed samples themselves."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from inspect import signature
from typing import Any, ClassVar, NamedTuple

from prslib.checks import finite
from prslib.losses import CONTEXT

# what a rehearsal may ask for: that of a loss but for the rows, which it has apart
ASKS = {name: text for name, text in CONTEXT.items() if name != "replayed"} | {
    "open_classes": "which classes the new samples have, or no sample yet; bool (C,)",
}


class Rows(NamedTuple):
    """Samples of a step: the new ones, or those of one replay batch."""

    logits: Any  # tensor of float (B, C)
    targets: Any  # tensor of float (B, C)
    kept: dict[str, Any]  # what the memory keeps of them beside their index


class Rehearsal(ABC):
    """The base of methods of training beside the sampler.

    One of your own defines `objective` and, if the memory shall keep more of a sample
    than its index, `columns`. Options are keyword-only parameters of ``__init__``, with
    defaults.

    Attributes
    ----------
    batches : int
        Replay batches that a step draws.
    asks : tuple of str
        What `objective` takes by keyword: names in `ASKS`.

    Examples
    --------
    >>> class Louder(Rehearsal):
    ...     def objective(self, loss, new, replays):
    ...         total = loss(new.logits, new.targets)
    ...         for old in replays:
    ...             total = total + 2 * loss(old.logits, old.targets)
    ...         return total
    >>> Louder.batches
    1
    """

    batches: ClassVar[int] = 1
    asks: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def objective(
        self, loss: Callable, new: Rows, replays: Sequence[Rows], **context: Any
    ) -> Any:
        """Return what a step lowers.

        Parameters
        ----------
        loss : callable
            ``loss(logits, targets, classes=None)``, the loss of the configuration, a
            mean over rows; ``classes``, bool (C,), are those that it looks at. On the
            host, as "open_classes" is, no step waits for a GPU to count them.
        new : Rows
            New samples; the memory keeps nothing of them yet.
        replays : sequence of Rows
            The replay batches; none while the memory is empty.
        **context
            What ``asks`` names.

        Returns
        -------
        tensor of float, shape ()
            Its gradient is the step's.
        """

    def columns(self, new: Rows) -> dict[str, Any]:
        """Return what the memory keeps of new samples: tensors (B, ...) by name."""
        return {}


class DarkExperienceReplay(Rehearsal):
    """DER++: logits of replayed samples stay as they were; Buzzega et al. 2020.

    A step lowers the loss of new samples, plus alpha times the mean squared distance of
    the logits of one replay batch to those in memory, plus beta times the loss of
    another replay batch.

    Parameters
    ----------
    alpha, beta : float
        Weights of the two terms.

    Raises
    ------
    ValueError
        If one is negative or not finite.
    TypeError
        If one is no number.

    Notes
    -----
    The memory keeps the logits that a sample had in the step in which it was new, as in
    the paper and its code. They are never renewed. The distance is a mean over samples
    and classes, as in the code; the paper has the squared norm.

    Examples
    --------
    >>> DarkExperienceReplay(alpha=0.2).beta
    0.5
    """

    batches = 2

    def __init__(self, *, alpha: float = 0.1, beta: float = 0.5):
        self.alpha = finite("alpha", alpha, least=0)
        self.beta = finite("beta", beta, least=0)

    def objective(
        self, loss: Callable, new: Rows, replays: Sequence[Rows], **context: Any
    ) -> Any:
        """Return the loss of new samples and the two terms of replayed ones."""
        total = loss(new.logits, new.targets)
        if not replays:
            return total
        first, second = replays
        distance = (first.logits - first.kept["logits"]).square().mean()
        again = loss(second.logits, second.targets)
        return total + self.alpha * distance + self.beta * again

    def columns(self, new: Rows) -> dict[str, Any]:
        """Return the logits (B, C) of the step's own forward pass."""
        return {"logits": new.logits.detach()}


class AsymmetricCrossEntropy(Rehearsal):
    """ER-ACE: new samples leave old classes alone; Caccia et al. 2022.

    The loss of new samples looks at the classes of their batch and at those that have
    not come yet. The loss of replayed samples looks at all classes.

    Notes
    -----
    The paper leaves out classes that have not come yet; the code that its authors
    released leaves them in, and so does this. That code takes the newest class and all
    with a higher number for those; here classes may come in any order.
    With several labels an image the classes of a batch are those of any of its samples,
    as in the code of Menabue et al. 2024.

    Examples
    --------
    >>> AsymmetricCrossEntropy().asks
    ('open_classes',)
    """

    asks = ("open_classes",)

    def objective(
        self, loss: Callable, new: Rows, replays: Sequence[Rows], **context: Any
    ) -> Any:
        """Return the loss of new samples on some classes, and of replayed ones on all."""
        total = loss(new.logits, new.targets, classes=context["open_classes"])
        for old in replays:
            total = total + loss(old.logits, old.targets)
        return total


REHEARSALS: dict[str, type[Rehearsal]] = {
    "der++": DarkExperienceReplay,
    "er-ace": AsymmetricCrossEntropy,
}


def rehearsal_options(name: str | None) -> dict[str, object]:
    """Return the options of a key of `REHEARSALS` and their defaults; none of None."""
    if name is None:
        return {}
    rows = signature(REHEARSALS[name]).parameters
    return {option: row.default for option, row in rows.items()}
