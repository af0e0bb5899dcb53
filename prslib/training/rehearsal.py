"""Methods of training that combine the losses of new and replayed samples themselves."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from inspect import signature
from typing import Any, ClassVar, NamedTuple

from prslib.checks import expected, finite
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


class StepLoss:
    """The loss of the configuration, as `Rehearsal.objective` takes it.

    Called with logits and targets (B, C) it returns the mean loss of these rows.
    """

    def __init__(
        self, mean: Callable, batches: Sequence[Rows], at_once: Callable | None = None
    ):
        self._mean = mean
        self._batches = batches  # the new rows, then each replay batch
        self._at_once = at_once  # computes all batches in one pass

    def __call__(self, logits: Any, targets: Any, classes: Any = None) -> Any:
        """Return the mean loss of rows (B, C), of all classes or some, bool (C,)."""
        return self._mean(logits, targets, classes)

    def of_step(self, weights: Sequence[float], new_classes: Any = None) -> Any:
        """Return the weighted sum of the mean losses of the step's batches.

        A loss that takes weights, as the plain one does, sees all batches in one pass.

        Parameters
        ----------
        weights : sequence of float
            Of the new samples and of each replay batch.
        new_classes : tensor of bool, shape (C,), optional
            Classes that the loss of new samples looks at, on the host; by default all.

        Returns
        -------
        tensor of float, shape ()
            The sum.

        Raises
        ------
        ValueError
            If there is not a weight for each batch.
        """
        if len(weights) != len(self._batches):
            what = f"a weight for each of {len(self._batches)} batches"
            raise ValueError(expected(what, f"{len(weights)}"))
        if self._at_once:
            return self._at_once(weights, new_classes)
        total = 0
        classes = new_classes
        for weight, rows in zip(weights, self._batches, strict=True):
            if weight:
                total = total + weight * self(rows.logits, rows.targets, classes)
            classes = None  # of replayed samples all
        return total


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
        self, loss: StepLoss, new: Rows, replays: Sequence[Rows], **context: Any
    ) -> Any:
        """Return what a step lowers.

        Parameters
        ----------
        loss : StepLoss
            ``loss(logits, targets, classes=None)``, the loss of the configuration, a
            mean over rows; ``classes``, bool (C,), are those that it looks at. On the
            host, as "open_classes" is, no step waits for a GPU to count them.
            ``loss.of_step(weights)`` is the weighted sum over the step's batches.
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
        self, loss: StepLoss, new: Rows, replays: Sequence[Rows], **context: Any
    ) -> Any:
        """Return the loss of new samples and the two terms of replayed ones."""
        if not replays:
            return loss(new.logits, new.targets)
        past = replays[0]
        distance = (past.logits - past.kept["logits"]).square().mean()
        total = loss.of_step([1, 0, self.beta])
        return total.add(distance, alpha=self.alpha)

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
        self, loss: StepLoss, new: Rows, replays: Sequence[Rows], **context: Any
    ) -> Any:
        """Return the loss of new samples on some classes, and of replayed ones on all."""
        weights = [1] * (1 + len(replays))
        return loss.of_step(weights, new_classes=context["open_classes"])


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
