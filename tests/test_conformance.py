from types import SimpleNamespace

import numpy as np
import pytest
from released_prs import ReleasedPRS

from prslib.cli import main
from prslib.conformance import _Record, check_prs, drawn_streams, read_vectors
from prslib.report.deviations import DEVIATIONS
from prslib.samplers import CRS, PRS
from prslib.samplers.reference import ReferencePRS


def given(of):
    """Let a sampler decide by numbers that ``place`` is given."""

    class Given(of):
        def place(self, labels, uniforms):
            return self.choose_batch(labels, uniforms)

    return Given


class CountsAfter(ReferencePRS):
    def counted(self, y):
        return np.maximum(self.class_freq, y)


class CutClassByClass(ReferencePRS):
    def acceptance(self, y, p):
        ratio = self.size * p / np.maximum(self.counted(y), 1)
        return float((self.weights(y) * np.minimum(ratio, 1)).sum())


class Argmax(ReferencePRS):
    def class_probability(self, delta):
        largest = np.eye(len(delta))[delta.argmax()]
        return largest if delta.max() > 0 else super().class_probability(delta)


@pytest.mark.parametrize("variant", [lambda sampler: sampler, given])
@pytest.mark.parametrize(
    ("sampler", "equation", "stream"),
    [
        (CountsAfter, "acceptance", "counts near the quota"),
        (CutClassByClass, "acceptance", "counts near the quota"),
        (Argmax, "class_probability", "counts near the quota"),
        (DEVIATIONS["uniform victim"], "class_probability", "a class that comes late"),
        (DEVIATIONS["uniform victim"], "candidates", "multi-label"),
        (DEVIATIONS["signed distances"], "distance", "multi-label"),
        (DEVIATIONS["ties by slot"], "tie", "single-label"),
    ],
)
def test_a_deviation_is_named_by_its_equation(sampler, equation, stream, variant):
    answer = check_prs(variant(sampler), 3, only=[stream])
    assert answer.departures[0].equation == equation
    assert not answer.released


def test_slots_that_do_not_fill_in_order_are_named():
    class Backwards(ReferencePRS):
        def place(self, labels):
            return super().place(labels)[::-1]

    answer = check_prs(Backwards, 1, only=["single-label"])
    assert [one.equation for one in answer.departures] == ["fill"]


ALL = "does; checked: 10 of 10 streams and 2 drawn by fresh_seed=0, 11,"
WITHOUT_RHO = (
    "does for rho = 0 only, since it takes no rho; "
    "checked: 7 of 10 streams and 1 drawn by fresh_seed=0, 6,314 decisions"
)


@pytest.mark.parametrize(
    ("make", "said"),
    [(PRS, ALL), (given(PRS), ALL), (lambda *a: PRS(*a), WITHOUT_RHO)],
)
def test_prs_is_accepted_without_rho_for_rho_0_alone(make, said):
    answer = check_prs(make, seeds=1, fresh_seed=0)
    assert str(answer).startswith(f"decides as Algorithm 1 {said}")
    assert not answer.released


class CutRho(ReferencePRS):
    def __init__(self, *arguments, rho):
        super().__init__(*arguments, rho=min(rho, 1.0))


class SmallCounts(ReferencePRS):
    def counted(self, y):
        return super().counted(y).astype(np.int16)


@pytest.mark.parametrize(("number", "sampler"), [(0, CutRho), (1, SmallCounts)])
def test_drawn_streams_show_what_the_embedded_ones_do_not(number, sampler):
    stream = drawn_streams(np.random.default_rng(0), takes_rho=True)[number]
    record = _Record(stream, sampler, takes_rho=True)
    record.run(seeds=1, by_numbers=False)
    assert record.departures()


def test_what_departs_for_other_rho_alone_departs_from_the_target():
    class NoRho(ReferencePRS):
        def __init__(self, size, num_classes, seed, *, rho=0.0):
            super().__init__(size, num_classes, seed)

    answer = check_prs(NoRho, 2, only=["multi-label", "negative rho", "single-label"])
    assert "departs from Algorithm 1 at Eq. (1): the target" in str(answer)
    assert "as no stream with rho 0 departs" in str(answer)


def test_numbers_that_are_ignored_leave_the_choices_to_be_tested():
    class Ignores(PRS):
        def place(self, labels, uniforms=None):
            return super().place(labels)

    answer = check_prs(Ignores, 2, only=["single-label", "multi-label"])
    assert not answer.departures
    with pytest.raises(ValueError, match="or one that ignores them"):
        check_prs(Ignores, 1, variant="authors", only=["single-label"])


def test_an_exception_in_one_stream_does_not_end_the_check():
    class Stops(PRS):
        def place(self, labels):
            return super().place(labels) if self.num_classes != 70 else 1 / 0

    names = ["COCOseq", "single-label"]
    answer = check_prs(Stops, 1, only=names)
    assert "exception, so that the rest of the stream is not checked" in str(answer)
    assert "'COCOseq', samples 0 to 9: ZeroDivisionError: division by" in str(answer)
    assert answer.checked == "2 of 10 streams, 280 decisions"
    assert "Traceback" in str(answer)


def test_seeds_that_decide_alike_count_as_one(capsys):
    class Fixed(ReferencePRS):
        def __init__(self, size, num_classes, seed, *, rho):
            super().__init__(size, num_classes, 0, rho=rho)

    answer = check_prs(Fixed, 5, only=["single-label"], progress=True)
    assert answer.checked == (
        "1 of 10 streams, 280 decisions; "
        "all seeds decide alike, so that they count as one"
    )
    assert capsys.readouterr().err == "conformance: stream 'single-label'\n"


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


ONE_SLOT = SimpleNamespace(place=lambda labels: [0])
HALF_SLOTS = SimpleNamespace(place=lambda labels: [0.5] * len(labels))


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda *_, rho: 3, "AttributeError: 'int' object has no attribute 'place'"),
        (lambda m, c, seed, rho: CRS(m, c + 1, seed), r"expected shape \(B, 6\)"),
        (
            lambda *_, rho: ONE_SLOT,
            r"samples 0 to 9: ValueError: expected 10 whole numbers",
        ),
        (
            lambda *_, rho: HALF_SLOTS,
            r"samples 0 to 9: ValueError: expected 10 whole numbers",
        ),
    ],
)
def test_an_error_says_where_and_what_is_asked_for(make, match):
    asked = r"a sampler of PRS is made as Class\(size, num_classes, seed"
    with pytest.raises(ValueError, match=rf"(?s){match}.*{asked}.*Traceback"):
        check_prs(make)


def decisions(stream):
    """Yield what the reference decides about each sample, quantity by quantity."""
    plain = stream.make(ReferencePRS, 0, rho=stream.rho)
    for y, u in zip(stream.labels, stream.uniforms, strict=True):
        step = {"labels": np.flatnonzero(y), "uniforms": u}
        if len(plain) == stream.size:
            step["partition"] = p = plain.partition(y)
            step["acceptance"] = plain.acceptance(y, p)
            step["surplus"] = delta = plain.surplus(p)
            step["class_probability"] = plain.class_probability(delta)
            if u[0] < step["acceptance"]:
                step["class"] = plain.draw_class(step["class_probability"], u[1])
                k = plain.candidates(step["class"], plain.scarce(y, delta))
                step["candidates"] = k
                step["distance"] = plain.distances(k, p)
                step["leaving"] = plain.leaving(k, step["distance"])
        step["slot"] = plain.choose(y, u)
        plain.follow(y, step["slot"])
        yield step


@pytest.mark.parametrize("number", range(10))
def test_both_implementations_decide_what_the_file_says(number):
    stream, recorded = read_vectors()[number]
    fields = set().union(*recorded)  # large streams have the slots alone
    for step, listed in zip(decisions(stream), recorded, strict=True):
        assert listed.keys() == step.keys() & fields
        for name, values in listed.items():
            digits = [float(f"{value:.6g}") for value in np.ravel(step[name])]
            assert digits == np.ravel(values).tolist()
    sampler = stream.make(given(PRS), 0, rho=stream.rho)
    slots = sampler.place(stream.labels, stream.uniforms)
    assert slots.tolist() == [step["slot"] for step in recorded]


def test_the_command_says_one_line_first(capsys):
    assert main(["conformance", "prslib.samplers:CRS", "--seeds", "1"]) == 1
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("prslib.samplers:CRS departs from Algorithm 1 at Eq. (2)")
    assert "; checked: 7 of 10 streams and 1 drawn by fresh_seed=" in said[0]
    assert said[1].startswith("- Eq. (2)")
    assert main(["conformance", "prslib:Nobody"]) == 1
    assert (
        "made as Class(size, num_classes, seed), got 'prslib:N"
        in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"only": ["single"]}, "unknown stream 'single'; known streams: "),
        ({"seeds": 0}, "seeds must be at least 1, got 0"),
        ({"variant": "authors", "seeds": 1}, "variant 'authors': expected place"),
    ],
)
def test_a_check_of_nothing_is_refused(options, match):
    with pytest.raises(ValueError, match=match):
        check_prs(ReferencePRS, **{"only": ["single-label"]} | options)
    with pytest.raises(ValueError, match="with rho 0 in only, for a sampler"):
        check_prs(CRS, only=["COCOseq"])


def test_a_sampler_in_place_of_its_class_is_refused():
    with pytest.raises(TypeError, match=r"the class of a sampler.*check_prs\(MyPRS\)"):
        check_prs(ReferencePRS(3, 3, 0))
