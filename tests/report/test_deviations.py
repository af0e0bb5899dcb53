import pickle

import numpy as np
import pandas as pd
import pytest
from fake_runs import fake_run
from prs_examples import A, B, C, rows

from prslib.datasets import load_dataset
from prslib.experiments.store import Store
from prslib.report import deviations
from prslib.report.deviations import ALL, DEVIATIONS, deviation_configs
from prslib.samplers.reference import ReferencePRS
from prslib.training.config import RunConfig
from prslib.training.replay import without_training
from prslib.training.run import run

TINY = "digits70tiny"


def filled(name, samples=(A, A, (A, B), (A, B), B, C)):
    sampler = (DEVIATIONS | {"PRS": ReferencePRS})[name](6, 3, 0)
    sampler.place(rows(*samples))
    return sampler


def test_each_deviation_departs_in_its_step_alone():
    y, k = np.array([True, True, False]), np.array([0, 1, 2])
    plain = filled("PRS")  # n = l = (4, 3, 1)
    p = plain.partition(y)
    assert filled("softened exp").weights(y) == pytest.approx(
        np.exp([-5 / (10 / 3), -4 / (10 / 3), -np.inf]) / np.exp([-1.5, -1.2]).sum()
    )
    assert filled("underflowing exp").weights(y) == pytest.approx(plain.weights(y))
    many = filled("underflowing exp", samples=[A] * 800)
    assert many.acceptance(y & [1, 0, 0], many.partition(y)) == 0
    drawn = filled("class from p")
    assert drawn.class_probability(drawn.surplus(p)) == pytest.approx([1 / 3] * 3)
    assert filled("signed distances").distances(k, p) == pytest.approx([0, 0, 0])
    ties = filled("ties by slot").leaving(
        np.array([5, 3, 4]), np.array([1.0, 2.0, 1.0])
    )
    assert ties.tolist() == [4]
    assert filled("uniform victim").choose(y, np.array([0.0, 0.5, 0.99])) == 5
    batch = filled("batch at once")
    assert batch.counted(y).tolist() == plain.counted(y).tolist() == [5, 4, 1]
    seen = []
    batch.choose = lambda y, u: seen.append(batch.counted(y).tolist()) or -1
    batch.place(np.repeat(y[None], 3, axis=0))
    assert seen == [[7, 6, 1]] * 3


def test_the_contest_does_what_the_published_codes_do():
    stream = rows(*[A] * 800, *[(A, B)] * 3, *[B] * 40)
    made = {name: one(6, 3, 0, rho=0.5) for name, one in deviations.CONTEST.items()}
    assert (made["Macro-AUC-CL"].place(stream)[6:] == -1).all()
    placed = made["CUTER"].place(stream)
    assert (placed[700:800] >= 0).sum() < 5 < (placed[803:] >= 0).sum() < 40
    acceptance = made["CUTER"].acceptance(rows(B)[0], None)
    assert acceptance == pytest.approx(np.exp(-0.44))
    assert made["EmoGrowth"].rho == 0
    chance = made["EmoGrowth"].class_probability(np.array([1.0, 2.0, -1.0]))
    assert chance.tolist() == [0, 1, 0]


def test_the_contest_is_scored_beside_prs_and_crs():
    made = deviation_configs([TINY], range(2), 0.0, DEVIATIONS | deviations.CONTEST)
    worth = {"PRS": 0.5, "CUTER": 0.4}
    values = [worth.get(deviations.name_of(config), 0.3) for config in made]
    runs = list(map(fake_run, made, values))
    table = deviations.contest(runs).set_index(["method", "metric"])
    assert list(table.index.unique("method")) == list(deviations.SOURCES)
    assert table.loc[("CUTER", "O-F1"), "difference"] == pytest.approx(-10)
    assert (table["seeds"] == 2).all() and table["source"].notna().all()


def test_counts_are_those_of_the_tasks_that_have_begun():
    data = load_dataset(TINY, images=False)
    (config,) = deviation_configs([TINY], [0], 0.0, ["counts known ahead"])[2:]
    sampler = config.sampler_for(data, 0)
    y = np.arange(70) == np.flatnonzero(data.class_task == 2)[0]
    expected = np.where(data.class_task == 2, data.class_freq, 0)
    np.testing.assert_array_equal(sampler.counted(y), expected)


def test_deviations_are_runs_of_their_own_that_any_process_can_train(tmp_path):
    made = deviation_configs([TINY], [0], 0.0)
    assert len({config.hash for config in made}) == len(ALL)
    # as every notebook asks for it
    assert made[0] == RunConfig(dataset=TINY, method="PRS")
    names = [deviations.name_of(config) for config in made]
    assert names == ["PRS", "CRS", *DEVIATIONS]
    copy = pickle.loads(pickle.dumps(made[2]))
    sampler = copy.sampler_for(load_dataset(TINY, images=False), 0)
    assert type(sampler) is DEVIATIONS["uniform victim"]
    finished, store = run(made[2]), Store(tmp_path)
    store.save(finished)
    assert (store.load(made[2]).memory_labels == finished.memory_labels).all()
    assert store.load(made[0]) is None


def test_the_mix_is_that_of_the_samplers():
    mix = deviations.memory_mix([TINY], [0, 1, 2], 0.0, points=2)
    # of a reservoir half the stream
    ages = mix[mix["measure"] == "age"].groupby("deviation")["value"].mean()
    assert ages["CRS"] == pytest.approx(50, abs=5)
    last = mix[(mix["images"] == 100) & (mix["seed"] == 0)]
    last = last.set_index(["deviation", "measure"])["value"]
    data = load_dataset(TINY, images=False)
    config = RunConfig(dataset=TINY, method="PRS")
    counts = without_training(config, data).sampler.class_counts
    shares = 100 * counts / counts.sum()
    rare = np.array(data.class_group) == "minority"
    assert last["PRS", "minority"] == pytest.approx(shares[rare].sum())
    gap = np.abs(shares - 100 / 70).sum() / 2
    assert last["PRS", "distance"] == pytest.approx(gap)
    assert last["class from p", "distance"] > last["PRS", "distance"]
    assert set(mix["deviation"]) == set(ALL) and mix["value"].between(0, 100).all()


def test_verdicts_say_what_matters():
    lead = {"CRS": -4.0, "uniform victim": -3.0, "ties by slot": 0.5}
    noise = {"batch at once": 5.0, "counts known ahead": 0.6}

    def made(config):
        name = deviations.name_of(config)
        shift, moves = lead.get(name, 0.0), noise.get(name, 0.1) * (config.seed % 2)

        def score(cells):
            rare = (cells["group"] == "minority") & (name == "CRS")
            return (50 + np.where(rare, shift / 8, shift) + moves) / 100

        return fake_run(config, score)

    runs = [made(config) for config in deviation_configs([TINY], range(6), 0.0)]
    table = deviations.against_prs(runs).set_index(["deviation", "group"])
    verdict = table["verdict"]
    assert verdict["uniform victim", "overall"] == "costs"
    assert verdict["class from p", "overall"] == "does not matter"
    assert verdict["ties by slot", "overall"] == "gains"
    assert verdict["batch at once", "overall"] == "cannot be told"
    # PRS leads CRS by less in the minority
    assert verdict["counts known ahead", "overall"] == "does not matter"
    assert verdict["counts known ahead", "minority"] == "cannot be told"
    few = deviations.against_prs([one for one in runs if one.config.seed < 2])
    assert set(few["verdict"]) == {"too few seeds"}


def test_plots_draw_means_and_intervals(ax):
    mix = deviations.memory_mix([TINY], [0, 1], 0.0, points=3)
    shown = mix[mix["measure"] == "age"]
    deviations.plot_mix(shown, ax)
    drawn = {line.get_label(): line.get_ydata() for line in ax.lines}
    means = shown.groupby(["deviation", "images"])["value"].mean()
    for name in ALL:
        assert drawn[name] == pytest.approx(means[name].to_numpy())
    ax.clear()
    costs = pd.DataFrame({"deviation": ALL[1:], "metric": "mAP"})
    costs["difference"] = -np.arange(1.0, len(ALL))
    ends = {"low": costs["difference"] - 1, "high": costs["difference"] + 1}
    deviations.plot_costs(costs.assign(**ends), ax)
    marks = [line for line in ax.lines if line.get_marker() == "o"]
    assert [m.get_xdata()[0] for m in marks] == costs["difference"].tolist()
