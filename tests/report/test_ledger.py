import math
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
from cells import functions_of
from fake_runs import fake_run, with_variance
from registered import forgetting

from prslib.datasets import DATASETS, load_dataset
from prslib.paths import project_root
from prslib.report import ledger, topics
from prslib.report import results as results_module
from prslib.report.asked import configs, drop_repeated, identify
from prslib.report.claims import CLAIMS, SETTINGS, Scores
from prslib.report.results import results_of, run_settings
from prslib.report.tables import MAIN_METRICS
from prslib.runs import path_of, register, save
from prslib.statistics import DECIDING, LEVEL, WORDS, interval
from prslib.train import METHODS, Method

notebook = functions_of("ledger")
COMMITTED = project_root() / "figures" / "seeds"
TINY = "digits70tiny"
RNN = "convnet_rnn_attention"
MNIST = {"stands_for": "Imbal-MNISTseq"}
PLAIN = {"architecture": "ResNet101", "epochs": 1, "test_set": "balanced"}
SCRATCH = {"pretrained_stages": 0, "frozen_stages": [0, 3]}
BALANCED = {"test_set": "balanced", "standard_rho": 0.0}
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
        {"dataset": TINY, "method": "several classes"},
        {"dataset": both, "method": "ExStream", "vector_stages": 0},
        imbalanced | {"method": ["Multitask", *four[:3]]},
        imbalanced | {"method": "PRS", "rho": 0.5},
        {"dataset": both, "frozen_stages": 1} | tests,
        *({"dataset": both} | net | tests for net in nets),
        *({"dataset": TINY, "method": [*four[2:], "CRS"]} | net for net in nets),
        {"dataset": [TINY, single[0]], "method": four} | measured,
    ]
    seeds = list(range(DECIDING))
    runs = [config for grid in grids for config in configs(**grid, seed=seeds)]
    return drop_repeated(runs)


LEVELS = {"Finetune": 0.25, "EWC": 0.35, "GSS": 0.4, "ExStream": 0.45, "CRS": 0.5}
LEVELS |= {"PRS": 0.55, "Multitask": 0.6, "several classes": 0.54}


def make_run(config):
    """Make a run in which PRS leads and the order of the methods is the paper's."""
    level = LEVELS[config.method] + 0.05 * (config.frozen_stages == 3)
    level -= 0.05 * (config.vector_stages == 0)

    def value(cells):
        late = (cells["group"] == "minority") & (cells["trained_tasks"] == 4)
        return level + 0.005 * (config.seed - 1) - 0.05 * late

    run = fake_run(config, value)
    if config.features_per_class or config.variance_points:
        run = with_variance(run, [level, level + 0.1])
    return run


@pytest.fixture(scope="module")
def runs():
    with forgetting():
        register("several classes", Method(sampler="prs"))
        yield everything()


@pytest.fixture(scope="module")
def results(runs):
    return results_of(list(map(make_run, runs)), runs)


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
        ({"rho": 0.5, "test_set": "imbalanced"}, {"rho": 0.5}),
        ({"method": "CRS", "schedule": ORDERS[1]}, {"schedule": "0,1,3,2"}),
        ({"model": RNN, "learning_rate": 0.1}, {"model": "RNN-Attention"}),
        ({"frozen_stages": 1}, {"frozen_stages": "other"}),
        ({"method": "ExStream", "vector_stages": 0}, {"vector_stages": "other"}),
    ]
    usual = {"dataset": TINY, "method": "PRS"}
    asked = [c for changed, _ in rows for c in configs(**usual | changed)]
    table = run_settings(asked)
    said = [row.dropna().to_dict() for _, row in table[list(SETTINGS)].iterrows()]
    assert said == [setting for _, setting in rows]
    is_other = (table["rho"] == 0.5).tolist()
    assert (table["test_set"] == "imbalanced").tolist() == is_other
    sizes = configs(dataset="digits49tiny", method="CRS", memory_size=[33, 17, 50, 25])
    odd = run_settings(sizes)["memory_size"].fillna(1).tolist()
    assert odd == [1, 0.5, 1.5, 0.75]
    # the paper's order is not known
    single = {"dataset": "imbal-digits-tiny", "method": "CRS"}
    table = run_settings(configs(**single, seed=[0, 1]))
    assert len(table) == 2 and table[list(SETTINGS)].isna().all(axis=None)


def test_the_largest_fifth_of_the_classes_is_14_of_70(results):
    rows = results[(results["dataset"] == TINY) & results["rho"].isna()]
    share = rows[rows["measure"] == "largest fifth of stream"]["value"]
    counts = np.sort(load_dataset(TINY, images=False).class_freq)
    assert share.to_numpy() == pytest.approx(100 * counts[-14:].sum() / counts.sum())


def test_runs_of_the_standard_setting_are_asked_for_first(monkeypatch):
    asked = []
    monkeypatch.setattr(
        topics, "runs_of", lambda profile, name: asked.append(name) or []
    )
    topics.runs("quick")
    assert asked[:3] == ["main_results", "precision_recall", "single_label"]
    assert asked[3:] == sorted(asked[3:]) and "ledger" not in asked


@pytest.mark.usefixtures("registers")
def test_runs_that_no_printed_cell_is_about_are_left_out():
    register("frozen", Method(sampler="crs", frozen="vector_stages"))
    usual = {"dataset": TINY, "method": ["PRS", "frozen"]}
    asked = configs(**usual, draw=["uniform", "balanced"], learning_rate=[None, 0.1])
    assert run_settings(asked)["run"].tolist() == [identify(asked[0])]


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
            assert (rows["seeds"] == DECIDING).all(), name


def decide_some(rows, *names):
    decided = ledger.decide(rows, claims={name: CLAIMS[name] for name in names})
    return decided[decided["stands_for"] == "COCOseq"].set_index("claim")


def test_every_data_set_is_decided_the_papers_own_first(results):
    """A part of the paper's images counts before a stand-in."""
    two = results["method"].isin(["CRS", "PRS"])
    results = results[two & results[list(SETTINGS)].isna().all(axis=1)]
    other = results[results["dataset"] == TINY]
    both = pd.concat([results, other.assign(dataset="cocoseq-mini")])
    rows = decide_some(both, "above_crs")
    assert rows["dataset"].tolist() == ["cocoseq-mini", TINY]
    names = ["cocoseq-mini [part of COCOseq]", f"{TINY} [COCOseq]"]
    assert ledger.account(rows)["data"].tolist() == names
    row = cell(notebook.cells(both, "smoke"), "main", "PRS", "overall", "mAP")
    assert (row["dataset"], row["data"]) == ("cocoseq-mini", "part")


@pytest.fixture
def reuters(monkeypatch):
    """Another real stream, which stands for no data set of the paper."""
    entry = replace(DATASETS[TINY], data_source="other")
    monkeypatch.setitem(DATASETS, "stream", entry)
    labels = replace(load_dataset(TINY, images=False), name="stream", stands_for=None)
    known = results_module.labels_of
    find = lambda name: labels if name == "stream" else known(name)  # noqa: E731
    for module in (ledger, results_module):
        monkeypatch.setattr(module, "labels_of", find)
    return "stream"


def test_another_real_stream_is_decided_in_rows_of_its_own(results, reuters):
    """No printed number is set beside it."""
    coco = results[results["dataset"] == TINY]
    rows = coco.assign(dataset=reuters, stands_for="")
    both = ledger.decide(pd.concat([coco, rows], ignore_index=True))
    other = both[both["data"] == "other"]
    assert set(other["stands_for"]) == {""} and other["published"].isna().all()
    claims = [CLAIMS[name] for name in other["claim"]]
    assert all("COCOseq" in claim.on and claim.other_streams for claim in claims)
    ours = both[(both["claim"] == "above_crs") & (both["dataset"] != "")]
    names = [f"{TINY} [COCOseq]", f"{reuters} [another real stream]"]
    assert ledger.account(ours)["data"].tolist() == names
    assert ledger.counts(both).index.tolist() == ["other real streams", "stand-ins"]
    differ = both.assign(alone=both["alone"].mask(both["data"].eq("other"), "holds"))
    assert not notebook.disagreements(differ)["data"].str.contains("another").any()
    assert set(notebook.cells(rows, "smoke")["status"]) == {"not run"}


def test_nothing_is_decided_without_runs(runs):
    nothing = results_of([], runs)
    decided = decide_some(nothing, "above_crs", "rho_ends", "features")
    assert set(decided["verdict"]) == {"not run"}
    assert decided["published"].notna().tolist() == [True, False, False]
    assert set(ledger.account(decided)["effect"]) == {""}
    assert set(notebook.cells(nothing, "smoke")["status"]) == {"not run"}


def test_a_gradient_variance_counts_by_its_logarithm(runs):
    config = next(config for config in runs if config.variance_points)
    rows = results_of([with_variance(make_run(config), [1.0, 0.0, 100.0])], runs)
    (value,) = rows.loc[rows["measure"] == "variance", "value"]
    assert value == pytest.approx(10)


def family(**claims):
    rows = [(name, *row) for name, row in claims.items()]
    columns = ["claim", "alone", "p"]
    return pd.DataFrame(rows, columns=columns).assign(dataset="a")


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
    assert counted.loc["stand-ins"].to_dict() == {
        **dict.fromkeys(["does not hold", "no difference", "undecided"], 0),
        "holds": 1,
        "rows": 1,
    }
    kinds = decided[decided["verdict"] != "not run"].groupby("kind")["verdict"]
    assert set(kinds.get_group("fact")) == {"fact"}
    assert set(kinds.get_group("sensitivity")) == {"sensitivity"}


@pytest.mark.parametrize(
    ("schedules_crs", "above_crs", "verdict"),
    [
        (("holds", 0.015), ("holds", 0.01), "holds"),
        (("holds", 0.015), ("holds", 0.04), "undecided"),  # not after Holm
        (("holds", 0.015), ("undecided", 0.3), "undecided"),
        (("holds", 0.02), ("holds", 0.01), "undecided"),  # has a third of the level
        (("does not hold", 0.01), ("holds", 0.01), "does not hold"),
        (("holds", 0.01), ("does not hold", 0.001), "does not hold"),
        (("no difference", 0.3), ("does not hold", 0.001), "does not hold"),
        (("no difference", 0.3), ("does not hold", 0.06), "no difference"),
        (("not run", np.nan), ("does not hold", 0.001), "not run"),
    ],
)
def test_a_claim_that_implies_another_follows_it(schedules_crs, above_crs, verdict):
    """Three claims are counted besides."""
    others = {"tail_crs": ("holds", 0.001), "above_gss": ("undecided", 0.5)}
    rows = family(schedules_crs=schedules_crs, above_crs=above_crs, **others)
    assert ledger.correct(rows, 0.95)[0] == verdict


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
    return table.assign(value=value.ravel(), **usual)


def test_of_ledgers_without_a_difference_at_most_the_level_have_a_wrong_verdict():
    rng = np.random.default_rng(0)
    rows = []
    for family in range(FAMILIES):
        scores = Scores(scores_without_differences(rng))
        for name in TABLE_1:
            claim = CLAIMS[name]
            _, values = claim.evaluate(scores, claim.metrics)
            effect = interval(values, claim.over)
            alone = claim.verdict(effect, np.nan)
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
        settings = table.columns.intersection([*SETTINGS])
        scores = Scores(table.drop(columns=settings).assign(**about))
        rows = decided[decided["dataset"].eq(dataset) & decided["over"].eq("mean")]
        for name, effect in zip(rows["claim"], rows["effect"], strict=True):
            new = CLAIMS[name].decide(scores)["effect"]
            compared += not np.isnan(new)
            assert np.isnan(new) or new == pytest.approx(effect, abs=0.001)
    assert compared >= 4


@pytest.mark.filterwarnings("ignore:runs computed")  # one is made up
def test_gather_leaves_what_is_not_stored_or_trains_it(own_folders):
    runs = configs(dataset="imbal-digits-tiny", method=["Finetune"], seed=[0, 1])
    save(fake_run(runs[0], 0.5), path_of(runs[0].to_train))
    assert set(ledger.gather(runs, "leave")["seed"]) == {0}
    assert set(ledger.gather(runs, "train")["seed"]) == {0, 1}


def with_leads(**leads):
    """Scores of PRS and of others, which it leads by numbers of five seeds."""
    usual = {"trained_tasks": 4, "task": "seen", "group": "overall"}
    usual |= {"measure": "score", "dataset": TINY, "stands_for": "COCOseq"}
    usual |= BALANCED
    rows = [
        {"method": method, "seed": seed, "metric": metric, "value": 50.0 - lead}
        for method, values in {"PRS": [0.0] * DECIDING, **leads}.items()
        for seed, lead in enumerate(values)
        for metric in ("C-F1", "O-F1", "mAP")
    ]
    return pd.DataFrame(rows).assign(**usual)


def test_an_undecided_row_says_which_difference_would_have_shown():
    rows = with_leads(CRS=[1.0, 2.0, 3.0, 4.0, 5.0], GSS=[-2.0, 1.0, 0.0, -1.0, 3.0])
    row = decide_some(rows, "above_crs", "above_gss")
    assert row["verdict"].to_dict() == {"above_crs": "holds", "above_gss": "undecided"}
    half = (row["high"] - row["low"])["above_gss"] / 2
    expected = pytest.approx([np.nan, half], nan_ok=True)
    assert row["would_show"].tolist() == expected
    # where the correction alone leaves it open, of the interval at half of the level
    rows = with_leads(CRS=[-2.0, 1.0, 0.0, -1.0, 3.0], GSS=[0.2, 1.4, 1.2, 2.0, 0.4])
    row = decide_some(rows, "above_crs", "above_gss").loc["above_gss"]
    assert (row["alone"], row["verdict"]) == ("holds", "undecided")
    assert row["would_show"] > max(row["effect"], (row["high"] - row["low"]) / 2)


def test_without_a_margin_of_the_unit_half_of_the_papers_effect_is_one():
    claim = CLAIMS["steadier_gss"]  # in square points
    effect = interval(np.array([-0.5, 1.0, -1.0, 0.5, 1.0])[:, None, None])
    widest = max(effect.high, -effect.low)
    assert claim.verdict(effect, 2.1 * widest) == "no difference"
    assert claim.verdict(effect, 1.9 * widest) == "undecided"
    assert claim.verdict(effect, np.nan) == "undecided"


def test_the_papers_numbers_stand_beside_runs_on_its_own_kind_of_test():
    rows = with_leads(CRS=[1.0] * DECIDING)
    rows = rows.reindex(columns=[*rows, *set(SETTINGS).difference(rows)])
    further = rows.assign(test_set="open")
    balanced = rows[rows["method"] == "PRS"].assign(value=70.0)
    cells = notebook.cells(pd.concat([further, balanced]).astype(SETTINGS), "smoke")
    assert cell(cells, "main", "PRS", "overall", "mAP")["ours"] == 70
    assert cell(cells, "main", "CRS", "overall", "mAP")["status"] == "not run"


def test_leads_are_compared_table_by_table():
    rows = with_leads(CRS=[1.0] * DECIDING, GSS=[-4.0] * DECIDING)
    rows = rows.reindex(columns=[*rows, *set(SETTINGS).difference(rows)])
    rows = rows.assign(dataset="cocoseq-mini").astype(SETTINGS)
    leads = notebook.by_lead(notebook.leads_of_prs(notebook.cells(rows, "smoke")))
    assert leads["table"].unique()[0] == "main"
    row = leads[(leads["table"] == "main") & (leads["kind"] == "mAP")].iloc[0]
    theirs = 55.3 - 50.2, 55.3 - 44.0  # overall, over CRS and over GSS
    assert (row["cells"], row["ours"]) == (2, -1.5)
    assert row["theirs"] == pytest.approx(np.mean(theirs))
    assert row["lowest"] == pytest.approx(-4 - theirs[1])
    assert row["highest"] == pytest.approx(1 - theirs[0])
    assert row["same_sign"] == 1


def real(name, **verdicts):
    """Rows of a claim with verdicts on data sets."""
    claim = CLAIMS[name]
    about = {"claim": name, "statement": claim.statement, "unit": claim.unit}
    about |= {"kind": claim.kind, "stands_for": "", "published": np.nan}
    about |= {"test_set": "balanced", "data": "other", "alone": "holds"}
    about |= {"effect": 1.0, "low": 0.5, "high": 1.5, "weakest": "over CRS O-F1"}
    rows = [
        about | {"dataset": name, "verdict": verdict}
        for name, verdict in verdicts.items()
    ]
    return pd.DataFrame(rows)


def test_the_head_says_where_a_headline_holds_and_what_was_not_tested():
    rows = [
        real("above_crs", a="holds", b="does not hold", c="holds", d="undecided"),
        real("above_crs", stand_in="holds").assign(data="stand-in"),
        real("above_gss", a="holds"),
        real("imbalanced_crs", a="not run", b="no difference"),
    ]
    text = ledger.summarise(pd.concat(rows, ignore_index=True))
    first, second, last = text.splitlines()
    assert (
        "holds on 2 of 4 real streams (a, c); does not hold on b; undecided on d"
        in first
    )
    assert "holds on 0 of 1 real streams; no difference on b" in second
    count = sum(claim.kind == "primary" for claim in CLAIMS.values())
    assert f"{count - 3} of {count} claims" in last


def test_a_claim_has_a_row_and_a_data_set_a_column(decided):
    rows = [
        real("tail_crs", reutersseq="holds"),
        real("tail_ewc", reutersseq="sensitivity").assign(test_set="imbalanced"),
        real("prs_balances", mdiseq="fact").assign(low=np.nan, test_set=""),
        real("above_crs", mdiseq="does not hold", reutersseq="not run"),
    ]
    table = ledger.lay_out(pd.concat(rows, ignore_index=True))
    assert list(table) == ["claim", "test", "reutersseq", "mdiseq"]
    assert table["reutersseq"].tolist() == [
        *["**holds** +1.0 [+0.5, +1.5]"] * 2,
        "",
        "",
    ]
    assert table["mdiseq"].tolist()[2:] == [
        "+1.0",
        "**does not hold** +1.0 [+0.5, +1.5], over CRS O-F1",
    ]
    tests = ["classes alike", "as the stream comes", "", "classes alike"]
    assert table["test"].tolist() == tests
    whole = ledger.lay_out(decided)
    assert list(whole.columns[-2:]) == ["imbal-digits-tiny", "imbal-colour-digits-tiny"]
    paper = whole.loc[whole["claim"].str.startswith("PRS outperforms CRS:"), "paper"]
    assert paper.item() == "+3.7 (COCOseq); +5.4 (NUS-WIDEseq)"


def test_features_and_gradients_may_come_from_runs_on_other_test_images(runs):
    usual = {"dataset": "cocoseq-tiny", "method": "PRS"}
    asked = configs(**usual, test_set="open")
    asked += configs(**usual, features_per_class=2)
    asked += configs(**usual, variance_points=2)
    settings = run_settings(asked)
    assert settings[list(SETTINGS)].isna().all(axis=None)
    assert settings["test_set"].tolist() == ["open", "balanced", "balanced"]
    rows = results_of([make_run(config) for config in asked], asked)
    scores = rows["measure"] == "score"
    assert set(rows.loc[scores, "run"]) == {identify(asked[0])}
    assert (rows["measure"] == "variance").any()
