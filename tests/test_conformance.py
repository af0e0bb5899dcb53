import gzip

import numpy as np
import pytest
from conformance_vectors import write_vectors
from released_prs import ReleasedPRS

from prslib.cli import main
from prslib.conformance import VECTORS, check_prs, read_vectors
from prslib.samplers import CRS, PRS
from prslib.samplers.reference import ReferencePRS

ALL = 10


@pytest.fixture(scope="module")
def vectors():
    return {stream.name: (stream, recorded) for stream, recorded in read_vectors()}


def given(of):
    """Let a sampler decide by numbers that ``place`` is given."""

    class Given:
        def __init__(self, size, num_classes, seed, *, rho):
            self.sampler = of(size, num_classes, seed, rho=rho)

        def place(self, labels, uniforms):
            slots = np.empty(len(labels), np.int64)
            self.sampler._decide(labels, uniforms, slots)
            return slots

    return Given


class RhoSign(ReferencePRS):
    def __init__(self, *arguments, **k):
        super().__init__(*arguments, rho=-k["rho"])


class CountsAfter(ReferencePRS):
    def counted(self, y):
        return np.maximum(self.class_freq, y)


class Argmax(ReferencePRS):
    def class_probability(self, delta):
        largest = np.eye(len(delta))[delta.argmax()]
        return largest if delta.max() > 0 else super().class_probability(delta)


class SignedDistances(ReferencePRS):
    def distances(self, k, p):
        counts = self.class_counts - self.labels[k]
        return (counts - p * counts.sum(axis=1, keepdims=True)).sum(axis=1).round(6)


class TiesBySlot(ReferencePRS):
    def leaving(self, k, distances):
        return super().leaving(k, distances).min(keepdims=True)


class UniformVictim(ReferencePRS):
    def choose(self, y, u):
        full, slot = len(self) == self.size, super().choose(y, u)
        return int(u[2] * self.size) if full and slot >= 0 else slot


class CutClassByClass(ReferencePRS):
    def acceptance(self, y, p):
        ratio = self.size * p / np.maximum(self.counted(y), 1)
        return float((self.weights(y) * np.minimum(ratio, 1)).sum())


MUTANTS = {  # the equation that it breaks, and a stream that shows it
    RhoSign: ("acceptance", "negative rho"),
    CountsAfter: ("acceptance", "counts near the quota"),
    Argmax: ("class_probability", "counts near the quota"),
    SignedDistances: ("distance", "multi-label"),
    TiesBySlot: ("tie", "single-label"),
    UniformVictim: ("class_probability", "a class that comes late"),
    CutClassByClass: ("acceptance", "counts near the quota"),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_mutant_is_named_by_its_equation(mutant):
    equation, stream = MUTANTS[mutant]
    answer = check_prs(mutant, 3, only=[stream])
    assert answer.departures[0].equation == equation
    assert not answer.released


def test_numbers_that_are_given_name_the_equation_as_well():
    answer = check_prs(given(UniformVictim), only=["a class that comes late"])
    assert answer.departures[0].equation == "class_probability"


@pytest.mark.parametrize("make", [PRS, given(PRS)])
def test_prs_is_accepted(make):
    answer = check_prs(make, seeds=1)
    assert not answer.departures and not answer.released
    assert answer.checked == f"{ALL} of {ALL} streams, 9,334 decisions"


def without_rho(*arguments):
    return ReferencePRS(*arguments)


def test_without_rho_it_is_accepted_for_rho_0_alone():
    answer = check_prs(without_rho, seeds=1)
    said = (
        "decides as Algorithm 1 does for rho = 0 only, since it takes no rho; checked: "
    )
    assert str(answer) == f"{said}7 of 10 streams, 5,314 decisions"


def test_the_released_code_is_told_from_the_paper():
    few = ["single-label", "multi-label", "counts near the quota"]
    answer = check_prs(given(ReleasedPRS), only=few)
    first, released, *rest = str(answer).splitlines()
    assert first.startswith("departs from Algorithm 1 at Eq. (")
    assert released == "its slots are those of the released code: --variant authors"
    assert len(rest) == len(answer.departures)
    said = str(check_prs(given(ReleasedPRS), variant="authors", only=few))
    assert said.startswith("decides as the authors' released code does; checked: 3 of")
    paper = check_prs(given(ReferencePRS), variant="authors", only=["single-label"])
    assert paper.departures[0].equation == "released"
    with pytest.raises(ValueError, match="variant 'authors': expected place"):
        check_prs(ReferencePRS, 1, "authors", only=["single-label"])


class OneRow:
    def __init__(self, *arguments, rho):
        self.sampler = ReferencePRS(*arguments, rho=rho)

    def place(self, y):
        return self.sampler.place(y[None])[0]


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (OneRow, "stream 'single-label', samples 0 to 9: ValueError"),
        (lambda *_, rho: 3, "AttributeError: 'int' object has no attribute 'place'"),
        (lambda c, m, seed, rho: CRS(m, c, seed), r"labels: expected shape \(B, 20\)"),
    ],
)
def test_an_error_says_where_and_what_is_asked_for(make, match):
    with pytest.raises(ValueError, match=match) as caught:
        check_prs(make)
    assert "a sampler of PRS is made as Class(size, num_classes, seed" in str(
        caught.value
    )
    assert "Traceback" in str(caught.value)


def test_both_implementations_decide_what_the_file_says(vectors, tmp_path):
    write_vectors(tmp_path / "again")
    again = gzip.decompress((tmp_path / "again").read_bytes())
    assert again == gzip.decompress(VECTORS.read_bytes())
    assert len(vectors) == ALL and VECTORS.stat().st_size < 10**6
    for stream, recorded in vectors.values():
        sampler = stream.make(given(PRS), 0, rho=stream.rho)
        slots = sampler.place(stream.labels, stream.uniforms)
        assert slots.tolist() == [step["slot"] for step in recorded]


def test_the_command_says_one_line_first(capsys):
    assert main(["conformance", "prslib.samplers:CRS", "--seeds", "1"]) == 1
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("prslib.samplers:CRS departs from Algorithm 1 at Eq. (2)")
    assert said[0].endswith("checked: 7 of 10 streams, 5,314 decisions")
    assert said[1].startswith("- Eq. (2)")
    assert main(["conformance", "prslib:Nobody"]) == 1
    assert "expected package.module:Class, got 'prslib:N" in capsys.readouterr().err


def test_a_check_of_nothing_is_refused():
    with pytest.raises(ValueError, match="unknown stream 'single'; known streams: "):
        check_prs(ReferencePRS, only=["single"])
    with pytest.raises(ValueError, match="seeds must be at least 1, got 0"):
        check_prs(ReferencePRS, seeds=0)
