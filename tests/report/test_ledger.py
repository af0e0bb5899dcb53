import math
from itertools import product

import numpy as np
import pandas as pd
import pytest
from cells import functions_of
from fake_runs import fake_run, with_variance
from registered import forgetting

from prslib.datasets import load_dataset
from prslib.paths import project_root
from prslib.report import ledger
from prslib.report.claims import CLAIMS, Scores
from prslib.report.results import results_of, setting_of
from prslib.report.tables import MAIN_METRICS
from prslib.runs import configs, register
from prslib.statistics import LEVEL, WORDS, interval
from prslib.train import METHODS, Method, RunConfig

notebook = functions_of("ledger")
COMMITTED = project_root() / "figures" / "seeds"
TINY = "digits70tiny"
RNN = "convnet_rnn_attention"
MNIST = {"stands_for": "Imbal-MNISTseq"}
PLAIN = {"architecture": "ResNet101", "epochs": 1, "test_set": "balanced"}
SCRATCH = {"pretrained_stages": 0, "frozen_stages": [0, 3]}
BALANCED = {"test_set": "balanced", "standard_rho": 0.0}
SEEDS = [1, 3]
STANDARD = frozenset()  # differs in nothing
ORDERS = [(0, 3, 1, 2), (0, 1, 3, 2), (2, 3, 0, 1)]


def everything():
    """Make a small grid of everything that a claim may be about, the standards first."""
    both, four = [TINY, "digits49tiny"], ["CRS", "GSS", "ExStream", "PRS"]
    single = ["imbal-digits-tiny", "imbal-colour-digits-tiny"]
    multitask = {"method": "Multitask"}
    nets = [{"model": "convnet_attention_consistency", "frozen_stages": 1}]
    nets += [{"model": RNN}]
    other_orders = [(3, 1, 0, 5, 4, 2), (0, 1, 2, 3, 4, 5)]
    measured = {"features_per_class": 2, "variance_points": 2}
    grids = [
        {"dataset": both, "method": list(METHODS)[:7]},
        {"dataset": single, "method": ["Finetune", "CRS", "GSS", "PRS"]},
        {"dataset": TINY, "method": four, "schedule": ORDERS},
        {"dataset": "digits49tiny", "method": four, "schedule": other_orders},
        {"dataset": TINY, "method": four, "memory_size": [25, 75]},
        {"dataset": "digits49tiny", "method": four, "memory_size": [16, 50]},
        {"dataset": TINY, "method": "PRS", "rho": [-1.0, 1.0]},
        {"dataset": TINY, "method": "EWC"} | SCRATCH,
        {"dataset": TINY, "method": "several classes"},
        {"dataset": both, "method": "ExStream", "vector_stages": 0},
        {"dataset": TINY, "method": "PRS", "rho": 0.5},
        {"dataset": both, "frozen_stages": 1} | multitask,
        *({"dataset": both} | net | multitask for net in nets),
        *({"dataset": TINY, "method": [*four[2:], "CRS"]} | net for net in nets),
        {"dataset": [TINY, single[0]], "method": four} | measured,
    ]
    runs = [config for grid in grids for config in configs(**grid, seed=SEEDS)]
    return list({repr(config.identity): config for config in runs}.values())


LEVELS = {"Finetune": 0.25, "EWC": 0.35, "GSS": 0.4, "ExStream": 0.45, "CRS": 0.5}
LEVELS |= {"PRS": 0.55, "Multitask": 0.6, "several classes": 0.54}


def make_run(config):
    """Make a run in which PRS leads and the order of the methods is the paper's."""
    level = LEVELS[config.method] + 0.05 * (config.frozen_stages == 3)
    level -= 0.05 * (config.vector_stages == 0)

    def value(cells):
        late = (cells["group"] == "minority") & (cells["trained_tasks"] == 4)
        return level + 0.005 * (config.seed - 1) - 0.05 * late

    run = fake_run(config, value, load_dataset(config.dataset, images=False).tests)
    if config.features_per_class or config.variance_points:
        run = with_variance(run, [level, level + 0.1])
    return run


def standards_of(runs):
    return {config.dataset: config for config in reversed(runs)}


@pytest.fixture(scope="module")
def runs():
    with forgetting():
        register("several classes", Method(sampler="prs"))
        yield everything()


@pytest.fixture(scope="module")
def results(runs):
    return results_of(map(make_run, runs), standards_of(runs))


@pytest.fixture(scope="module")
def decided(results):
    return ledger.decide(results)


@pytest.fixture(scope="module")
def cells(results):
    return notebook.cells(results, "smoke")


def cell(rows, table, method, group, metric, **filters):
    chosen = rows[(rows["table"] == table) & (rows["method"] == method)]
    filters = {"measure": "score", "stands_for": "COCOseq"} | filters
    for name, value in {"group": group, "metric": metric, **filters}.items():
        chosen = chosen[chosen[name] == value]
    assert len(chosen) == 1
    return chosen.iloc[0]


def test_settings_say_how_a_run_differs_from_the_standard():
    rows = [
        ({}, {}),
        ({"memory_size": 25}, {"memory_size": 0.5}),
        ({"rho": 0.5}, {"rho": 0.5}),
        ({"method": "CRS", "schedule": ORDERS[1]}, {"schedule": "0,1,3,2"}),
        ({"model": RNN, "learning_rate": 0.1}, {"model": "RNN-Attention"}),
        ({"frozen_stages": 1}, {"frozen_stages": "other"}),
        ({"method": "ExStream", "vector_stages": 0}, {"vector_stages": "other"}),
    ]
    standard = RunConfig(TINY, "PRS")
    for changed, setting in rows:
        (config,) = configs(**{"dataset": TINY, "method": "PRS"} | changed)
        assert setting_of(config, standard) == setting
    sizes = configs(dataset="digits49tiny", method="CRS", memory_size=[33, 17, 50, 25])
    said = [setting_of(config, sizes[0]) for config in sizes]
    assert said == [{}, *({"memory_size": share} for share in (0.5, 1.5, 0.75))]
    # the paper's order is not known
    standard, other = configs(dataset="imbal-digits-tiny", method="CRS", seed=[0, 1])
    assert setting_of(other, standard) == {}


def test_the_largest_fifth_of_the_classes_is_14_of_70(results):
    rows = results[(results["dataset"] == TINY) & results["setting"].map(len).eq(0)]
    share = rows[rows["measure"] == "largest fifth of stream"]["value"]
    counts = np.sort(load_dataset(TINY, images=False).class_freq)
    assert share.to_numpy() == pytest.approx(100 * counts[-14:].sum() / counts.sum())


def test_there_is_a_row_for_each_published_cell(cells):
    assert len(cells) == 2220
    assert set(cells["status"]) == {"run", "not run"}
    assert (cells["seeds"] > 0).eq(cells["status"] == "run").all()
    assert set(cells.loc[cells["status"] == "run", "data"]) == {"stand-in"}
    row = cell(cells, "coco_schedules", "CRS", "overall", "mAP", schedule="3,1,0,2")
    assert (row["status"], row["theirs"]) == ("not run", 49.7)
    assert math.isnan(row["ours"]) and math.isnan(row["difference"])


@pytest.mark.parametrize(
    ("table", "place", "filters", "theirs", "ours"),
    [
        ("main", "CRS minority mAP", {}, 26.9, 45.5),
        ("main", "PRS overall mAP", {"stands_for": "NUS-WIDEseq"}, 25.5, 55.5),
        ("coco_progression", "PRS overall mAP", {"trained_tasks": 1}, 65.4, 55.5),
        ("coco_memory", "GSS minority C-F1", {"memory_size": 1000}, 8.2, 35.5),
        ("rnn_attention", "PRS majority O-F1", {}, 64.5, 55.5),
        # of the plain network with a frozen stage, and on the whole test set
        ("architectures", "Multitask overall mAP", PLAIN, 56.8, 60.5),
        ("mnist", "PRS overall accuracy", MNIST | {"trained_tasks": 5}, 68.45, 55.5),
    ],
)
def test_matching(cells, table, place, filters, theirs, ours):
    row = cell(cells, table, *place.split(), **filters)
    assert (row["theirs"], row["seeds"]) == (theirs, len(SEEDS))
    assert row["ours"] == pytest.approx(ours)
    assert row["difference"] == pytest.approx(ours - theirs)
    assert row["sd"] == pytest.approx(0.5 * np.std(SEEDS, ddof=1))


def test_tables_of_the_committed_cells_are_the_committed_tables():
    cells = pd.read_csv(COMMITTED / "ledger_cells.csv")
    tables = pd.read_csv(COMMITTED / "ledger_tables.csv")
    pd.testing.assert_frame_equal(notebook.by_table(cells), tables, check_dtype=False)


def test_every_claim_can_be_decided(decided):
    """On runs of everything there is a number on every data set, where the fakes have it."""
    for name, claim in CLAIMS.items():
        rows = decided[decided["claim"] == name]
        assert rows["stands_for"].tolist() == list(claim.on)
        if not claim.stand_ins:
            assert (rows["verdict"] == "not run").all()
        # GSS needs a plain network; fakes have neither features nor all classes' scores
        elif not name.startswith(("features", "order", "architectures_gss")):
            assert (rows["seeds"] == len(SEEDS)).all(), name


def decide_some(rows, *names):
    decided = ledger.decide(rows)
    is_chosen = decided["claim"].isin(names) & (decided["stands_for"] == "COCOseq")
    return decided[is_chosen].set_index("claim")


def test_without_stored_runs_everything_is_not_run():
    nothing = results_of([], {})
    assert set(ledger.decide(nothing)["verdict"]) == {"not run"}
    assert set(notebook.cells(nothing, "quick")["status"]) == {"not run"}


def test_every_data_set_is_decided_the_papers_own_first(results):
    """A part of the paper's images counts before a stand-in."""
    two = results["method"].isin(["CRS", "PRS"])
    results = results[two & results["setting"].map(len).eq(0)]
    other = results[results["dataset"] == TINY]
    both = pd.concat([results, other.assign(dataset="cocoseq-mini")])
    rows = decide_some(both, "above_crs")
    assert rows["dataset"].tolist() == ["cocoseq-mini", TINY]
    assert rows["data"].tolist() == ["part", "stand-in"]
    row = cell(notebook.cells(both, "smoke"), "main", "PRS", "overall", "mAP")
    assert (row["dataset"], row["data"]) == ("cocoseq-mini", "part")


def test_a_gradient_variance_counts_by_its_logarithm(runs):
    config = next(config for config in runs if config.variance_points)
    run = with_variance(make_run(config), [1.0, 0.0, 100.0])
    rows = results_of([run], {config.dataset: config})
    (value,) = rows.loc[rows["measure"] == "variance", "value"]
    assert value == pytest.approx(10)


def family(**claims):
    rows = [(name, *row) for name, row in claims.items()]
    columns = ["claim", "alone", "p"]
    return pd.DataFrame(rows, columns=columns).assign(dataset="a")


def test_only_differences_in_points_can_be_none():
    tiny = interval(np.linspace(-0.001, 0.0011, 10)[:, None, None])
    assert tiny.verdict == "no difference"
    verdicts = {
        name: CLAIMS[name].verdict(tiny) for name in ("tail_crs", "steadier_gss")
    }
    assert verdicts == {"tail_crs": "no difference", "steadier_gss": "undecided"}


def test_holm_takes_verdicts_back_on_each_data_set_by_itself():
    rows = family(
        tail_crs=("holds", 0.04),
        above_crs=("holds", 0.001),
        above_gss=("undecided", 0.5),
    )
    rows = pd.concat([rows, rows[:1].assign(dataset="b")], ignore_index=True)
    verdicts = ["undecided", "holds", "undecided", "holds"]
    assert ledger.correct(rows, 0.95).tolist() == verdicts


def test_sensitivities_and_facts_are_in_no_family_and_in_no_count(decided):
    """At 0.04 one claim by itself holds; with eleven more tests beside it it would not."""
    others = {
        name: ("holds", 0.5)
        for name, claim in CLAIMS.items()
        if claim.kind == "sensitivity"
    }
    assert len(others) == 11
    rows = family(tail_crs=("holds", 0.04), **others, prs_balances=("fact", np.nan))
    verdicts = ["holds", *["sensitivity"] * 11, "fact"]
    assert ledger.correct(rows, 0.95).tolist() == verdicts
    counted = ledger.counts(rows.assign(verdict=verdicts, data="stand-in"))
    assert counted.loc["synthetic data"].to_dict() == {
        **dict.fromkeys(["does not hold", "no difference", "undecided"], 0),
        "holds": 1,
        "rows": 1,
    }
    kinds = decided[decided["verdict"] != "not run"].groupby("kind")["verdict"]
    assert set(kinds.get_group("fact")) == {"fact"}
    assert set(kinds.get_group("sensitivity")) == {"sensitivity"}


def test_a_claim_that_contains_another_is_counted_like_any_other():
    """With two claims, the smaller p value needs half the level and the other all of it."""
    rows = family(best=("holds", 0.03), above_crs=("holds", 0.02))
    assert ledger.correct(rows[:1], 0.95).tolist() == ["holds"]
    assert ledger.correct(rows, 0.95).tolist() == ["holds", "holds"]
    rows["p"] = [0.04, 0.03]
    assert ledger.correct(rows, 0.95).tolist() == ["undecided", "undecided"]


FAMILIES = 200
TABLE_1 = ("above_crs", "above_gss", "above_exstream", "best", "crs_majority")
TABLE_1 += ("crs_sacrifices", "best_on_tail", "head_and_tail")


def scores_without_differences(rng):
    """Scores of Table 1 by six seeds; what a run is above others, its groups share."""
    methods = ("Finetune", "EWC", "CRS", "GSS", "ExStream", "PRS")
    groups = ("overall", "majority", "moderate", "minority")
    cells = list(product(groups, MAIN_METRICS))
    rows = product(range(6), methods, cells)
    rows = [(seed, method, *cell) for seed, method, cell in rows]
    shared = rng.normal(size=(6, len(methods), 1))
    value = 50 + shared + rng.normal(size=(6, len(methods), len(cells)))
    usual = {"trained_tasks": 4, "task": "seen", "measure": "score"} | BALANCED
    table = pd.DataFrame(rows, columns=["seed", "method", "group", "metric"])
    settings = [STANDARD] * len(table)
    return table.assign(value=value.ravel(), setting=settings, **usual)


def test_of_ledgers_without_a_difference_at_most_the_level_have_a_wrong_verdict():
    rng = np.random.default_rng(0)
    rows = []
    for family in range(FAMILIES):
        scores = Scores(scores_without_differences(rng))
        for name in TABLE_1:
            claim = CLAIMS[name]
            _, values = claim.evaluate(scores)
            effect = interval(values, claim.over)
            alone = claim.verdict(effect)
            row = {"claim": name, "dataset": family, "alone": alone, "p": effect.p}
            rows.append(row)
    decided = pd.DataFrame(rows)
    after = decided.assign(alone=ledger.correct(decided, LEVEL))
    alone, after_holm = (
        table["alone"].isin(WORDS).groupby(table["dataset"]).any().mean()
        for table in (decided, after)
    )
    error = (0.05 * 0.95 / FAMILIES) ** 0.5
    assert after_holm < 0.05 + 3 * error < alone


def test_the_committed_claims_come_out_as_committed():
    """From the committed scores of Table 1; a mean has no weakest cell."""
    decided = pd.read_csv(COMMITTED / "ledger_claims.csv")
    about = {"trained_tasks": 0, "task": "seen"} | BALANCED
    compared = 0
    for dataset in ("cocoseq-mini", "reutersseq"):
        file = COMMITTED / f"main_results_groups_{dataset}.csv"
        table = pd.read_csv(file, keep_default_na=False, na_values=["nan"])
        scores = Scores(table.assign(**about, setting=[STANDARD] * len(table)))
        rows = decided[decided["dataset"].eq(dataset) & decided["over"].eq("mean")]
        for name, effect in zip(rows["claim"], rows["effect"], strict=True):
            new = CLAIMS[name].decide(scores)["effect"]
            compared += not np.isnan(new)
            assert np.isnan(new) or new == pytest.approx(effect, abs=0.001)
    assert compared >= 4
