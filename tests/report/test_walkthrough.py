"""The walkthrough: frames, pictures, sliders; test_prs.py compares decisions with Algorithm 1."""

import numpy as np
import pytest
from cells import functions_of

from prslib.report.measures import draw_labels
from prslib.samplers import make_sampler

walkthrough = functions_of("walkthrough")

STREAM = draw_labels(np.arange(1, 6) ** -1.2, 40, 73, 0.3)


@pytest.fixture(scope="module")
def steps():
    return walkthrough.walk(STREAM, 12, 0.0, 73)


def test_the_tables_of_a_step_add_up(steps):
    for step in steps[12:]:
        terms = walkthrough.contributions(step)
        acceptance = min(1, (terms["m"] / terms["n"] * terms["w"]).sum())
        assert acceptance == pytest.approx(step.decision.acceptance)
        counts = step.memory.sum(axis=0)
        above = counts - step.decision.partition * counts.sum()
        assert above == pytest.approx(step.decision.surplus)
        if step.slot < 0:
            continue
        members = walkthrough.candidates(step).set_index("slot")
        scores = step.memory[members.index] < step.decision.scarce
        assert members["score"].tolist() == scores.sum(1).tolist()
        in_k = members["score"] == members["score"].max()  # Eq. (4)
        assert (members["distance"].notna() == in_k).all()
        nearest = members["distance"] <= members["distance"].min() + 1e-9  # Eq. (5)
        assert (members["role"].isin(["equally good", "removed"]) == nearest).all()
        assert members.index[members["role"] == "removed"].tolist() == [step.slot]


def test_fates_say_who_is_in_memory_at_the_end(steps):
    sampler = make_sampler("prs", 12, 5, 73)
    slots = sampler.place(STREAM)
    frame = walkthrough.fates(steps).groupby("sample").first()
    assert frame["slot"].tolist() == slots.tolist()
    kept = frame[frame["fate"] == "kept"]
    assert sorted(kept["slot"]) == list(range(12))
    assert (sampler.labels[kept["slot"]] == STREAM[kept.index - 1]).all()
    assert (frame["fate"] == "dropped").tolist() == (slots < 0).tolist()


@pytest.mark.parametrize("rho", [-0.5, 0.0, 1.0])
def test_quotas_follow_the_stream(rho):
    stream = draw_labels(np.arange(1, 7) ** -1.0, 3000)
    frame = walkthrough.quotas(stream, 100, [rho], 0)
    power = stream.sum(0).astype(float) ** rho
    quota = power / power.sum() * frame["in_memory"].sum()
    assert frame["quota"].to_numpy() == pytest.approx(quota)
    assert (frame["in_memory"] - frame["quota"]).abs().max() < 4
