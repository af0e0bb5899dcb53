"""Check what every sampler promises, and whether one of PRS decides as Algorithm 1 does.

What PRS decides on eight streams lies in samplers/embedded/conformance.jsonl.gz for any language: a
line that says what each field means, then each stream's line and a line a sample.
"""

import gzip
import inspect
import json
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from prslib.paths import PACKAGE
from prslib.samplers import Sampler, is_sampler
from prslib.samplers.reference import ReferencePRS

VECTORS = PACKAGE / "samplers" / "embedded" / "conformance.jsonl.gz"
EQUATIONS = {  # what can depart, in the order of Algorithm 1
    "fill": "Algorithm 1, lines 6-9: the first m samples fill the memory",
    "partition": "Eq. (1): the partition p_i",
    "acceptance": "Eq. (2): the probability of being accepted",
    "surplus": "Eq. (3): the surplus delta_i",
    "class_probability": "Sec. 3.4: the class to shrink, softmax(delta_i) over delta_i > 0",
    "candidates": "Eq. (4): the set K",
    "distance": "Eq. (5): the distance to the target",
    "tie": "Eq. (5): equally good slots are equally likely",
}
LEVEL = 1e-6  # of each test; four a stream make one false alarm in 30,000 checks
BATCH = 10
NEVER = 1e-12  # a class with a smaller chance is never drawn
LEAST = 25  # expected acceptances and rejections in a stratum


class Stream(NamedTuple):
    """Labels and uniform numbers that PRS is checked on."""

    name: str
    size: int
    rho: float
    labels: np.ndarray  # bool (T, C)
    uniforms: np.ndarray  # (T, 3)

    def reference(self) -> ReferencePRS:
        """Return an empty reference for the stream."""
        return ReferencePRS(self.size, self.labels.shape[1], 0, rho=self.rho)


class Departure(NamedTuple):
    """A difference between a sampler and Algorithm 1 on one stream."""

    part: str  # a key of `EQUATIONS`
    stream: str
    text: str
    times: int = 1


def quantities(plain: ReferencePRS, y: np.ndarray) -> dict:
    """Return what a reference with a full memory says of a sample before numbers are drawn."""
    p = plain.partition(y)
    shown = {"partition": p, "acceptance": plain.acceptance(y, p), "surplus": plain.surplus(p)}
    return shown | {"class_probability": plain.class_probability(shown["surplus"])}


def read_vectors() -> list[tuple[Stream, list[dict]]]:
    """Read the embedded streams, and what the reference decided about each sample."""
    with gzip.open(VECTORS, "rt", encoding="utf-8") as file:
        lines = [json.loads(line) for line in file][1:]
    heads = [k for k, line in enumerate(lines) if "stream" in line]
    read = []
    for start, end in zip(heads, [*heads[1:], len(lines)], strict=True):
        head, own = lines[start], lines[start + 1 : end]
        labels = np.zeros((len(own), head["num_classes"]), bool)
        for row, step in zip(labels, own, strict=True):
            row[step["labels"]] = True
        uniforms = np.array([step["uniforms"] for step in own])
        read.append((Stream(head["stream"], head["size"], head["rho"], labels, uniforms), own))
    return read


def departures(
    make: Callable[..., Sampler], seeds: int = 5, only: list[str] | None = None
) -> list[Departure]:
    """Compare an implementation of PRS with Algorithm 1 on the embedded streams.

    Parameters
    ----------
    make : callable
        ``make(size, num_classes, seed, rho=rho)`` returns an empty sampler; one without ``rho`` is
        checked on the streams with rho 0.
    seeds : int
        Runs a stream.
    only : list of str or None
        Names of streams; None for all.

    Returns
    -------
    list of Departure
        In the order of Algorithm 1, empty where there is nothing to find.

    Notes
    -----
    The reference follows the sampler slot by slot and says what could have happened next. If
    ``place`` has a parameter ``uniforms`` it gets the file's, (B, 3), and must do what follows from
    them. Else the choices of the runs are tested: how many samples were accepted, in strata of s,
    by chi-square; the class and the rank among ties by Kolmogorov and Smirnov.
    """
    found, takes_rho = [], _takes(make, "rho")
    for stream, _ in read_vectors():
        if (only and stream.name not in only) or (stream.rho and not takes_rho):
            continue
        record = _Record(stream)
        for seed in range(seeds):
            options = {"rho": stream.rho} if takes_rho else {}
            sampler = make(stream.size, stream.labels.shape[1], seed, **options)
            if record.follow(sampler, np.random.default_rng(seed)):
                break  # the numbers are given: another seed changes nothing
        found += record.departures()
    return sorted(found, key=lambda one: list(EQUATIONS).index(one.part))


def _takes(function: Callable, name: str) -> bool:
    return name in inspect.signature(function).parameters


class _Record:
    def __init__(self, stream: Stream):
        self.stream, self.found = stream, {}
        self.coins, self.ranks = [], {"class_probability": [], "slot": [], "age": []}

    def depart(self, part: str, t: int, text: str) -> None:
        first = self.found.get(part, Departure(part, self.stream.name, f"sample {t}: {text}", 0))
        self.found[part] = first._replace(times=first.times + 1)

    def follow(self, sampler: Sampler, rng: np.random.Generator) -> bool:
        """Let a sampler decide the stream; tell whether it takes the numbers that it is given."""
        stream, given = self.stream, _takes(sampler.place, "uniforms")
        plain, own, came = stream.reference(), {}, np.zeros(stream.size)  # own: slot to ours
        for start in range(0, len(stream.labels), BATCH):
            rows, numbers = (part[start : start + BATCH] for part in stream[3:])
            if hasattr(sampler, "explain") and len(own) == stream.size:
                self.compare(sampler.explain(rows[0]), plain, rows[0], start)
            slots = sampler.place(rows, uniforms=numbers) if given else sampler.place(rows)
            for t, (y, u, slot) in enumerate(zip(rows, numbers, slots, strict=True), start):
                full = len(own) == stream.size
                if (slot >= 0) == (slot not in own) if full else slot < 0 or slot in own:
                    wanted = "-1 or a slot" if full else "a free slot"
                    self.depart("fill", t, f"expected {wanted}, got {slot}")
                    return given
                if full:
                    self.decide(plain, y, own.get(slot, -1), u if given else None, came, rng, t)
                if slot >= 0:
                    came[own.setdefault(slot, len(own))] = t
                plain.follow(y, own.get(slot, -1))
        return given

    def compare(self, shown, plain: ReferencePRS, y: np.ndarray, t: int) -> None:
        for name, value in quantities(plain, y).items():
            theirs = getattr(shown, name, value)
            if not np.allclose(theirs, value, rtol=1e-5, atol=1e-6):
                worst = np.abs(np.subtract(theirs, value)).argmax()
                a, b = np.ravel(value)[worst], np.ravel(theirs)[worst]
                self.depart(name, t, f"expected {name} {a:.6g}, explain gives {b:.6g}")

    def decide(self, plain, y, slot, u, came, rng, t) -> None:
        """Look at one decision with a full memory; u is None where the sampler draws its own."""
        p, s, delta, chance = quantities(plain, y).values()
        accepted, number = slot >= 0, "" if u is None else f" and the number {u[0]}"
        self.coins += [(s, accepted)] if u is None else []
        if accepted < (s >= 1 - 1e-9) or (u is not None and accepted != (u[0] < s)):
            said = "accepted" if accepted else "not accepted"
            self.depart("acceptance", t, f"{said} at s = {s:.6g}{number}")
        if not accepted:
            return
        likely = np.flatnonzero(chance > NEVER).tolist()
        possible = likely if u is None else [plain.draw_class(chance, u[1])]
        ties = {}  # of each class of the sample that goes
        for c in possible:
            if plain.labels_of([slot])[0, c]:
                k = plain.candidates(c, plain.scarce(y, delta))
                ties[c] = k, plain.leaving(k, plain.distances(k, p))
        for part, at in (("candidates", 0), ("distance", 1)):
            left = {c: sets for c, sets in ties.items() if slot in sets[at]}
            if ties and not left:
                slots = np.sort(next(iter(ties.values()))[at]).tolist()
                self.depart(part, t, f"expected one of the slots {slots} to go, got {slot}")
                return
            ties = left
        if not ties:
            classes = np.flatnonzero(plain.labels_of([slot])[0]).tolist()
            text = f"expected a sample of a class of {possible} to go, got one of {classes}"
            self.depart("class_probability", t, text)
            return
        # which class was drawn is not seen: draw one as likely as it was
        odds = np.array([chance[c] / len(leaving) for c, (_, leaving) in ties.items()])
        c = rng.choice(list(ties), p=odds / odds.sum())
        if u is None and len(possible) > 1:
            order = np.lexsort([np.arange(len(delta)), delta])
            below = chance[order[: order.tolist().index(c)]].sum()
            self.ranks["class_probability"].append(below + chance[c] * rng.random())
        _, leaving = ties[c]
        if len(leaving) > 1:
            for name, key in (("slot", np.arange(len(came))), ("age", came)):
                rank = (key[leaving] < key[slot]).sum() + rng.random()
                self.ranks[name].append(rank / len(leaving))

    def unlikely(self, part: str, p: float, text: str) -> None:
        if p < LEVEL and part not in self.found:
            self.found[part] = Departure(part, self.stream.name, f"{text} (p = {p:.0e})")

    def departures(self) -> list[Departure]:
        from scipy.stats import chi2, kstest

        if strata := _strata(self.coins):
            z = [(a - s).sum() ** 2 / (s * (1 - s)).sum() for s, a in strata]
            s, a = strata[int(np.argmax(z))]
            text = f"{a.sum():.0f} samples accepted where {s.sum():.0f} were expected"
            self.unlikely("acceptance", chi2.sf(sum(z), len(z)), text)
        for name, ranks in self.ranks.items():
            if ranks:
                part = name if name in EQUATIONS else "tie"
                text = f"mean rank by {name} {np.mean(ranks):.2f}, not 0.50, of {len(ranks)} draws"
                self.unlikely(part, kstest(ranks, "uniform").pvalue, text)
        return list(self.found.values())


def _strata(coins: list[tuple[float, bool]]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Cut coins, in the order of their chance, where enough of both sides are expected."""
    coins, strata, start = np.array(sorted(c for c in coins if c[0] < 1)).reshape(-1, 2), [], 0
    for end in range(1, len(coins) + 1):
        s = coins[start:end, 0]
        if min(s.sum(), (1 - s).sum()) >= LEAST:
            strata.append((s, coins[start:end, 1]))
            start = end
    return strata


def check_sampler(make: Callable[..., Sampler], context: Callable | None = None) -> None:
    """Check what every sampler promises, as scikit-learn's `check_estimator` does (`Sampler`).

    Parameters
    ----------
    make : callable
        ``make(size, num_classes, seed)`` returns an empty sampler, as its class does.
    context : callable, optional
        ``context(sampler, labels, start)`` returns the keyword arguments that ``place`` needs for
        the labels, which are the stream's from row ``start`` on.

    Raises
    ------
    AssertionError
        With what was expected and what came.

    Examples
    --------
    >>> from prslib import SAMPLERS
    >>> check_sampler(SAMPLERS["cbrs"])
    """
    rng = np.random.default_rng(0)
    stream = rng.random((400, 8)) < [0.5, 0.4, 0.3, 0.2, 0.2, 0.1, 0.1, 0.1]
    stream[:200, 7] = False
    stream[5] = False
    kept, numbers = stream.copy(), np.random.get_state()[1].copy()
    frozen = np.repeat(stream, 2, axis=1)[:, ::2]
    frozen.flags.writeable = False
    _, first, second, _ = (_run(make, context, stream, batch) for batch in (1, 7, 7, 1000))
    _expect((stream == kept).all(), "the labels to be as they were", "others")
    _expect((first == second).all(), "equal slots from equal seeds", "others")
    _expect((np.random.get_state()[1] == numbers).all(), "numpy's global seed untouched", "used")
    same = (_run(make, context, frozen, 7) == first).all()
    _expect(same, "equal slots from read-only labels that are not contiguous", "others")
    _run(make, context, np.ones((50, 1), bool), 10, size=1)


def _run(make, context, stream: np.ndarray, batch: int, size: int = 25) -> np.ndarray:
    """Let a new sampler decide a stream, check it after every batch, and return all slots."""
    sampler, classes = make(size, stream.shape[1], 7), stream.shape[1]
    _expect(is_sampler(sampler), "the attributes of Sampler", f"{sampler!r}")
    mirror, answers = np.zeros((size, classes), bool), []
    for start in (0, *range(0, len(stream), batch)):
        rows = stream[start : start + batch] if answers else stream[:0]
        given = context(sampler, rows, start) if context else {}
        slots = np.asarray(sampler.place(rows, **given))
        fit = slots.shape == (len(rows),) and slots.dtype.kind == "i"
        _expect(fit, f"{len(rows)} whole numbers as slots", f"{slots!r}")
        inside = ((slots >= -1) & (slots < size)).all()
        _expect(inside, f"slots from -1 to {size - 1}", f"{slots}")
        _expect((slots[~rows.any(axis=1)] == -1).all(), "-1 for a sample without label", "a slot")
        answers.append(slots)
        for row, slot in zip(rows, slots, strict=True):
            mirror[slot] = row if slot >= 0 else mirror[slot]
        if hasattr(sampler, "vectors"):  # it merges samples
            mirror = sampler.labels.copy()
        freq = stream[: start + len(rows)].sum(axis=0)
        expected = {"class_freq": freq, "class_counts": mirror.sum(axis=0), "labels": mirror}
        for name, value in expected.items():
            own = getattr(sampler, name)
            if not np.array_equal(own, value):
                _expect(False, f"{value} as {name}", f"{own}")
            own[:] = -1
            same = np.array_equal(getattr(sampler, name), value)
            _expect(same, f"a copy of {name}", "the state itself")
        filled = np.count_nonzero(mirror.any(axis=1))
        _expect(len(sampler) == filled, f"a length of {filled}", f"{len(sampler)}")
    _expect(filled == size, f"all {size} slots to be filled at the end", f"{filled}")
    return np.concatenate(answers)


def _expect(right: bool, what: str, came: str) -> None:
    if not right:
        raise AssertionError(f"check_sampler: expected {what}, got {came}; see prslib.Sampler")
