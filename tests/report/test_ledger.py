import math

import numpy as np
import pandas as pd
import pytest
from fake_runs import fake_run, with_variance

from prslib.experiments.store import Store
from prslib.paths import project_root
from prslib.report import ledger
from prslib.report.claims import CLAIMS, Scores
from prslib.report.observations import observe, settings_in_words
from prslib.report.statistics import DECIDING
from prslib.training.grids import configs
from prslib.training.methods import METHODS

COMMITTED = project_root() / "figures" / "seeds"
TINY = "digits70tiny"
RNN = "convnet_rnn_attention"
MNIST = {"stands_for": "Imbal-MNISTseq"}
PLAIN = {"architecture": "ResNet101", "epochs": 1, "test_set": "balanced"}
SCRATCH = {"pretrained_stages": 0, "frozen_stages": [0, 3]}
ORDERS = [(0, 3, 1, 2), (0, 1, 3, 2), (2, 3, 0, 1)]


def everything():
    """Make a small grid of everything that a claim may be about, the standards first."""
    both, four = [TINY, "digits49tiny"], ["CRS", "GSS", "ExStream", "PRS"]
    single = ["imbal-digits-tiny", "imbal-colour-digits-tiny"]
    tests = {"test_set": ["balanced", "imbalanced"], "method": "Multitask"}
    nets = [{"model": "convnet_attention_consistency", "frozen_stages": 1}]
    nets += [{"model": RNN}]
    other_orders = [(3, 1, 0, 5, 4, 2), (0, 1, 2, 3, 4, 5)]
    imbalanced = {"dataset": TINY, "test_set": "imbalanced"}
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
        imbalanced | {"method": ["Multitask", *four[:3]]},
        imbalanced | {"method": "PRS", "rho": 0.5},
        {"dataset": both, "frozen_stages": 1} | tests,
        *({"dataset": both} | net | tests for net in nets),
        *({"dataset": TINY, "method": [*four[2:], "CRS"]} | net for net in nets),
        {"dataset": [TINY, single[0]], "method": four} | measured,
    ]
    seeds = list(range(DECIDING))
    runs = [config for grid in grids for config in configs(**grid, seed=seeds)]
    return list({config.hash: config for config in reversed(runs)}.values())[::-1]


BASE = {"Finetune": 0.1, "EWC": 0.2, "GSS": 0.25, "ExStream": 0.3}
BASE |= {"CRS": 0.35, "PRS": 0.4}


def made(config, sign=1.0):
    """Make a run in which PRS leads and the order of the methods is the paper's, or reversed."""
    lead = BASE.get(config.method, 0.45) - 0.35 + 0.05 * (config.frozen_stages == 3)
    level = 0.5 + sign * lead
    shift = 0.005 * (config.seed - 1)

    def value(cells):
        late = (cells["group"] == "minority") & (cells["trained_tasks"] == 4)
        return level + shift - 0.05 * late

    run = fake_run(config, value)
    if config.features_per_class or config.variance_points:
        run = with_variance(run, [level, level + 0.1])
    return run


@pytest.fixture(scope="module")
def runs():
    return everything()


@pytest.fixture(scope="module")
def observations(runs):
    return observe(list(map(made, runs)), runs)


@pytest.fixture(scope="module")
def decided(observations):
    return ledger.decide(observations)


@pytest.fixture(scope="module")
def cells(observations):
    return ledger.cells(observations, "smoke")


def cell(rows, table, method, group, metric, **filters):
    chosen = rows[(rows["table"] == table) & (rows["method"] == method)]
    filters = {"measure": "score", "stands_for": "COCOseq"} | filters
    for name, value in {"group": group, "metric": metric, **filters}.items():
        chosen = chosen[chosen[name] == value]
    assert len(chosen) == 1
    return chosen.iloc[0]


def test_settings_say_how_a_run_differs_from_the_standard():
    rows = [
        ({}, ""),
        ({"memory_size": 25}, "memory_size=0.5"),
        ({"rho": 0.5, "test_set": "imbalanced"}, "rho=0.5;test_set=imbalanced"),
        ({"method": "CRS", "schedule": ORDERS[1]}, "schedule=0,1,3,2"),
        ({"model": RNN, "learning_rate": 0.1}, "model=RNN-Attention"),
        ({"frozen_stages": 1}, "frozen_stages=some"),
        # two that no printed cell has
        ({"learning_rate": 0.1}, "learning_rate=0.1"),
        ({"variant": "authors"}, "variant=authors"),
    ]
    usual = {"dataset": TINY, "method": "PRS"}
    table = settings_in_words([c for row in rows for c in configs(**usual | row[0])])
    assert table["setting"].tolist() == [setting for _, setting in rows]
    sizes = configs(dataset="digits49tiny", method="CRS", memory_size=[33, 17, 50])
    odd = settings_in_words(sizes)["setting"].tolist()
    assert odd == ["", "memory_size=0.5", "memory_size=1.5"]
    # the paper's order is not known
    single = {"dataset": "imbal-digits-tiny", "method": "CRS"}
    assert set(settings_in_words(configs(**single, seed=[0, 1]))["setting"]) == {""}


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
    assert (row["theirs"], row["seeds"]) == (theirs, DECIDING)
    assert row["ours"] == pytest.approx(ours)
    assert row["difference"] == pytest.approx(ours - theirs)
    assert row["sd"] == pytest.approx(0.5 * np.std(range(DECIDING), ddof=1))


def test_tables_of_the_committed_cells_are_the_committed_tables():
    cells = pd.read_csv(COMMITTED / "ledger_cells.csv")
    tables = pd.read_csv(COMMITTED / "ledger_tables.csv")
    pd.testing.assert_frame_equal(ledger.by_table(cells), tables, check_dtype=False)


def test_ranks_are_of_three_methods_that_do_not_all_tie(cells):
    column = "table == 'main' and stands_for == 'COCOseq' and group == 'overall'"
    rows = cells.query(f"{column} and metric == 'mAP' and measure == 'score'")
    assert len(ledger.rank_correlations(rows)) == 1
    assert ledger.rank_correlations(rows.assign(ours=1.0)).empty
    assert ledger.rank_correlations(rows[-2:]).empty


def test_every_claim_can_be_decided(decided):
    """On runs of everything there is a number on every data set, where the fakes have it."""
    for name, claim in CLAIMS.items():
        rows = decided[decided["claim"] == name]
        assert rows["stands_for"].tolist() == list(claim.on)
        # GSS needs a plain network; fakes have neither features nor all classes' scores
        if not name.startswith(("features", "order", "architectures_gss")):
            assert (rows["seeds"] == DECIDING).all(), name


def decide_some(rows, *names):
    decided = ledger.decide(rows, claims={name: CLAIMS[name] for name in names})
    return decided[decided["stands_for"] == "COCOseq"].set_index("claim")


def test_verdicts_follow_the_numbers(runs):
    reverse = [config for config in runs if config.dataset == TINY]
    reverse = observe([made(config, -1) for config in reverse], runs)
    names = ["above_crs", "best_on_tail", "schedules", "memory", "ewc_frozen"]
    behind = decide_some(reverse, "crs_majority", *names)["verdict"]
    assert behind["crs_majority"] == "holds"
    assert set(behind[names]) == {"does not hold"}


def test_every_data_set_is_decided_the_papers_own_first(observations):
    """A part of the paper's images counts before a stand-in."""
    two = observations["method"].isin(["CRS", "PRS"])
    observations = observations[two & observations["setting"].eq("")]
    other = observations[observations["dataset"] == TINY]
    both = pd.concat([observations, other.assign(dataset="cocoseq-mini")])
    rows = decide_some(both, "above_crs")
    assert rows["dataset"].tolist() == ["cocoseq-mini", TINY]
    names = ["cocoseq-mini [part of COCOseq]", f"{TINY} [COCOseq]"]
    assert ledger.account(rows)["data"].tolist() == names
    row = cell(ledger.cells(both, "smoke"), "main", "PRS", "overall", "mAP")
    assert (row["dataset"], row["data"]) == ("cocoseq-mini", "part")


def test_nothing_is_decided_without_runs(runs):
    nothing = observe([], runs)
    decided = decide_some(nothing, "above_crs", "rho_ends", "features")
    assert set(decided["verdict"]) == {"not run"}
    assert decided["published"].notna().tolist() == [True, False, False]
    assert set(ledger.account(decided)["effect"]) == {""}
    assert set(ledger.cells(nothing, "smoke")["status"]) == {"not run"}


def test_a_gradient_variance_counts_by_its_logarithm(runs):
    config = next(config for config in runs if config.variance_points)
    rows = observe([with_variance(made(config), [1.0, 0.0, 100.0])], runs)
    (value,) = rows.loc[rows["measure"] == "variance", "value"]
    assert value == pytest.approx(10)


def test_holm_takes_verdicts_back():
    rows = pd.DataFrame(
        {"alone": ["holds", "holds", "no difference"], "p": [0.04, 0.001, 0.5]}
    )
    verdicts = ["undecided", "holds", "no difference"]
    assert ledger.corrected(rows, 0.95).tolist() == verdicts


def test_the_committed_claims_come_out_as_committed():
    """From the committed scores of Table 1, and Holm's correction from all rows."""
    decided = pd.read_csv(COMMITTED / "ledger_claims.csv")
    again = ledger.corrected(decided, decided["level"].iloc[0])
    assert again.tolist() == decided["verdict"].tolist()
    usual = {"setting": "", "trained_tasks": 0, "task": "seen"}
    compared = 0
    for dataset in ("cocoseq-mini", "digits49seq"):
        file = COMMITTED / f"main_results_groups_{dataset}.csv"
        table = pd.read_csv(file, keep_default_na=False, na_values=["nan"])
        table["rho"] = pd.to_numeric(table["rho"])
        scores = Scores(table.assign(**usual))
        claims = decided[decided["dataset"] == dataset].set_index("claim")["effect"]
        for name, effect in claims.items():
            new = CLAIMS[name].decide(scores)["effect"]
            compared += not np.isnan(new)
            assert np.isnan(new) or new == pytest.approx(effect, abs=0.001)
    assert compared > 20


def test_gather_leaves_what_is_not_stored_or_trains_it(monkeypatch, own_folders):
    runs = configs(dataset="imbal-digits-tiny", method=["Finetune"], seed=[0, 1])
    Store().save(fake_run(runs[0], 0.5, whole=True))
    assert set(ledger.gather(runs, "leave")["seed"]) == {0}
    monkeypatch.setattr(ledger, "run_all", lambda runs, **_: map(made, runs))
    assert set(ledger.gather(runs, "train")["seed"]) == {0, 1}


def test_claims_that_nothing_decides_leave_an_empty_table(decided):
    table = ledger.account(decided.iloc[:0])
    assert table.empty and list(table) == list(ledger.account(decided))
