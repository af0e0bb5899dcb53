"""What a step does with new and replayed samples beside lowering their mean loss."""

from collections.abc import Callable, Sequence
from inspect import signature
from typing import Any, ClassVar, NamedTuple

from prslib.checks import finite


class Rows(NamedTuple):
    """Samples of a step: new ones, or those of one replay batch."""

    logits: Any  # tensor of float (B, C)
    targets: Any  # tensor of float (B, C)
    kept: dict[str, Any]  # what the memory keeps of them beside their index

    def split(self, count: int) -> list["Rows"]:
        """Return equal shares, one a replay batch; none of no rows."""
        size = len(self.targets) // count
        if size == 0:
            return []
        shares = [slice(i * size, (i + 1) * size) for i in range(count)]
        return [
            Rows(
                self.logits[rows],
                self.targets[rows],
                {name: column[rows] for name, column in self.kept.items()},
            )
            for rows in shares
        ]


class Rehearsal:
    """The base of what a step lowers; one of one's own defines `objective`.

    Options are keyword-only parameters of ``__init__``, with defaults.

    Attributes
    ----------
    batches : int
        Replay batches that a step draws.
    keeps : bool
        Whether `columns` are kept in the memory.
    one_label : bool
        Whether it needs a loss of one label an image.
    asks : tuple of str
        What `objective` takes by keyword: names in `prslib.losses.CONTEXT`.
    """

    batches: ClassVar[int] = 1
    keeps: ClassVar[bool] = False
    one_label: ClassVar[bool] = False
    asks: ClassVar[tuple[str, ...]] = ()

    def objective(
        self, loss: Callable, new: Rows, replays: Sequence[Rows], **context: Any
    ) -> Any:
        """Return what a step lowers.

        Parameters
        ----------
        loss : callable
            ``loss(logits, targets, replayed=False)``, as the configuration has it.
        new : Rows
            New samples; nothing is kept of them yet.
        replays : sequence of Rows
            The replay batches; none while the memory is empty.
        **context
            What ``asks`` names.

        Returns
        -------
        tensor of float, shape ()
            Its gradient is the step's.
        """
        raise NotImplementedError(f"{type(self).__name__}: expected a method objective")

    def columns(self, new: Rows) -> dict[str, Any]:
        """Return what the memory keeps of new samples, tensors (B, ...) by name."""
        return {}


class DarkExperienceReplay(Rehearsal):
    """DER++: replayed logits stay near those of old; Buzzega et al. 2020, Eq. (6).

    The memory keeps the logits that a sample had when it was new. A step adds, of one
    replay batch, alpha times the mean squared distance of logits to these, and of
    another one beta times the loss.

    Parameters
    ----------
    alpha, beta : float
        Weights of the two terms.

    Raises
    ------
    ValueError, TypeError
        If one is no number, not finite or negative.

    Examples
    --------
    >>> DarkExperienceReplay(alpha=0.2).beta
    0.5
    """

    batches = 2
    keeps = True

    def __init__(self, *, alpha: float = 0.1, beta: float = 0.5):
        self.alpha = finite("alpha", alpha, least=0)
        self.beta = finite("beta", beta, least=0)

    def objective(
        self, loss: Callable, new: Rows, replays: Sequence[Rows], **context: Any
    ) -> Any:
        """Return the loss, a term on logits and one on labels; Eq. (6)."""
        total = loss(new.logits, new.targets)
        if not replays:
            return total
        first, second = replays
        distance = (first.logits - first.kept["logits"]).square().mean()
        again = loss(second.logits, second.targets, replayed=True)
        return total + self.alpha * distance + self.beta * again

    def columns(self, new: Rows) -> dict[str, Any]:
        """Return the logits (B, C) of the step's own forward pass."""
        return {"logits": new.logits.detach()}


class AsymmetricCrossEntropy(Rehearsal):
    """ER-ACE: new samples compete among their own classes; Caccia et al. 2022, Eq. (6).

    The softmax of new samples is over the classes of their batch, that of replayed ones
    over all classes seen so far. The released code leaves in classes with a higher
    number than any seen so far; here the classes come in any order, and the paper's
    formula stands.

    Examples
    --------
    >>> AsymmetricCrossEntropy().asks
    ('class_freq',)
    """

    one_label = True
    asks = ("class_freq",)

    def objective(
        self, loss: Callable, new: Rows, replays: Sequence[Rows], **context: Any
    ) -> Any:
        """Return the losses of new and of replayed samples, each over its classes."""
        total = loss(_among(new.logits, new.targets.sum(0)), new.targets)
        for batch in replays:
            logits = _among(batch.logits, context["class_freq"])
            total = total + loss(logits, batch.targets, replayed=True)
        return total


def _among(logits: Any, counts: Any) -> Any:
    """Leave out classes (C,) with a count of 0: their softmax is 0."""
    return logits.masked_fill(counts == 0, -1e9)


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
