"""Check whether a sampler decides as Algorithm 1 of PRS.

Ten streams, and what PRS decides on them, lie in samplers/embedded/conformance.jsonl.gz
for any language: a line that says what each field means, then each stream's line and a
line a sample. Two more are drawn anew in every check.
"""

import gzip
import inspect
import json
import sys
import traceback
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from prslib.checks import VARIANTS, check_int, expected, one_of
from prslib.paths import PACKAGE
from prslib.samplers.reference import ReferencePRS
from prslib.samplers.released import ReleasedPRS

VECTORS = PACKAGE / "samplers" / "embedded" / "conformance.jsonl.gz"
EQUATIONS = {  # what can depart, in the order of Algorithm 1
    "error": "an exception, so that the rest of the stream is not checked",
    "partition": "Eq. (1): the target p_i ~ n_i^rho, the one place where rho enters",
    "fill": "Algorithm 1, lines 6-9: the first m samples fill the slots in order",
    "acceptance": "Eq. (2): the probability of being accepted, from Eq. (1)'s target",
    "class_probability": "Sec. 3.4: the class to shrink, softmax(delta_i), delta_i > 0",
    "candidates": "Eq. (4): the set K",
    "distance": "Eq. (5): the distance to the target",
    "tie": "Eq. (5): equally good slots are equally likely",
    "released": "the authors' released code",
}
ASKED = """
expected: a sampler of PRS is made as Class(size, num_classes, seed, rho=rho) and asked
place(labels) with a batch of bool labels, (B, num_classes); it returns B slots, one for
each row, -1 for a sample that is not kept
"""
LEVEL = 1e-6  # of each test; four a stream make one false alarm in 25,000 checks
BATCH = 10
HEAD = 1000  # a batch where the decisions are not looked at
NEVER = 1e-12  # a class with a smaller chance is never drawn
LEAST = 25  # expected acceptances and rejections in a stratum
SHOWN = 6  # slots in a message


class Stream(NamedTuple):
    """Labels and uniform numbers that PRS is checked on."""

    name: str
    size: int
    rho: float
    labels: np.ndarray  # bool (T, C)
    uniforms: np.ndarray  # (T, 3)
    head: int = 0  # samples whose decisions are followed and not looked at

    def make(self, make: Callable, seed: object, **options: object):
        """Make a sampler for the stream."""
        return make(self.size, self.labels.shape[1], seed, **options)


class Departure(NamedTuple):
    """A difference between a sampler and Algorithm 1 on one stream."""

    equation: str  # a key of `EQUATIONS`
    stream: str
    text: str

    def __str__(self) -> str:
        """Name equation, stream and sample."""
        return f"{EQUATIONS[self.equation]}; stream {self.stream!r}, {self.text}"


class Answer(NamedTuple):
    """The verdict of `check_prs`; ``str`` leads with one line, the list comes after."""

    departures: list[Departure]  # in the order of Algorithm 1
    rule: str  # what was compared with
    only: str  # the condition under which it is accepted
    checked: str  # how much was compared
    released: bool  # all slots are those of the authors' released code
    failure: str = ""  # what is asked for, and the traceback, where the sampler failed

    def __str__(self) -> str:
        """Say whether the sampler is accepted, or where it first departs."""
        if not self.departures:
            return f"decides as {self.rule} does{self.only}; checked: {self.checked}"
        first = self.departures[0]
        lines = [f"departs from {self.rule} at {first}; checked: {self.checked}"]
        if self.released:
            lines.append("its slots are those of the released code: --variant authors")
        lines += [f"- {one}" for one in self.departures]
        return "\n".join(lines + [self.failure] * bool(self.failure))


def read_vectors() -> list[tuple[Stream, list[dict]]]:
    """Read the embedded streams, and what the reference decided about each sample."""
    read = []
    with gzip.open(VECTORS, "rt", encoding="utf-8") as file:
        next(file)  # what each field means
        for line in map(json.loads, file):
            if "stream" in line:
                read.append((line, []))
            else:
                read[-1][1].append(line)
    return [(_stream(head, steps), steps) for head, steps in read]


def _stream(head: dict, steps: list[dict]) -> Stream:
    labels = np.zeros((len(steps), head["num_classes"]), bool)
    for row, step in zip(labels, steps, strict=True):
        row[step["labels"]] = True
    uniforms = np.array([step["uniforms"] for step in steps])
    return Stream(head["stream"], head["size"], head["rho"], labels, uniforms)


def drawn_streams(rng: np.random.Generator, takes_rho: bool) -> list[Stream]:
    """Draw streams that no implementation has been fitted to."""
    streams = []
    if takes_rho:
        num_classes = int(rng.integers(8, 30))
        chance = 0.8 / np.arange(1, num_classes + 1)
        labels = rng.random((800, num_classes)) < rng.permutation(chance)
        labels[~labels.any(axis=1), 0] = True
        uniforms = rng.random((800, 3))
        size = int(rng.integers(20, 60))
        streams.append(Stream("drawn, rho 2", size, 2.0, labels, uniforms))
    # counts that 16 bits cannot hold
    head = 33_000
    labels = np.zeros((head + 1000, 6), np.bool_)
    labels[:, 0] = True
    few = np.r_[0:60, head : head + 1000]
    labels[few] = rng.random((len(few), 6)) < 0.3
    labels[~labels.any(axis=1), 1] = True
    uniforms = rng.random((len(labels), 3))
    size = int(rng.integers(20, 50))
    streams.append(Stream("drawn, long", size, 0.0, labels, uniforms, head))
    return streams


def check_prs(
    make: Callable,
    seeds: int = 5,
    variant: str = "paper",
    only: list[str] | None = None,
    fresh_seed: int | None = None,
    progress: bool = False,
) -> Answer:
    """Compare an implementation of PRS with Algorithm 1, on ten streams and two drawn.

    Parameters
    ----------
    make : callable
        ``make(size, num_classes, seed, rho=rho)`` returns an empty sampler. One without
        ``rho`` is checked on the streams with rho 0.
    seeds : int
        Runs a stream.
    variant : {"paper", "authors"}
        What to compare with: Algorithm 1, or the slots of the authors' released code.
    only : list of str or None
        Names of embedded streams; None for all, and two that are drawn: one with rho 2,
        one of 34,000 samples.
    fresh_seed : int or None
        Seed of the streams that are drawn; None for another one at every check.
    progress : bool
        Whether to name each stream on stderr as its check begins.

    Returns
    -------
    Answer
        Without departures where the sampler is accepted.

    Raises
    ------
    ValueError
        If the sampler fails or answers in another form on every stream, with stream,
        samples and traceback; if the variant or a stream is unknown, ``seeds`` is below
        1, ``only`` has no stream for a sampler without rho or, for "authors", ``place``
        does not decide by a parameter ``uniforms``.
    TypeError
        If ``make`` cannot be called.

    Notes
    -----
    The reference follows the sampler slot by slot and says what could have happened
    next. If ``place`` has a parameter ``uniforms`` it gets the file's, (B, 3), and must
    do what follows from them. Where it has none, or its slots do not depend on them
    alone, the choices of the runs are tested: how many samples were accepted, in strata
    of s, by chi-square; the class and the rank among ties by Kolmogorov and Smirnov.
    Runs that decide alike whatever the seed count as one. Departures on streams with a
    rho other than 0 alone are those of Eq. (1).

    Examples
    --------
    >>> print(check_prs(ReferencePRS, only=["single-label"], seeds=1))
    decides as Algorithm 1 does; checked: 1 of 10 streams, 280 decisions
    """
    one_of("variant", variant, VARIANTS)
    check_int("seeds", seeds, least=1)
    if not callable(make):
        what = "the class of a sampler, or a function that makes one"
        raise TypeError(expected(what, repr(make), "write check_prs(MyPRS)"))
    if fresh_seed is None:
        fresh_seed = int(np.random.default_rng().integers(2**31))
    embedded = {stream.name: stream for stream, _ in read_vectors()}
    for name in only or ():
        one_of("stream", name, embedded)
    parameters = inspect.signature(make).parameters.values()
    takes_rho = any(p.name == "rho" or p.kind == p.VAR_KEYWORD for p in parameters)
    streams = [embedded[name] for name in only or embedded]
    streams = [stream for stream in streams if takes_rho or stream.rho == 0]
    if not streams:
        what = "a stream with rho 0 in only, for a sampler that takes no rho"
        raise ValueError(expected(what, ", ".join(only or ())))
    drawn = []
    if only is None:
        drawn = drawn_streams(np.random.default_rng(fresh_seed), takes_rho)
    records = [_Record(stream, make, takes_rho) for stream in [*streams, *drawn]]
    by_numbers = _decides_by_numbers(records[0])
    for record in records:
        if progress:
            text = f"conformance: stream {record.stream.name!r}"
            print(text, file=sys.stderr, flush=True)
        record.run(seeds, by_numbers)
    failed = [record for record in records if record.error]
    failure = ""
    if failed:
        error = failed[0].error
        failure = ASKED + "\n" + "".join(traceback.format_exception(error))
    if failed and len(failed) == len(records):
        where = f"stream {failed[0].stream.name!r}, {failed[0].failure}"
        raise ValueError(where + failure) from error
    if variant == "authors" and not by_numbers:
        what = "place(labels, uniforms), which decides by the file's numbers, (B, 3)"
        text = expected(what, "place without uniforms, or one that ignores them")
        raise ValueError(f"variant 'authors': {text}")
    apart = [one for record in records for one in record.from_released()]
    departures = _with_target(records)
    rule = "Algorithm 1"
    if variant == "authors":
        departures = apart
        rule = EQUATIONS["released"]
    checked = f"{len(streams)} of {len(embedded)} streams"
    if drawn:
        checked += f" and {len(drawn)} drawn by fresh_seed={fresh_seed}"
    order = list(EQUATIONS)
    return Answer(
        departures=sorted(departures, key=lambda one: order.index(one.equation)),
        rule=rule,
        only="" if takes_rho else " for rho = 0 only, since it takes no rho",
        checked=checked + _decisions(records),
        released=by_numbers and not apart and not failed,
        failure=failure,
    )


def _decides_by_numbers(record: "_Record") -> bool:
    """Tell whether slots depend on the numbers that ``place`` is given, and on no others."""
    try:
        place = record.made(0).place
        if "uniforms" not in inspect.signature(place).parameters:
            return False
        uniforms = record.stream.uniforms
        runs = [(0, uniforms), (1, uniforms), (0, 1 - uniforms)]
        first, again, other = (record.slots_of(*run) for run in runs)
    except Exception:  # the check of the stream says where
        return True
    return first == again and first != other


def _decisions(records: list["_Record"]) -> str:
    """Return how many decisions were looked at, and whether the seeds matter."""
    text = f", {sum(record.decisions for record in records):,} decisions"
    several = [record for record in records if record.runs_alike is not None]
    if several and all(record.runs_alike for record in several):
        text += "; all seeds decide alike, so that they count as one"
    return text


def _with_target(records: list["_Record"]) -> list[Departure]:
    """Return all departures, Eq. (1) where all of their streams have a rho but 0."""
    departures = [one for record in records for one in record.departures()]
    rho = {record.stream.name: record.stream.rho for record in records}
    powers = [rho[one.stream] for one in departures if one.equation != "error"]
    if not powers or 0.0 not in rho.values() or 0.0 in powers:
        return departures
    first = next(one for one in departures if one.equation != "error")
    text = f"as no stream with rho 0 departs; {first.text}"
    return [Departure("partition", first.stream, text), *departures]


class _Record:
    """The departure of a sampler's decisions on one stream from Algorithm 1."""

    def __init__(self, stream: Stream, make: Callable, takes_rho: bool):
        self.stream = stream
        self.make = make
        self.options = {"rho": stream.rho} if takes_rho else {}
        self.batch = "as it is made"
        self.error = None  # what the sampler raised
        self.takes_uniforms = False  # the sampler decides by the numbers of the file
        self.runs_alike = None  # whether all seeds decide alike, None for one run
        self.slots = []  # of all samples of the last run
        self.decisions = 0
        self.by_equation = {}  # departures by equation
        self.coins = []  # chance of acceptance, accepted
        self.ranks = {"class_probability": [], "slot": [], "age": []}

    def depart(self, equation: str, text: str) -> None:
        """Note the first departure from an equation."""
        departure = Departure(equation, self.stream.name, text)
        self.by_equation.setdefault(equation, departure)

    @property
    def failure(self) -> str:
        """At which batch the sampler failed, and how."""
        return f"{self.batch}: {type(self.error).__name__}: {self.error}"

    def made(self, seed: int):
        """Make the sampler that is checked."""
        return self.stream.make(self.make, seed, **self.options)

    def slots_of(self, seed: int, uniforms: np.ndarray) -> list[int]:
        """Return the slots of the first samples of the stream for these numbers."""
        slots = []
        place = self.made(seed).place
        rows = self.stream.labels
        for start in range(0, len(rows), BATCH):
            batch = slice(start, start + BATCH)
            answer = place(rows[batch].copy(), uniforms=uniforms[batch].copy())
            slots.extend(np.asarray(answer).tolist())
        return slots

    def run(self, seeds: int, by_numbers: bool) -> None:
        """Let the sampler decide the stream for each seed, till it fails."""
        self.takes_uniforms = by_numbers
        if (
            by_numbers or self.stream.head
        ):  # it takes long, and its counts are the point
            seeds = 1
        first = None
        for seed in range(seeds):
            seen = self.decisions, len(self.coins)
            ranks = {name: len(values) for name, values in self.ranks.items()}
            try:
                self.follow(seed)
            except Exception as error:
                self.error = error
                return
            if first is None:
                first = self.slots
            elif self.slots == first:  # no other run: it would count twice
                self.runs_alike = self.runs_alike is not False
                self.decisions, coins = seen
                del self.coins[coins:]
                for name, values in self.ranks.items():
                    del values[ranks[name] :]
            else:
                self.runs_alike = False

    def follow(self, seed: int) -> None:
        """Let a sampler decide the stream, and look at each of its decisions."""
        stream = self.stream
        self.rng = np.random.default_rng(seed)
        self.plain = stream.make(ReferencePRS, 0, rho=stream.rho)
        self.slots = []
        self.came = np.zeros(stream.size)  # when the sample in each slot came
        place = self.made(seed).place
        named = "uniforms" in inspect.signature(place).parameters
        start = 0
        while start < len(stream.labels):
            end = start + (HEAD if start + HEAD <= stream.head else BATCH)
            labels = stream.labels[start:end]
            uniforms = stream.uniforms[start:end]
            self.batch = f"samples {start} to {start + len(labels) - 1}"
            more = {"uniforms": uniforms.copy()} if named else {}
            slots = np.asarray(place(labels.copy(), **more))
            if slots.shape != (len(labels),) or slots.dtype.kind not in "iu":
                what = f"{len(labels)} whole numbers as slots"
                raise ValueError(expected(what, repr(slots)))
            for y, u, slot in zip(labels, uniforms, slots.tolist(), strict=True):
                sample = len(self.slots)
                filled = len(self.plain)
                self.slots.append(slot)
                if filled == stream.size:
                    if sample >= stream.head:
                        self.decide(sample, y, u, slot)
                elif slot != filled:
                    text = f"sample {sample}: {expected(f'slot {filled}', slot)}"
                    return self.depart("fill", text)
                self.plain.follow(y, slot)
                if slot >= 0:
                    self.came[slot] = sample
            start = end

    def decide(self, sample: int, y: np.ndarray, u: np.ndarray, slot: int) -> None:
        """Look at one decision of a sampler with a full memory."""
        plain = self.plain
        by_numbers = self.takes_uniforms
        self.decisions += 1
        s = plain.acceptance(y, plain.partition(y))
        accepted = slot >= 0
        if not by_numbers:
            self.coins.append((s, accepted))
        departs = s >= 1 - 1e-9 and not accepted
        if by_numbers:
            departs = accepted != (u[0] < s)
        if departs:
            verdict = "accepted" if accepted else "not accepted"
            number = f" and the number {u[0]}" if by_numbers else ""
            self.depart(
                "acceptance", f"sample {sample}: {verdict} at s = {s:.6g}{number}"
            )
        if not accepted:
            return
        decision = plain.explain(y)
        chance = decision.class_probability
        likely = np.flatnonzero(chance > NEVER).tolist()
        possible = [plain.draw_class(chance, u[1])] if by_numbers else likely
        leaves = np.flatnonzero(plain.labels[slot]).tolist()
        shared = [c for c in possible if c in leaves]
        if not shared:
            text = expected(f"a sample of a class of {possible} to go", leaves)
            return self.depart("class_probability", f"sample {sample}: {text}")
        sets = {c: decision.candidates[c] for c in shared}
        ties = {c: decision.leaving[c] for c in shared}
        for equation, which in (("candidates", sets), ("distance", ties)):
            if not any(slot in slots for slots in which.values()):
                slots = np.sort(which[shared[0]])[:SHOWN].tolist()
                text = expected(f"one of slots {slots} ... to go", slot)
                return self.depart(equation, f"sample {sample}: {text}")
        ties = {c: slots for c, slots in ties.items() if slot in slots}
        # which class was drawn is not seen: draw one as likely as it was
        odds = np.array([chance[c] / len(slots) for c, slots in ties.items()])
        c = self.rng.choice(list(ties), p=odds / odds.sum())
        if not by_numbers and len(likely) > 1:
            order = np.argsort(decision.surplus, kind="stable").tolist()
            below = chance[order[: order.index(c)]].sum()
            rank = below + chance[c] * self.rng.random()
            self.ranks["class_probability"].append(rank)
        if len(ties[c]) > 1:
            for name, key in (("slot", np.arange(len(self.came))), ("age", self.came)):
                rank = (key[ties[c]] < key[slot]).sum() + self.rng.random()
                self.ranks[name].append(rank / len(ties[c]))

    def departures(self) -> list[Departure]:
        """Return what was seen, and what the tests of all choices say."""
        from scipy.stats import chi2, kstest

        if self.error:
            self.depart("error", self.failure)
        if strata := _strata(self.coins):
            z = [(a - s).sum() ** 2 / (s * (1 - s)).sum() for s, a in strata]
            s, a = strata[int(np.argmax(z))]
            text = f"{a.sum():.0f} samples accepted, expected {s.sum():.0f}"
            self.test("acceptance", chi2.sf(sum(z), len(z)), text)
        for name, ranks in self.ranks.items():
            if ranks:
                equation = name if name in EQUATIONS else "tie"
                text = f"mean rank by {name} {np.mean(ranks):.2f} of {len(ranks)} draws"
                p = kstest(ranks, "uniform").pvalue
                self.test(equation, p, f"{text}, expected 0.50")
        return list(self.by_equation.values())

    def test(self, equation: str, p: float, text: str) -> None:
        """Note a departure where choices are as unlikely as `LEVEL`."""
        if p < LEVEL:
            self.depart(equation, f"{text} (p = {p:.0e})")

    def from_released(self) -> list[Departure]:
        """Return the first slot that is not that of the authors' released code."""
        stream = self.stream
        if not self.takes_uniforms or stream.head:
            return []
        sampler = stream.make(ReleasedPRS, 0, rho=stream.rho)
        slots = sampler.choose_batch(stream.labels, stream.uniforms)
        # a sampler that does not fill the slots in order was followed no further
        for t, (slot, got) in enumerate(zip(slots.tolist(), self.slots, strict=False)):
            if got != slot:
                text = f"sample {t}: {expected(f'slot {slot}', got)}"
                return [Departure("released", stream.name, text)]
        return []


def _strata(coins: list[tuple[float, bool]]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Cut coins, in the order of their chance, where enough of both are expected."""
    table = np.array(sorted(c for c in coins if c[0] < 1)).reshape(-1, 2)
    strata = []
    start = 0
    for end in range(1, len(table) + 1):
        s = table[start:end, 0]
        if min(s.sum(), (1 - s).sum()) >= LEAST:
            strata.append((s, table[start:end, 1]))
            start = end
    return strata
