import gzip

import numpy as np
import pytest
from conformance_vectors import write_vectors

from prslib.cli import main
from prslib.conformance import VECTORS, check_sampler, departures, read_vectors
from prslib.report.deviations import DEVIATIONS
from prslib.samplers import SAMPLERS, make_sampler
from prslib.samplers.reference import ReferencePRS

FOUND_IN = {  # the first departure, and a stream that shows it
    "uniform victim": ("class_probability", "a class that comes late"),
    "softened exp": ("acceptance", "counts above 746"),
    "underflowing exp": ("acceptance", "counts above 746"),
    "class from p": ("class_probability", "a class that comes late"),
    "signed distances": ("distance", "multi-label"),
    "ties by slot": ("tie", "single-label"),
}


@pytest.fixture(scope="module")
def vectors():
    return {stream.name: (stream, recorded) for stream, recorded in read_vectors()}


class Given:
    """A sampler that is given its numbers."""

    def __init__(self, sampler):
        self.sampler = sampler

    def place(self, labels, uniforms):
        slots = np.empty(len(labels), np.int64)
        self.sampler._decide(labels, uniforms, slots)
        return slots


def test_both_implementations_decide_what_the_file_says(vectors, tmp_path):
    write_vectors(tmp_path / "again")
    assert gzip.decompress((tmp_path / "again").read_bytes()) == gzip.decompress(
        VECTORS.read_bytes()
    )
    assert len(vectors) == 8
    for stream, recorded in vectors.values():
        sampler = make_sampler("prs", stream.size, stream.labels.shape[1], 0, rho=stream.rho)
        for y, u, step in zip(stream.labels, stream.uniforms, recorded, strict=True):
            if step["slot"] >= 0 and "acceptance" in step:
                shown = sampler.explain(y)
                for name in ("partition", "acceptance", "surplus", "class_probability"):
                    assert getattr(shown, name) == pytest.approx(step[name], rel=1e-5, abs=1e-5)
            assert Given(sampler).place(y[None], u[None]) == step["slot"]


def test_the_streams_have_what_they_are_there_for(vectors):
    stream, recorded = vectors["COCOseq"]
    assert stream.labels.shape == (3000, 70) and stream.rho == -0.03
    assert vectors["counts above 746"][0].labels.sum(axis=0).max() > 1000
    assert vectors["memory of one"][0].size == 1 and vectors["negative rho"][0].rho == -1
    assert not vectors["a class that comes late"][0].labels[:300, 3].any()
    assert sum(len(step.get("leaving", ())) > 1 for step in recorded) > 100


def maker(of, given):
    """Make samplers that draw their own numbers, or are given them."""

    def make(*options, rho):
        sampler = of(*options, rho=rho)
        return Given(sampler) if given else sampler

    return make


@pytest.mark.parametrize("given", [False, True])
def test_prs_does_not_depart(given):
    small = ["single-label", "multi-label", "negative rho", "memory of one"]
    assert departures(maker(SAMPLERS["prs"], given), seeds=2, only=small) == []


@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("name", [*FOUND_IN, "batch at once"])
def test_each_shortcut_is_found_where_it_is(name, given):
    at_once = "acceptance" if given else "class_probability"
    part, where = FOUND_IN.get(name, (at_once, "single-label"))
    found = departures(maker(DEVIATIONS[name], given), seeds=3, only=[where])
    assert found and found[0].part == part


def test_what_a_sampler_explains_is_compared():
    class Wrong(SAMPLERS["prs"]):
        def explain(self, label):
            shown = super().explain(label)
            shown.partition[0] += 0.01
            return shown

    (found,) = departures(Wrong, seeds=1, only=["single-label"])
    assert found.part == "partition" and "explain gives" in found.text


def test_the_command_names_the_equation(tmp_path, monkeypatch, capsys):
    (tmp_path / "mine.py").write_text(
        "from prslib.samplers import CRS\n"
        "class Full(CRS):\n    def place(self, labels):\n        return [-1] * len(labels)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert main(["conformance", "prslib.samplers:CRS", "--seeds", "1"]) == 1
    assert "first departs at Eq. (2)" in capsys.readouterr().out
    assert main(["conformance", "mine:Full", "--seeds", "1"]) == 1
    assert "sample 0: expected a free slot, got -1" in capsys.readouterr().out
    assert main(["conformance", "mine:Nobody"]) == 1
    assert "expected package.module:Class, got 'mine:Nobody'" in capsys.readouterr().err


def broken(**methods):
    return type("Broken", (ReferencePRS,), methods)


@pytest.mark.parametrize(
    ("sampler", "match"),
    [
        (broken(place=lambda self, y: np.full(len(y), 99)), "expected slots from -1 to 24"),
        (broken(place=lambda self, y: [0]), "0 whole numbers as slots"),
        (broken(labels=property(lambda self: self.state.labels)), "expected a copy of labels"),
        (broken(class_freq=property(lambda self: self.state.class_counts.copy())), "as class_freq, got"),
        (broken(__len__=lambda self: 3), "expected a length of 0"),
        (broken(draw_class=lambda self, p, u: np.random.choice(len(p), p=p)), "equal slots"),
        (lambda *options: object(), "expected the attributes of Sampler"),
    ],
)
def test_a_broken_sampler_is_told_what_it_breaks(sampler, match):
    with pytest.raises(AssertionError, match=match):
        check_sampler(sampler)
