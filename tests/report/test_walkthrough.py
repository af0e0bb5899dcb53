import matplotlib.pyplot as plt
import numpy as np
import pytest

from prslib.report import walkthrough
from prslib.samplers import make_sampler
from prslib.samplers.reference import ReferencePRS


@pytest.fixture(scope="module")
def steps():
    return walkthrough.walk(walkthrough.forty_samples(73), 12, 0.0, 73)


def test_every_step_of_the_walk_equals_the_reference(steps):
    plain = ReferencePRS(12, 5, 0)
    for step in steps:
        assert (step.memory == plain.labels[: len(plain)]).all()
        if len(plain) == 12:
            partition = plain.partition(step.label)
            surplus = plain.surplus(partition)
            terms = walkthrough.contributions(step)
            acceptance = plain.acceptance(step.label, partition)
            assert min(1, terms["product"].sum()) == pytest.approx(acceptance)
            weights = plain.weights(step.label)[step.label]
            assert terms["w"].to_numpy() == pytest.approx(weights)
            table = walkthrough.surpluses(step)
            above = table["in_memory"] - table["target"]
            assert above.to_numpy() == pytest.approx(surplus)
            chance = plain.class_probability(surplus)
            assert table["probability"].to_numpy() == pytest.approx(chance)
        if step.slot >= 0 and step.decision.candidates:
            check_members(step, plain, partition, surplus)
        plain.follow(step.label, step.slot)


def check_members(step, plain, partition, surplus):
    members = walkthrough.candidates(step).set_index("slot")
    chosen = walkthrough.shrunk_class(step)
    scarce = plain.scarce(step.label, surplus)
    candidates = np.sort(plain.candidates(chosen, scarce))
    distances = plain.distances(candidates, partition)
    assert members.index.tolist() == np.flatnonzero(step.memory[:, chosen]).tolist()
    assert members["distance"].dropna().index.tolist() == candidates.tolist()
    assert members.loc[candidates, "distance"].to_numpy() == pytest.approx(distances)
    best = members.index[members["role"].isin(["as good", "removed"])]
    assert best.tolist() == plain.leaving(candidates, distances).tolist()
    assert members.index[members["role"] == "removed"].tolist() == [step.slot]
    scores = (~plain.labels[members.index] & scarce).sum(1)
    assert members["score"].tolist() == scores.tolist()


def test_fates_say_who_is_in_memory_at_the_end(steps):
    stream = walkthrough.forty_samples(73)
    sampler = make_sampler("prs", 12, 5, 73)
    slots = sampler.place(stream)
    frame = walkthrough.fates(steps).groupby("sample").first()
    assert frame["slot"].tolist() == slots.tolist()
    kept = frame[frame["fate"] == "kept"]
    assert sorted(kept["slot"]) == list(range(12))
    assert (sampler.labels[kept["slot"]] == stream[kept.index - 1]).all()
    assert (frame["fate"] == "dropped").tolist() == (slots < 0).tolist()


def test_the_shown_removal_has_every_role(steps):
    step = walkthrough.clearest_removal(steps)
    assert set(walkthrough.candidates(step)["role"]) == set(walkthrough.ROLES)
    assert f"took slot {step.slot} from" in walkthrough.removal_sentence(step)


def test_a_stream_without_a_removal_is_refused():
    steps = walkthrough.walk(walkthrough.forty_samples(0), 40, 0.0, 0)
    with pytest.raises(ValueError, match="choose a smaller memory"):
        walkthrough.clearest_removal(steps)


@pytest.mark.parametrize("rho", [-0.5, 0.0, 1.0])
def test_quotas_follow_the_stream(rho):
    stream = walkthrough.skewed_stream(3000, 6, 1.0)
    frame = walkthrough.quotas(stream, 100, [rho], 0)
    power = stream.sum(0).astype(float) ** rho
    assert frame["quota"].to_numpy() == pytest.approx(
        power / power.sum() * frame["in_memory"].sum()
    )
    assert (frame["in_memory"] - frame["quota"]).abs().max() < 4


def test_a_stream_has_the_given_skew_and_second_labels():
    labels = walkthrough.skewed_stream(50_000, 4, 1.0, second_labels=0.0)
    assert (labels.sum(1) == 1).all()
    expected = np.array([1, 1 / 2, 1 / 3, 1 / 4])
    assert labels.mean(0) == pytest.approx(expected / expected.sum(), abs=0.01)
    labels = walkthrough.skewed_stream(50_000, 40, 0.0, second_labels=0.22)
    assert labels.sum(1).mean() == pytest.approx(1 + 0.22 * 39 / 40, abs=0.01)
    assert labels.mean(0) == pytest.approx(labels.mean(), rel=0.1)


def test_pictures_show_their_frames(steps):
    figure, axes = plt.subplots(1, 5, figsize=(20, 3))
    fates = walkthrough.fates(steps)
    walkthrough.plot_fates(fates, 12, axes[0])
    marks = [line for line in axes[0].lines if line.get_linestyle() == "None"]
    assert sum(len(line.get_xdata()) for line in marks) == len(fates)
    walkthrough.plot_acceptance(fates, 12, axes[1])
    assert len(axes[1].texts) == 40 - 12
    step = walkthrough.clearest_removal(steps)
    shrunk = walkthrough.shrunk_class(step)
    walkthrough.plot_surpluses(walkthrough.surpluses(step), shrunk, axes[2])
    heights = [bar.get_height() for bar in axes[2].patches]
    assert heights == pytest.approx(step.decision.surplus)
    members = walkthrough.candidates(step)
    walkthrough.plot_candidates(members, axes[3])
    assert sum(len(line.get_xdata()) for line in axes[3].lines) == len(members)
    walkthrough.plot_distances(fates.drop_duplicates("sample"), 12, axes[4])
    assert len(axes[4].lines[0].get_xdata()) == 40
    plt.close(figure)
