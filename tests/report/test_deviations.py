import pickle
import subprocess
import sys

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
from prslib.training.config import Run, RunConfig
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

    def slots(name):
        sampler = deviations.CONTEST[name](6, 3, 0, rho=0.5)
        return sampler, sampler.place(stream)

    assert slots("Macro-AUC-CL")[1].max(initial=-1, where=np.arange(843) > 5) == -1
    sampler, placed = slots("CUTER")
    assert (placed[700:800] >= 0).sum() < 5 < (placed[803:] >= 0).sum() < 40
    assert sampler.acceptance(rows(B)[0], None) == pytest.approx(np.exp(-0.44))
    sampler = deviations.CONTEST["EmoGrowth"](6, 3, 0, rho=0.5)
    assert sampler.rho == 0
    chance = sampler.class_probability(np.array([1.0, 2.0, -1.0]))
    assert chance.tolist() == [0, 1, 0]


def test_the_contest_is_scored_beside_prs_and_crs():
    made = deviation_configs([TINY], range(2), 0.0, DEVIATIONS | deviations.CONTEST)
    worth = {"PRS": 0.5, "CUTER": 0.4}
    runs = [
        fake_run(
            c,
            lambda cells, c=c: np.full(
                len(cells), worth.get(deviations.name_of(c), 0.3)
            ),
        )
        for c in made
    ]
    table = deviations.contest(runs).set_index(["method", "metric"])
    assert list(table.index.unique("method")) == list(deviations.SOURCES)
    assert table.loc[("CUTER", "O-F1"), "difference"] == pytest.approx(-10)
    assert (table["seeds"] == 2).all() and table["source"].notna().all()


def test_counts_are_those_of_the_tasks_that_have_begun():
    data = load_dataset(TINY, images=False)
    config = deviation_configs([TINY], [0], 0.0)[
        2 + list(DEVIATIONS).index("counts known ahead")
    ]
    sampler = config.sampler_for(data, 0)
    y = np.arange(70) == np.flatnonzero(data.class_task == 2)[0]
    assert (
        sampler.counted(y) == np.where(data.class_task == 2, data.class_freq, 0)
    ).all()


def test_deviations_are_runs_of_their_own_that_any_process_can_train(tmp_path):
    made = deviation_configs([TINY], [0], 0.0)
    assert len({config.hash for config in made}) == len(ALL)
    assert made[0] == RunConfig(
        dataset=TINY, method="PRS"
    )  # as every notebook asks for it
    assert [deviations.name_of(config) for config in made] == [
        "PRS",
        "CRS",
        *DEVIATIONS,
    ]
    with pytest.raises(ValueError, match="unknown deviation 'none'"):
        deviations.DeviationConfig(dataset=TINY, deviation="none")
    (tmp_path / "config").write_bytes(pickle.dumps(made[2]))
    code = (
        "import pickle, sys; from prslib import load_dataset; c = pickle.load(open(sys.argv[1], "
        "'rb')); print(type(c.sampler_for(load_dataset(c.dataset, images=False), 0)).__name__)"
    )
    done = [sys.executable, "-c", code, str(tmp_path / "config")]
    said = subprocess.run(done, capture_output=True, text=True, check=True).stdout
    assert said == "_UniformVictim\n"
    finished, store = run(made[2]), Store(tmp_path)
    store.save(finished)
    assert (store.load(made[2]).memory_labels == finished.memory_labels).all()
    assert store.load(made[0]) is None


def test_the_mix_is_that_of_the_samplers():
    mix = deviations.memory_mix([TINY], [0], 0.0, points=4)
    last = mix[mix["images"] == 100].set_index(["deviation", "measure"])["value"]
    data = load_dataset(TINY, images=False)
    labels = without_training(
        RunConfig(dataset=TINY, method="PRS"), data
    ).sampler.class_counts
    rare = np.array(data.class_group) == "minority"
    assert last["PRS", "minority"] == pytest.approx(
        100 * labels[rare].sum() / labels.sum()
    )
    gap = np.abs(labels / labels.sum() - 1 / 70).sum() / 2
    assert last["PRS", "distance"] == pytest.approx(100 * gap)
    assert last["class from p", "distance"] > last["PRS", "distance"]
    assert set(mix["deviation"]) == set(ALL) and mix["value"].between(0, 100).all()


def test_verdicts_say_what_matters():
    runs, lead = [], {"CRS": -4.0, "uniform victim": -3.0, "ties by slot": 0.5}
    for config in deviation_configs([TINY], range(6), 0.0):
        shift = lead.get(deviations.name_of(config), 0.0)
        noise = 0.2 * config.seed if shift else 0.0
        noise = (
            5.0 * (config.seed % 2)
            if deviations.name_of(config) == "batch at once"
            else noise
        )
        row = {"dataset": TINY, "method": config.method, "rho": 0.0, "memory_size": 50}
        row |= {"schedule": "", "seed": config.seed, "trained_tasks": 4, "task": "seen"}
        groups = ["overall", "majority", "moderate", "minority"]
        value = (50 + shift + noise) / 100
        frame = pd.DataFrame(
            [row | {"group": g, "metric": "mAP", "value": value} for g in groups]
        )
        runs.append(Run(config, frame, np.zeros((0, 70), bool)))
    table = deviations.against_prs(runs)
    verdict = table[table["group"] == "overall"].set_index("deviation")["verdict"]
    assert (
        verdict["uniform victim"] == "costs"
        and verdict["class from p"] == "does not matter"
    )
    assert (
        verdict["ties by slot"] == "gains"
        and verdict["batch at once"] == "cannot be told"
    )
    said = deviations.sentences(table)
    assert said[0].startswith(
        "digits70tiny, overall mAP, costs: uniform victim (-2.5; 95 %"
    )
    assert (
        said[-1]
        == "digits70tiny: PRS leads CRS by 3.5 points, which is what is at stake."
    )
    few = deviations.against_prs([one for one in runs if one.config.seed < 2])
    assert set(few["verdict"]) == {"too few seeds"}
