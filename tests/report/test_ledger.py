import math

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from fake_runs import fake_run, with_variance

from prslib.experiments.store import Store
from prslib.report import ledger, topics
from prslib.report.claims import CLAIMS
from prslib.report.observations import observe, published_observations, settings_of
from prslib.report.statistics import DECIDING, VERDICTS
from prslib.training.grids import configs
from prslib.training.methods import METHODS

TINY = "digits70tiny"
MNIST = {"stands_for": "Imbal-MNISTseq"}
ORDERS = [(0, 3, 1, 2), (0, 1, 3, 2), (2, 3, 0, 1)]


def asked():
    """Make a small grid of everything that a claim may be about, the standards first."""
    seeds, both = list(range(DECIDING)), [TINY, "digits49tiny"]
    single = ["imbal-digits-tiny", "imbal-colour-digits-tiny"]
    memories = {TINY: (25, 75), "digits49tiny": (16, 50)}
    attention = [
        f"convnet_{name}" for name in ("attention_consistency", "rnn_attention")
    ]
    some, four = ["CRS", "PRS"], ["CRS", "GSS", "ExStream", "PRS"]
    wanted = configs(dataset=both, method=list(METHODS)[:7], seed=seeds)
    wanted += configs(
        dataset=single, method=["Finetune", "CRS", "GSS", "PRS"], seed=seeds
    )
    wanted += configs(dataset=TINY, method=four, schedule=ORDERS, seed=seeds)
    orders = [(3, 1, 0, 5, 4, 2), (0, 1, 2, 3, 4, 5)]
    wanted += configs(dataset="digits49tiny", method=four, schedule=orders, seed=seeds)
    for name, sizes in memories.items():
        wanted += configs(
            dataset=name, method=four, memory_size=list(sizes), seed=seeds
        )
    wanted += configs(dataset=TINY, method="PRS", rho=[-1.0, 1.0], seed=seeds)
    wanted += configs(
        dataset=both,
        method="EWC",
        pretrained_stages=0,
        frozen_stages=[0, 3],
        seed=seeds,
    )
    imbalanced = {"dataset": TINY, "test_set": "imbalanced", "seed": seeds}
    wanted += configs(**imbalanced, method=["Multitask", *four[:3]])
    wanted += configs(**imbalanced, method="PRS", rho=0.5)
    frozen = {"method": "Multitask", "frozen_stages": 1, "seed": seeds}
    tests, nets = ["balanced", "imbalanced"], {"model": attention, "seed": seeds}
    wanted += configs(dataset=both, test_set=tests, **frozen)
    wanted += configs(dataset=both, method="Multitask", test_set=tests, **nets)
    wanted += configs(dataset=TINY, method=["ExStream", *some], **nets)
    extras = {"features_per_class": 2, "variance_points": 2, "seed": seeds}
    wanted += configs(dataset=[TINY, "imbal-digits-tiny"], method=four, **extras)
    return list({config.hash: config for config in reversed(wanted)}.values())[::-1]


BASE = {
    "Finetune": 0.1,
    "EWC": 0.2,
    "GSS": 0.25,
    "ExStream": 0.3,
    "CRS": 0.35,
    "PRS": 0.4,
}


def made(config, sign=1.0):
    """Make a run in which PRS leads and the order of the methods is the paper's, or reversed."""
    level = 0.5 + sign * (
        BASE.get(config.method, 0.45) - 0.35 + 0.05 * (config.frozen_stages == 3)
    )
    shift = 0.005 * (config.seed - 1)

    def value(cells):
        late = (cells["group"] == "minority") & (cells["trained_tasks"] == 4)
        return level + shift - 0.05 * late

    run = fake_run(config, value)
    if config.features_per_class or config.variance_points:
        run = with_variance(run, [level, level + 0.1])
    return run


@pytest.fixture(scope="module")
def wanted():
    return asked()


@pytest.fixture(scope="module")
def observations(wanted):
    return observe([made(config) for config in wanted], wanted)


@pytest.fixture(scope="module")
def decided(wanted, observations):
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


def test_settings_say_what_is_varied():
    grid = {"dataset": TINY, "method": "PRS"}
    rows = configs(**grid)
    rows += configs(**grid, memory_size=25) + configs(
        **grid, rho=0.5, test_set="imbalanced"
    )
    rows += configs(dataset=TINY, method="CRS", schedule=ORDERS[1], variance_points=3)
    rows += configs(**grid, model="convnet_rnn_attention") + configs(
        **grid, learning_rate=0.1
    )
    table = settings_of(rows)
    varied = ["", "memory_size", "rho,test_set", "schedule", "model", "learning_rate"]
    assert table["varied"].tolist() == varied
    assert table["memory"].tolist() == [1, 0.5, 1, 1, 1, 1]
    assert table["power"].tolist() == ["own", "own", "0.5", "", "own", "own"]
    assert table["architecture"].tolist() == ["ResNet101"] * 4 + [
        "RNN-Attention",
        "ResNet101",
    ]
    assert set(table["data"]) == {"stand-in"}
    sizes = settings_of(
        configs(dataset="digits49tiny", method="CRS", memory_size=[33, 17, 50])
    )
    assert sizes["memory"].tolist() == [1, 0.5, 1.5]  # odd sizes are rounded
    single = {
        "dataset": "imbal-digits-tiny",
        "method": "CRS",
    }  # the paper's order is not known
    other = configs(**single, schedule=tuple(range(10)))
    rows = settings_of(configs(**single, seed=[0, 1]) + other)
    assert (
        rows["schedule"].tolist()[:2] == ["", ""]
        and rows["varied"].iloc[2] == "schedule"
    )


def test_the_papers_rows_in_the_same_terms():
    rows = published_observations()
    assert len(rows) == 2220
    assert rows["cell"].tolist() == list(range(2220))
    kinds = rows.groupby("table")["varied"].unique().map(set)
    assert kinds["main"] == {""}
    assert kinds["coco_schedules"] == {"schedule"}
    assert kinds["nus_memory"] == {"", "memory_size"}
    assert kinds["imbalanced_test"] == {"test_set", "rho,test_set"}
    assert kinds["rnn_attention"] == {"model"}
    assert kinds["attention_consistency"] == {"frozen_stages,model"}
    assert "" not in kinds["architectures"]  # the plain network is frozen there
    assert rows.loc[rows["method"] == "Multitask", "memory"].isna().all()


def test_there_is_a_row_for_each_published_cell(cells):
    assert len(cells) == 2220
    assert set(cells["status"]) == {"run", "not run"}
    assert (cells["seeds"] > 0).eq(cells["status"] == "run").all()
    assert set(cells.loc[cells["status"] == "run", "data"]) == {"stand-in"}
    row = cell(cells, "coco_schedules", "CRS", "overall", "mAP", schedule="3,1,0,2")
    assert (row["status"], row["theirs"]) == ("not run", 49.7)
    assert math.isnan(row["ours"]) and math.isnan(row["difference"])


@pytest.mark.parametrize(
    ("table", "method", "group", "metric", "filters", "theirs", "ours"),
    [
        ("main", "CRS", "minority", "mAP", {}, 26.9, 45.5),
        ("main", "PRS", "overall", "C-F1", {}, 53.2, 55.5),
        ("main", "PRS", "overall", "mAP", {"stands_for": "NUS-WIDEseq"}, 25.5, 55.5),
        ("coco_progression", "PRS", "overall", "mAP", {"trained_tasks": 1}, 65.4, 55.5),
        ("coco_memory", "GSS", "minority", "C-F1", {"memory_size": 1000}, 8.2, 35.5),
        (
            "coco_schedules",
            "CRS",
            "overall",
            "mAP",
            {"schedule": "2,3,0,1"},
            48.2,
            50.5,
        ),
        ("imbalanced_test", "PRS", "overall", "O-F1", {}, 60.4, 55.5),
        ("rnn_attention", "PRS", "majority", "O-F1", {}, 64.5, 55.5),
        ("coco_precision_recall", "EWC", "majority", "C-P", {}, 55.5, 35.5),
        # on the whole test set
        (
            "mnist",
            "PRS",
            "overall",
            "accuracy",
            MNIST | {"trained_tasks": 5},
            68.45,
            55.5,
        ),
    ],
)
def test_matching(cells, table, method, group, metric, filters, theirs, ours):
    row = cell(cells, table, method, group, metric, **filters)
    assert (row["theirs"], row["seeds"]) == (theirs, DECIDING)
    assert row["ours"] == pytest.approx(ours)
    assert row["difference"] == pytest.approx(ours - theirs)
    assert row["sd"] == pytest.approx(0.5 * np.std(range(DECIDING), ddof=1))


def test_frozen_cells_are_filled_by_frozen_runs_alone():
    plain = {"architecture": "ResNet101", "epochs": 1, "test_set": "balanced"}
    for frozen, status in ((0, "not run"), (1, "run")):
        rows = configs(
            dataset=TINY, method="Multitask", seed=[0], frozen_stages=[0, frozen]
        )
        found = ledger.cells(observe([made(config) for config in rows], rows), "smoke")
        row = cell(found, "architectures", "Multitask", "overall", "mAP", **plain)
        assert (row["theirs"], row["status"]) == (56.8, status)
        assert cell(found, "main", "Multitask", "overall", "mAP")["status"] == "run"


@pytest.mark.parametrize(
    "other", [{"learning_rate": 0.5}, {"rho": 1.0}, {"variant": "authors"}]
)
def test_other_settings_do_not_pass_for_the_papers(other):
    rows = configs(dataset=TINY, method=["PRS"], seed=[0])
    rows += configs(dataset=TINY, method=["PRS"], seed=[1], **other)
    own = {
        "model": "convnet_rnn_attention",
        "learning_rate": 0.0005,
    }  # which the paper has, too
    rows += configs(dataset=TINY, method=["PRS"], seed=[0], **own)
    found = ledger.cells(observe([made(config) for config in rows], rows), "smoke")
    for table in ("main", "rnn_attention"):
        assert cell(found, table, "PRS", "overall", "mAP")["seeds"] == 1


def test_summary(cells):
    tables = ledger.summary(cells).set_index("table")
    assert tables["cells"].sum() == 2220
    assert tables.loc["main", "run"] == tables.loc["main", "stand_ins"] == 312
    one = cells[(cells["table"] == "svhn") & (cells["status"] == "run")]
    assert tables.loc["svhn", "mean_difference"] == pytest.approx(
        one["difference"].abs().mean()
    )


@pytest.mark.parametrize(("sign", "expected"), [(1, 1), (-1, -1)])
def test_rank_correlation_is_of_methods_within_a_column(sign, expected):
    theirs = pd.Series([18.0, 40.0, 47.0, 53.0])
    column = {
        "table": "main",
        "stands_for": "COCOseq",
        "architecture": "ResNet101",
        "epochs": 1,
    }
    column |= {
        "test_set": "balanced",
        "trained_tasks": 4,
        "group": "overall",
        "metric": "mAP",
    }
    column |= {"measure": "score", "memory_size": 2000, "schedule": "0,3,1,2"}
    rows = pd.DataFrame({"theirs": theirs, "ours": 50 + sign * theirs, **column})
    rows["method"] = ["Finetune", "EWC", "CRS", "PRS"]
    other = rows.assign(group="minority", ours=rows["ours"] + 500)
    assert ledger.rank_correlations(pd.concat([rows, other])) == pytest.approx(
        [expected] * 2
    )
    assert ledger.rank_correlations(rows.assign(ours=1.0)) == []
    assert ledger.rank_correlations(rows[:2]) == []


def test_every_claim_can_be_decided(wanted, decided):
    """On runs of everything there is a number on every data set, where the fakes have it."""
    for name, claim in CLAIMS.items():
        rows = decided[decided["claim"] == name]
        assert rows["stands_for"].tolist() == list(claim.on)
        made_up = name == "features" or name.startswith("order")
        if not made_up and name != "architectures_gss":  # GSS needs a plain network
            assert rows["effect"].notna().all(), name
            assert (rows["seeds"] == DECIDING).all(), name
            assert (rows["verdict"] != "not run").all(), name


def decide_some(rows, *names):
    found = ledger.decide(rows, claims={name: CLAIMS[name] for name in names})
    return found[found["stands_for"] == "COCOseq"].set_index("claim")


def test_verdicts_follow_the_numbers(wanted, observations):
    names = ["above_crs", "best", "best_on_tail", "schedules", "memory", "variance_crs"]
    names.append("ewc_frozen")
    reversed_ = observe([made(c, sign=-1) for c in wanted if c.dataset == TINY], wanted)
    ahead, behind = (
        decide_some(rows, "crs_majority", *names)["verdict"]
        for rows in (observations, reversed_)
    )
    for name in names:
        assert (ahead[name], behind[name]) == ("holds", "does not hold"), name
    assert (ahead["crs_majority"], behind["crs_majority"]) == ("does not hold", "holds")


def test_every_data_set_is_decided_the_papers_own_first(wanted, observations):
    """A part of the paper's images counts before a stand-in."""
    other = observations[observations["dataset"] == TINY].assign(
        dataset="mini", data="part"
    )
    rows = decide_some(pd.concat([observations, other]), "above_crs")
    assert rows["dataset"].tolist() == ["mini", TINY]
    assert ledger.account(rows)["data"].tolist() == [
        "mini [part of COCOseq]",
        f"{TINY} [COCOseq]",
    ]
    found = ledger.cells(pd.concat([observations, other]), "smoke")
    assert cell(found, "main", "PRS", "overall", "mAP")["dataset"] == "mini"


def test_nothing_is_decided_without_runs(wanted):
    decided = decide_some(observe([], wanted), "above_crs", "rho_ends", "features")
    assert set(decided["verdict"]) == {"not run"}
    assert decided["published"].notna().tolist() == [True, False, False]
    assert set(ledger.cells(observe([], wanted), "smoke")["status"]) == {"not run"}


def test_the_papers_own_numbers_by_hand(decided):
    decided = decided.set_index(["claim", "stands_for"])["published"]
    assert decided["above_crs", "COCOseq"] == pytest.approx(50.3 - 46.6)
    assert decided["upper_bound", "COCOseq"] == pytest.approx(51.2 - 53.2)
    assert decided["majority", "COCOseq"] == pytest.approx(59.3 - 56.7)
    assert decided["single_gss", "Imbal-MNISTseq"] == pytest.approx(68.45 - 62.54)
    assert decided["imbalanced_crs", "COCOseq"] == pytest.approx(60.4 - 60.1)
    assert decided["balanced_is_harder", "COCOseq"] == pytest.approx(54.7 - 55.3)
    assert decided["plain_multitask", "COCOseq"] == pytest.approx(56.8 - 52.2)
    assert math.isnan(decided["prs_balances", "COCOseq"])


def test_a_gradient_variance_counts_by_its_logarithm(wanted):
    config = next(config for config in wanted if config.variance_points)
    rows = observe([with_variance(made(config), [1.0, 0.0, 100.0])], wanted)
    (value,) = rows.loc[rows["measure"] == "variance", "value"]
    assert value == pytest.approx(10)


def test_account_says_what_was_decided(decided):
    table = ledger.account(decided)
    narrow = table["after Holm"].str.startswith("no difference larger than ")
    assert set(table["after Holm"][~narrow]) <= set(VERDICTS)
    row = table[table["claim"] == "PRS outperforms CRS"].iloc[0]
    assert row["data"] == "digits70tiny [COCOseq]"
    assert row["effect"] == "+5.0 [+5.0, +5.0] points"
    assert row["paper"] == "+3.7"
    assert row["mAP"] == "+5.0 [+5.0, +5.0]"
    assert row["weakest cell"].endswith("; clearly above in 3 of 3, below in 0")
    assert ledger.as_markdown(table[:1]).count("\n") == 2


def test_holm_takes_verdicts_back():
    rows = pd.DataFrame(
        {"alone": ["holds", "holds", "no difference"], "p": [0.04, 0.001, 0.5]}
    )
    verdicts = ["undecided", "holds", "no difference"]
    assert ledger.corrected(rows, 0.95).tolist() == verdicts


def test_real_images_are_counted_first_and_apart():
    rows = pd.DataFrame({"data": ["stand-in", "part", "paper's", "part"]})
    rows["verdict"] = ["holds", "holds", "undecided", "not run"]
    found = ledger.counts(rows)
    assert found.index.tolist() == ["real images", "stand-ins"]
    assert found["rows"].tolist() == [2, 1] and found["holds"].tolist() == [1, 1]


def test_gather_leaves_what_is_not_stored_or_trains_it(tmp_path, monkeypatch):
    wanted = configs(dataset="imbal-digits-tiny", method=["Finetune"], seed=[0, 1])
    store = Store(tmp_path)
    store.save(made(wanted[0]))
    left = ledger.gather(wanted, "leave", store)
    assert left["seed"].unique().tolist() == [0]
    monkeypatch.setattr(
        ledger, "run_all", lambda asked, *_, **__: [made(c) for c in asked]
    )
    assert ledger.gather(wanted, "train", store)["seed"].nunique() == 2


def test_without_any_data_the_error_says_what_is_needed(monkeypatch):
    monkeypatch.delenv("PRSLIB_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match="PRSLIB_DATA"):
        topics.runs("laptop")


def test_pictures(decided, cells):
    figure, axes = plt.subplots(1, 2)
    ledger.plot_claims(decided, axes[0])
    labels = [label.get_text() for label in axes[0].get_yticklabels()]
    # a line for each data set, the claim at its first
    assert len(labels) == len(decided)
    assert sum(not label.startswith("   ") for label in labels) == len(CLAIMS)
    assert len(set(decided["dataset"])) == len(
        set(map(ledger._short, decided.itertuples()))
    )
    assert "holds" in [text.get_text() for text in axes[0].get_legend().texts]
    assert set(ledger.HEADLINES) <= set(CLAIMS)
    run = cells[(cells["status"] == "run") & (cells["kind"] == "mAP")]
    ledger.plot_agreement(run, axes[1])
    drawn = sum(len(marks.get_offsets()) for marks in axes[1].collections)
    assert drawn == len(run)
    figure.canvas.draw()
    plt.close(figure)
