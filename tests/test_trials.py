"""Trials: a stream is split fairly, trained as runs are, and answered by the rule."""

import numpy as np
import pandas as pd
import pytest
import torch

from prslib import DATASETS, RunConfig, evaluate, register, run, trial
from prslib.cli import main
from prslib.datasets import Entry, Recipe, SequentialDataset
from prslib.label_files import read_about, read_inputs
from prslib.resamples import draw_weights
from prslib.train import Trainer
from prslib.trial_answers import answer, estimate_needed, say_costs
from prslib.trial_streams import NAME, Stream, hold_out, make_stream
from prslib.trials import list_configs, order_rows, score

NOTHING = dict.fromkeys(["task", "order", "groups", "class_names"])
QUICK = {
    "samplers": ["PRS"],
    "rho": [0.0],
    "seeds": [0, 1],
    "memory_size": np.int64(20),
}


def draw_stream(count: int = 400, classes: int = 6) -> dict:
    """Draw features, labels of one of two tasks, and the tasks."""
    rng = np.random.default_rng(0)
    task = rng.integers(2, size=count)
    labels = rng.random((count, classes)) < [0.5, 0.3, 0.1, 0.5, 0.3, 0.1]
    labels &= np.arange(classes) // 3 == task[:, None]
    labels[np.arange(count), 3 * task] |= ~labels.any(axis=1)
    inputs = labels @ rng.normal(size=(classes, 8)) + rng.normal(size=(count, 8))
    return {"inputs": inputs, "labels": labels, "task": task}


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def stored(cache, monkeypatch, trains_here):
    """Keep trained runs of this module in one folder."""
    monkeypatch.setenv("PRSLIB_CACHE", str(cache))


def made_of(**columns) -> Stream:
    """Make a stream of columns."""
    return make_stream(**NOTHING | columns)[0]


def test_trial_scores_are_those_of_a_run_on_the_same_split(monkeypatch, registers):
    made = made_of(**draw_stream())
    monkeypatch.setitem(DATASETS, NAME, made.entry)
    (config,) = list_configs([20], ["PRS"], [0.0], [3], {})[1:]
    scores = score(made, config, torch.device("cpu"))

    def with_tasks(split):
        return type(split)(
            split.inputs, split.labels, split.labels[:, 3:].any(axis=1) * 1
        )

    data = made.data
    tests = {name: with_tasks(test) for name, test in data.tests.items()}
    class_task = np.repeat([0, 1], 3)
    names = data.class_names, class_task, data.class_group
    same = SequentialDataset("split", with_tasks(data.train), tests, *names)
    recipe = Recipe(**vars(made.recipe))
    register("split", Entry(lambda images: same, recipe, data_source="other"))
    trained = run(RunConfig("split", "PRS", seed=3, memory_size=20)).scores
    trained = trained[(trained["trained_tasks"] == 2) & (trained["task"] == "seen")]
    both = scores.merge(trained, on=["test_set", "group", "metric"])
    assert len(both) > 2 * 12
    np.testing.assert_allclose(both["value_x"], 100 * both["value_y"])


def test_each_batch_is_predicted_before_it_is_learnt(monkeypatch, one_thread):
    made = made_of(**draw_stream())
    monkeypatch.setitem(DATASETS, NAME, made.entry)
    (config,) = list_configs([20], ["PRS"], [0.0], [3], {})[1:]
    train, device = made.data.train, torch.device("cpu")
    inputs = torch.from_numpy(train.inputs)
    trainer = Trainer(config, made.data, inputs, device)
    rows = np.concatenate(list(order_rows(made, config)))
    before = []
    for new in rows:
        before.append(trainer.probabilities(inputs, new))
        trainer.step(new)
    names, groups = made.data.class_names, made.data.class_group
    labels = train.labels[rows.ravel()]
    expected = evaluate(np.concatenate(before), labels, names, groups)
    scores = score(made, config, device)
    scores = scores[scores["test_set"] == "prequential"].merge(
        expected, on=["group", "metric"]
    )
    assert len(scores) > 12
    np.testing.assert_allclose(scores["value_x"], 100 * scores["value_y"])


def test_second_trial_trains_only_what_is_new(stored, capsys):
    columns = draw_stream()
    first = trial(**columns, **QUICK)
    assert "training 4 runs" in capsys.readouterr().err
    again = trial(**columns, **QUICK)
    assert "training" not in capsys.readouterr().err
    pd.testing.assert_frame_equal(first.differences, again.differences)
    more = trial(**columns, **QUICK | {"rho": [0.0, 0.5]})
    assert "training 2 runs" in capsys.readouterr().err
    assert set(more.scores["method"]) == {"CRS", "PRS", "PRS, rho 0.5"}
    assert "2 tasks" in str(more)
    assert "O-F1, imbalanced test" in str(more)
    kept = more.preview.class_counts
    assert set(kept) == {"CRS", "PRS"}
    other = trial(**columns, **QUICK | {"rho": [0.5]}).preview
    assert "training" not in capsys.readouterr().err
    np.testing.assert_allclose(
        other.quota, 20 * other.class_freq**0.5 / (other.class_freq**0.5).sum()
    )
    assert more.preview.samples == pytest.approx(0.7 * 400, abs=20)
    ratio, groups = more.preview.ratio, np.array(more.preview.class_group)
    assert (groups[ratio < 0.5] == "minority").all()
    assert (groups[ratio > 2] == "majority").all()
    assert tuple(groups) == made_of(**columns).data.class_group
    # a difference is of two scores of one seed
    cells = ["test_set", "group", "metric"]
    scores = first.scores.set_index([*cells, "seed", "method"])["value"].unstack()
    gaps = (scores["PRS"] - scores["CRS"]).groupby(cells).mean()
    differences = first.differences.set_index(cells)["difference"]
    np.testing.assert_allclose(differences, gaps[differences.index], atol=1e-9)


def test_one_label_a_sample_asks_for_accuracy(stored):
    rng = np.random.default_rng(0)
    numbers = rng.choice(4, 300, p=[0.6, 0.2, 0.1, 0.1])
    images = rng.integers(256, size=(300, 12, 12, 1), dtype=np.uint8)
    result = trial(images, numbers, order=np.arange(300)[::-1], **QUICK)
    assert set(result.answers["metric"]) == {"mAP", "accuracy"}


def test_field_that_a_trial_does_not_read_is_refused():
    with pytest.raises(TypeError, match="fields that a trial reads, got epochs"):
        trial(**draw_stream(), epochs=1)


def test_bad_sample_is_named_by_its_row_among_all_samples():
    columns = draw_stream()
    columns["labels"][:7] = False
    columns["inputs"][9, 0] = np.inf
    with pytest.raises(ValueError, match="in sample 9"):
        made_of(**columns)


def test_group_that_is_too_large_leaves_room_for_smaller_ones():
    groups = np.repeat(np.arange(21), [100] + [5] * 20)
    for turn in range(5):
        shuffled = np.random.default_rng(turn).permutation(21)[groups]
        is_test = hold_out(np.ones((200, 1), bool), shuffled)
        assert 58 <= is_test.sum() <= 105


def test_order_sorts_the_stream_and_rows_keep_theirs():
    columns = draw_stream()
    del columns["task"]
    plain = made_of(**columns)
    backwards = made_of(**columns, order=-np.arange(400))
    turned = made_of(**{name: rows[::-1] for name, rows in columns.items()})
    assert plain.task is None
    np.testing.assert_array_equal(backwards.data.train.inputs, turned.data.train.inputs)
    days = pd.date_range("2016-06-01", periods=400).strftime("%Y%m%d")
    dated = made_of(**columns, order=days[::-1])
    np.testing.assert_array_equal(dated.data.train.inputs, turned.data.train.inputs)


def test_each_class_is_held_out_by_its_share_and_groups_stay_whole():
    rng = np.random.default_rng(1)
    labels = rng.random((3000, 8)) < 0.5 / 2 ** np.arange(8)
    labels[~labels.any(axis=1), 0] = True
    is_test = hold_out(labels, None)
    shares = labels[is_test].sum(axis=0) / labels.sum(axis=0)
    assert (abs(shares - 0.3) < 0.05).all()
    groups = rng.integers(400, size=3000)
    of_groups = pd.Series(hold_out(labels, groups)).groupby(groups).nunique()
    assert (of_groups == 1).all()


def test_samples_of_a_group_are_drawn_anew_together():
    columns = draw_stream()
    groups = np.random.default_rng(1).integers(60, size=400)
    held_out = groups[hold_out(columns["labels"], groups)]
    test = made_of(**columns, groups=groups).data.tests["imbalanced"]
    unit = test.units
    assert (unit[:, None] == unit).tolist() == (held_out[:, None] == held_out).tolist()
    weights = draw_weights(test, 50)
    assert (weights[0] == 1).all()
    first = np.unique(unit, return_index=True)[1]
    np.testing.assert_array_equal(weights, weights[:, first][:, unit])
    assert (weights[1:, first].sum(axis=1) == len(first)).all()


def test_smallest_class_that_is_scored_is_on_both_sides():
    labels = np.zeros((200, 2), bool)
    labels[:, 0] = True
    labels[:5, 1] = True
    made = made_of(inputs=np.random.default_rng(0).normal(size=(200, 3)), labels=labels)
    parts = made.data.train, made.data.tests["imbalanced"]
    assert [part.labels[:, 1].sum() for part in parts] == [3, 2]
    assert abs(made.data.train.inputs.mean()) < 1e-6
    assert made.data.train.inputs.std() == pytest.approx(1, abs=1e-6)


RARE = np.arange(400) < 8


@pytest.mark.parametrize(
    ("members", "groups"),
    [(np.arange(400) < 3, None), (RARE, np.where(RARE, 0, np.arange(400)))],
)
def test_class_that_is_small_or_in_one_group_is_told_trained_and_not_scored(
    members, groups
):
    columns = draw_stream() | {"groups": groups}
    columns["labels"] = np.column_stack([columns["labels"], members])
    made, notes = make_stream(**NOTHING | columns)
    assert notes[1].endswith("not scored: 6.")
    assert made.is_scored.tolist() == [True] * 6 + [False]
    parts = made.data.train, made.data.tests["imbalanced"]
    assert sum(part.labels[:, 6].sum() for part in parts) == members.sum()


def test_samples_without_a_label_are_left_out_and_few_groups_are_told():
    columns = draw_stream() | {"groups": np.arange(400) % 6}
    columns["labels"] &= ~RARE[:, None]
    made, notes = make_stream(**NOTHING | columns)
    assert "only 2 groups, so that intervals" in notes[1]
    assert notes[2] == "8 samples without a label are left out."
    assert notes[3] == "Of 6 groups, 2 are held out."
    day = np.datetime64("2021-01-01") + np.arange(400)
    _, notes = make_stream(**NOTHING | draw_stream() | {"task": None, "order": day})
    assert "by the column order, from 2021-01-01 to 2022-02-04." in notes[0]
    parts = made.data.train, made.data.tests["imbalanced"]
    assert sum(map(len, parts)) == 392


BAD = {
    "length": ({"inputs": np.zeros((9, 2))}, "400 rows of inputs"),
    "shape": ({"inputs": np.zeros((400, 2, 2))}, "features \\(N, D\\)"),
    "constant": ({"inputs": np.ones((400, 2))}, "features that vary, got 1"),
    "task and order": ({"order": np.arange(400)}, "task or order"),
    "date": ({"task": None, "order": ["31/12/2021"] * 400}, "such as 2021-03-31"),
    "batch": ({"batch_size": 401}, "a batch of 401 samples in each task"),
    "loss": ({"loss": "cross_entropy"}, "a loss of several labels, got cross_entropy"),
    "channels first": (
        {"inputs": np.zeros((400, 3, 8, 8), np.uint8)},
        "images of uint8",
    ),
    "one class": (
        {"labels": np.zeros(400, int)},
        "two classes with at least 5 samples",
    ),
    "unknown": ({"labels": np.full((400, 2), np.nan)}, "labels that are all known"),
    "memory": ({"memory_size": 400}, "memories smaller than 277 samples"),
    "missing task": ({"task": [None] * 400}, "task for every sample"),
    "no seed": ({"seeds": []}, "a seed, size and sampler besides CRS, got none"),
    "no sampler": ({"samplers": ["CRS"]}, "sampler besides CRS, got none"),
    "group": ({"groups": np.zeros(400)}, "not all in one group"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_sentence_before_training(name, monkeypatch):
    values, match = BAD[name]
    monkeypatch.setattr("prslib.trials.train_here", None)
    with pytest.raises(ValueError, match=match) as error:
        trial(**draw_stream() | QUICK | values)
    assert "\n" not in str(error.value)


def frame_of(gains: dict[str, float], noise: float = 0.5) -> pd.DataFrame:
    """Make overall mAP of five seeds on the balanced test; a gain over CRS by method."""
    rng = np.random.default_rng(0)
    rows = [
        {"method": method, "seed": seed, "value": 50 + gain + noise * rng.normal()}
        for method, gain in ({"CRS": 0.0} | gains).items()
        for seed in range(5)
    ]
    frame = pd.DataFrame(rows)
    fixed = {"memory_size": 9, "test_set": "balanced", "group": "overall"}
    draws = [value + rng.normal(size=100) * noise for value in frame["value"]]
    return frame.assign(metric="mAP", draws=draws, **fixed)


@pytest.mark.parametrize(
    ("gains", "take", "alike"),
    [
        ({"PRS": 5.0, "CBRS": 2.0}, "PRS", ""),
        ({"PRS": 5.0, "CBRS": 4.9}, "PRS", "CBRS"),
        ({"PRS": -5.0, "CBRS": -4.0}, "CRS", ""),
        ({"PRS": -5.0, "CBRS": 0.1}, "", ""),
        ({"PRS": 0.2, "CBRS": -0.1}, "", ""),
    ],
)
def test_rule_names_a_sampler_or_nothing(gains, take, alike):
    made, question = made_of(**draw_stream()), ("balanced", "mAP")
    frame = frame_of(gains)
    row = answer(made, frame, 9, question)
    assert (row["take"], row["alike"]) == (take, alike)
    few = answer(made, frame[frame["seed"] < 4], 9, question)
    assert few["take"] == "" and "fewer than 5 seeds" in few["sentence"]


def test_a_test_as_large_as_it_says_would_tell():
    rng = np.random.default_rng(0)
    gaps = np.column_stack([[0.4, 0.6, 0.5, 0.5, 0.5], rng.normal(0.5, 1, (5, 400))])
    text = estimate_needed(gaps, 100, 0.95)
    needed = int(text.split("about ")[1].split(" ")[0].replace(",", ""))
    of_samples = gaps[:, 1:].mean(axis=0).var(ddof=1) * 100 / needed
    of_seeds = gaps[:, 0].var(ddof=1) / 20
    assert 0.5 / np.sqrt(of_samples + of_seeds) == pytest.approx(2.093, rel=0.05)
    assert "no test" in estimate_needed(gaps - 0.4999, 100, 0.95)


def test_costs_are_what_is_clearly_lost():
    answers = pd.DataFrame(
        [
            {"memory_size": 9, "metric": "mAP", "test_set": "balanced", "take": "PRS"},
            {"memory_size": 9, "metric": "O-F1", "test_set": "imbalanced", "take": ""},
        ]
    ).assign(alike="")
    fixed = {"memory_size": 9, "method": "PRS", "group": "overall"}
    rows = [
        {"metric": "mAP", "test_set": "balanced", "difference": 4.0, "high": 5.0},
        {"metric": "O-F1", "test_set": "imbalanced", "difference": -3.0, "high": -1.0},
    ]
    (sentence,) = say_costs(answers, pd.DataFrame(rows).assign(**fixed))
    assert "below CRS in O-F1, imbalanced test (-3.0 points)." in sentence
    rows[1]["high"] = 1.0
    (sentence,) = say_costs(answers, pd.DataFrame(rows).assign(**fixed))
    assert "below CRS in no score" in sentence
    answers.loc[0, "alike"] = "PRS, rho 0.5; OCDM"
    first, second, third = say_costs(answers, pd.DataFrame(rows).assign(**fixed))
    assert first == sentence and "PRS with rho 0.5 is" in second and "OCDM is" in third


def test_files_of_a_stream_are_tried_by_one_command(stored, tmp_path, capsys):
    columns = draw_stream()
    np.save(tmp_path / "inputs.npy", columns["inputs"])
    names = [*"abcdef"]
    labels = pd.DataFrame(columns["labels"].astype(int), columns=names)
    labels.to_csv(tmp_path / "labels.csv", index=False)
    pd.DataFrame({"task": columns["task"]}).to_csv(tmp_path / "about.csv", index=False)
    files = [str(tmp_path / name) for name in ("inputs.npy", "labels.csv")]
    options = ["--about", str(tmp_path / "about.csv"), "--size", "20", "--seeds", "2"]
    with pytest.raises(SystemExit):
        main(["trial", *files, "--save", str(tmp_path / "none" / "scores.csv")])
    assert "a file in a folder that exists" in capsys.readouterr().err
    options += ["--save", str(tmp_path / "scores.csv")]
    assert main(["trial", *files, *options]) == 0
    assert "balanced test" in capsys.readouterr().out
    assert set(pd.read_csv(tmp_path / "scores.csv")["group"]) >= {"overall", *names}


def test_inputs_of_any_file_are_the_same(tmp_path, capsys):
    pytest.importorskip("PIL")
    from PIL import Image

    values = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    np.save(tmp_path / "a.npy", values)
    np.savez(tmp_path / "a.npz", inputs=values, others=values[:2])
    pd.DataFrame(values).to_csv(tmp_path / "a.csv", index=False)
    pd.DataFrame(values).to_csv(tmp_path / "index.csv")
    for name in ("a.npy", "a.npz", "a.csv", "index.csv"):
        np.testing.assert_allclose(read_inputs(tmp_path / name), values, rtol=1e-6)
    (tmp_path / "comma.csv").write_text("x,y\n1,5,2\n0,5,3\n")
    with pytest.raises(ValueError, match="with points in decimal numbers"):
        read_inputs(tmp_path / "comma.csv")
    with pytest.raises(
        ValueError, match=r"npy, npz, parquet, csv, or a folder, got \.h5"
    ):
        read_inputs(tmp_path / "a.h5")
    for number in range(2):
        Image.new("RGB", (8, 6), (number, 0, 0)).save(tmp_path / f"{number}.png")
    labels = tmp_path / "labels.csv"
    labels.write_text("file,labels\n1.png,a\n0.png,b\n")
    images = read_inputs(tmp_path, labels)
    assert images.shape == (2, 6, 8, 3)
    assert images[:, 0, 0, 0].tolist() == [1, 0]
    Image.new("RGB", (9, 6)).save(tmp_path / "0.png")
    with pytest.raises(ValueError, match=r"inputs in .* same shape"):
        read_inputs(tmp_path, labels)
    Image.fromarray(np.full((6, 8), 999, np.uint16)).save(tmp_path / "0.png")
    with pytest.raises(ValueError, match="expected 8 bits per channel in 0"):
        read_inputs(tmp_path, labels)
    labels.write_text("task,groups\n1,a\n")
    assert list(read_about(labels)) == ["task"]
    assert "ignoring the columns: groups" in capsys.readouterr().err
    labels.write_text("file,labels\n")
    with pytest.raises(ValueError, match="task, order, group"):
        read_about(labels)
    labels.write_text("")
    with pytest.raises(ValueError, match=r"columns of .*labels.csv, but it cannot be"):
        read_about(labels)
    labels.write_text("x,name\n1.5,a\n")
    with pytest.raises(ValueError, match="could not convert string to float: 'a'"):
        read_inputs(labels)
