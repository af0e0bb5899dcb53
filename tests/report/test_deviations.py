import numpy as np
import pytest
from cells import functions_of
from prs_examples import A, B, C, rows

from prslib import RunConfig, run_all
from prslib.report.deviations import (
    ALL,
    CONTEST,
    DEVIATIONS,
    deviation_configs,
)
from prslib.report.measures import place_stream
from prslib.samplers import PRS

notebook = functions_of("deviations")

TINY = "cocoseq-tiny"


def filled(name, samples=(A, A, (A, B), (A, B), B, C)):
    sampler = (DEVIATIONS | {"PRS": PRS})[name](6, 3, 0)
    sampler.place(rows(*samples))
    return sampler


def test_each_deviation_departs_in_its_step_alone():
    y = np.array([True, True, False])
    plain = filled("PRS")  # n = l = (4, 3, 1)
    plain._count([A, B])
    p = plain.partition()
    delta = plain.surplus(p)
    n = [5, 4]
    softened = np.exp(-np.array([4, 3]) / (8 / 3))
    expected = softened / softened.sum()
    assert filled("softened exp").weights([4, 3]) == pytest.approx(expected)
    assert filled("underflowing exp").weights(n) == pytest.approx(plain.weights(n))
    many = filled("underflowing exp", samples=[A] * 800)
    assert many.acceptance(y & [1, 0, 0], many.partition()) == 0
    drawn = filled("class from p")
    chance = drawn.class_probability(drawn.surplus(drawn.partition()))
    assert chance == pytest.approx([1 / 3] * 3 + [0])
    signed = filled("signed distances")
    k = signed._sets.all()
    assert signed.distances(k, p) == pytest.approx(np.zeros(len(k)), abs=1e-9)
    ties = filled("ties by slot", samples=[A, A, A, B, B, C])
    ties._count([B])
    assert ties.choose(rows(B)[0], np.array([0.0, 0.1, 0.99])) == 0
    assert filled("uniform victim").choose(y, np.array([0.0, 0.5, 0.99])) == 5
    assert delta.sum() == pytest.approx(0)
    batch = filled("batch at once")
    seen = []
    batch.choose = lambda y, u: seen.append(batch.class_freq.tolist()) or -1
    batch.place(np.repeat(y[None], 3, axis=0))
    assert seen == [[7, 6, 1]] * 3


def test_the_contest_does_what_the_published_codes_do():
    stream = rows(*[A] * 800, *[(A, B)] * 3, *[B] * 40)
    ahead = {"EmoGrowth": {"dataset": TINY}}
    made = {
        name: one(6, 3, 0, rho=0.5, **ahead.get(name, {}))
        for name, one in CONTEST.items()
    }
    assert (made["Macro-AUC-CL"].place(stream)[6:] == -1).all()
    placed = made["CUTER"].place(stream)
    assert (placed[700:800] >= 0).sum() < 5 < (placed[803:] >= 0).sum() < 40
    made["CUTER"]._count([B])
    s = made["CUTER"].acceptance(rows(B)[0], made["CUTER"].partition())
    assert s == pytest.approx(np.exp(-0.44))
    assert made["EmoGrowth"].rho == 0
    chance = made["EmoGrowth"].class_probability(np.array([1.0, 2.0, -1.0]))
    assert chance.tolist() == [0, 1, 0]


@pytest.mark.usefixtures("registers", "trains_here")
def test_deviations_are_methods_of_their_own(tmp_path, monkeypatch):
    made = deviation_configs([TINY], [0], 0.0, DEVIATIONS)
    assert len({repr(config.identity) for config in made}) == len(ALL)
    assert made[0] == RunConfig(TINY, "PRS", rho=0.0)  # as every notebook's
    assert [config.method for config in made] == ["PRS", "CRS", *DEVIATIONS]
    monkeypatch.setenv("PRSLIB_CACHE", str(tmp_path))
    ahead = made[1 + list(ALL).index("counts known ahead")]
    (run,) = run_all([ahead])
    *_, (sampler, _, _) = place_stream(ahead)
    np.testing.assert_array_equal(run.memory_labels, sampler.labels)
    assert type(sampler) is DEVIATIONS["counts known ahead"]
    (read,) = run_all([ahead])
    assert read.scores.equals(run.scores)
