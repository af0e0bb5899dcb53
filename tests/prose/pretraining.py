"""The conclusions of the notebook on what a network began with, on ten seeds."""

from functools import partial

from prose import evidence
from prslib.report.differences import over_seeds

rows = partial(evidence.rows, profile="seeds")
DOCUMENT = "notebooks/pretraining.py"
SECTION = ("## In short\n", "")
SETS = ("digits70seq", "digits49seq")
METRICS = ("C-F1", "O-F1", "mAP")
F1 = METRICS[:2]
WEIGHTS = ("none", "turned_digits", "digits")


def gaps(weights, group, metric, column="difference", profile="seeds"):
    """Return what PRS is above CRS, on each data set of the profile."""
    where = {"weights": weights, "group": group, "metric": metric}
    return evidence.rows("pretraining_prs_minus_crs", profile, **where)[column].tolist()


def majority():
    theirs = gaps("digits", "majority", "mAP", "published")
    ours = [gaps(weights, "majority", "mAP") for weights in ("digits", "none")]
    return [-value for pair in (*ours, theirs) for value in pair]


def turned_are_as_good():
    none, turned, digits = (
        gaps(weights, "majority", "mAP") for weights in ("none", "turned_digits", "digits")
    )
    return max(none) < min(turned) and abs(turned[0] - digits[0]) < 0.5 < turned[1] - digits[1]


def scores(method, metric, weights, dataset):
    """Return a method's overall scores, seed by seed."""
    where = {"method": method, "metric": metric, "weights": weights, "dataset": dataset}
    return rows("pretraining_overall", **where).set_index("seed")["value"]


def mean_gap(than, metric, weights, dataset, method="PRS"):
    """Return a difference over common seeds, as `over_seeds` gives it."""
    found = scores(method, metric, weights, dataset) - scores(than, metric, weights, dataset)
    found = found.dropna().rename("value").reset_index().assign(dataset=dataset)
    return over_seeds(found, ["dataset"]).iloc[0]


def paper(method, metric, dataset):
    where = {"method": method, "metric": metric, "dataset": dataset, "group": "overall"}
    return rows("pretraining_table", measure="score", **where)["published"].iloc[0]


def paper_gaps(method, than, metric="mAP"):
    return [paper(method, metric, name) - paper(than, metric, name) for name in SETS]


def verdict(claim, weights, dataset=None):
    """Return the verdict on a claim, that of both data sets where none is named."""
    where = {"claim": claim, "weights": weights}
    if dataset:
        where["dataset"] = dataset
    found = set(rows("pretraining_claims", **where)["verdict"])
    assert len(found) == 1
    return found.pop()


def about_table_1():
    """Return the rows of the claims that are decided under all three beginnings."""
    found = rows("pretraining_claims")
    return found[found.groupby(["claim", "stands_for"])["weights"].transform("size") == 3]


def counts(said):
    """Return how many rows have a verdict from random weights and from the two others."""
    found = about_table_1()
    found = found[found["verdict"] == said]["weights"].value_counts()
    return [found[weights] for weights in ("none", "turned_digits", "digits")]


def decided_rows():
    found = about_table_1().groupby("weights").size()
    assert found.nunique() == 1
    return found.iloc[0]


def moderate_loss():
    assert verdict("best_on_tail", "digits", SETS[0]) == "does not hold"
    assert verdict("best_on_tail", "digits", SETS[1]) == "holds"
    table = rows("pretraining_table", dataset=SETS[0], weights="digits", group="moderate")
    table = table[(table["measure"] == "score") & (table["metric"] == "mAP")]
    scored = table.set_index("method")["mean"]
    return [scored["CRS"] - scored["PRS"]]


def effect(claim, weights, dataset, column="effect"):
    where = {"claim": claim, "weights": weights, "dataset": dataset}
    found = rows("pretraining_claims", **where)
    assert len(found) == 1
    return found[column].iloc[0]


def least_schedule_lead():
    assert verdict("schedules_crs", "digits", SETS[0]) == "undecided"
    assert verdict("schedules_crs", "digits", SETS[1]) == "holds"
    return [effect("schedules_crs", "digits", SETS[1])]


def varies_less_than_two():
    than = {name: verdict(f"steadier_{name}", "digits", SETS[1]) for name in ("gss", "exstream")}
    return (
        set(than.values()) == {"holds"}
        and verdict("steadier_crs", "digits", SETS[1]) == "does not hold"
    )


def varies_less_than_gss():
    claims = [f"steadier_{name}" for name in ("crs", "gss", "exstream")]
    found = [verdict(claim, "digits", SETS[0]) for claim in claims]
    return found == ["undecided", "holds", "undecided"]


def ahead_of_all():
    """Return whether PRS is clearly ahead of every online method but of CRS in mAP."""
    gaps = {
        (name, metric): mean_gap(name, metric, "digits", SETS[0])
        for name in ("Finetune", "EWC", "CRS", "GSS", "ExStream")
        for metric in METRICS
    }
    unclear = [cell for cell, gap in gaps.items() if gap["clearly"] != "above"]
    return unclear == [("CRS", "mAP")] and gaps["CRS", "mAP"]["difference"] > 0


def seeds_elsewhere():
    found = {
        name: effect(f"steadier_{name}", "digits", SETS[0], "seeds")
        for name in ("crs", "gss", "exstream")
    }
    return found == {"crs": 5, "gss": 3, "exstream": 5}


def behind_on_unbalanced():
    """Return how far PRS is below CRS from learned and from random weights."""
    found = []
    for weights in ("digits", "none"):
        assert verdict("imbalanced_crs", weights, SETS[0]) == "does not hold"
        found.append(-effect("imbalanced_crs", weights, SETS[0]))
    return found


def all_differences(metric):
    return (
        *gaps("digits", "overall", metric),
        *gaps("digits", "overall", metric, "published"),
    )


def level_with_multitask():
    return abs(mean_gap("Multitask", "C-F1", "digits", SETS[0])["difference"]) < 0.5


def ahead_of_gss():
    """Return the lead in C-F1 where it is clear and the other metrics are level."""
    found = [mean_gap("GSS", metric, "digits", SETS[1]) for metric in METRICS]
    assert [gap["clearly"] for gap in found] == ["above", "", ""]
    return [found[0]["difference"]]


def gains(method):
    return [
        scores(method, "mAP", "digits", name).mean() - scores(method, "mAP", "none", name).mean()
        for name in SETS
    ]


def two_gain_most():
    least = min(gains("EWC")[0], gains("ExStream")[0])
    return all(gains(name)[0] < least for name in ("Multitask", "Finetune", "CRS", "GSS", "PRS"))


def exstream_and_crs():
    before, after = (
        [mean_gap("CRS", "mAP", weights, name, "ExStream") for name in SETS]
        for weights in ("none", "digits")
    )
    assert not before[1]["clearly"]  # level
    return -before[0]["difference"], -after[0]["difference"], after[1]["difference"]


def ewc_and_finetune(weights):
    return [mean_gap("Finetune", "mAP", weights, name, "EWC") for name in SETS]


def quick():
    gap = [gaps(w, "majority", "mAP", profile="quick")[0] for w in ("digits", "none")]
    overall = [gaps("digits", "overall", metric, profile="quick")[0] for metric in METRICS]
    assert min(overall) > 0
    return [-value for value in gap]


SAID = {
    "On ten seeds (the seeds profile)": lambda: set(rows("pretraining_table")["seeds"]) == {10},
    "Of {:d} rows that Table 1's runs decide {:d} hold from random weights, {:d} from "
    "`turned_digits` and {:d} from `digits`; {:d}, {:d} and {:d} do not": lambda: (
        decided_rows(),
        *counts("holds"),
        *counts("does not hold"),
    ),
    "it holds on `digits49seq` from all three beginnings, and on `digits70seq` from "
    "`turned_digits` alone": lambda: (
        {verdict("above_crs", weights, SETS[1]) for weights in WEIGHTS} == {"holds"}
        and [verdict("above_crs", weights, SETS[0]) for weights in WEIGHTS]
        == ["undecided", "holds", "undecided"]
    ),
    "from `digits` the lead in mAP is too small to be sure": lambda: (
        [bool(mean_gap("CRS", m, "digits", SETS[0])["clearly"]) for m in METRICS]
        == [True, True, False]
    ),
    "by {:.0f} and {:.0f} points of C-F1 (paper {:.0f} and {:.0f}), {:.0f} and {:.0f} of O-F1 "
    "(paper {:.0f} and {:.0f}), {:.0f} and {:.0f} of mAP (paper {:.0f} and {:.0f})": lambda: [
        points for metric in METRICS for points in all_differences(metric)
    ],
    '"Best of all" is open on both sets from `digits`**, and holds on `digits70seq` from '
    "`turned_digits`": lambda: (
        [verdict("best", "digits", name) for name in SETS] == ["undecided", "undecided"]
        and verdict("best", "turned_digits", SETS[0]) == "holds"
    ),
    "holds on `digits49seq` from `digits`, by {:.0f} points where its lead is least, and is "
    "undecided on the other": least_schedule_lead,
    "PRS then varies less than GSS and ExStream on `digits49seq`, but still more than CRS": (
        varies_less_than_two
    ),
    "on `digits70seq` less than GSS alone": varies_less_than_gss,
    "(five seeds, GSS three)": seeds_elsewhere,
    "In the weakest of the three metrics PRS is {:.0f} points below CRS from `digits`, {:.0f} from "
    "random weights": behind_on_unbalanced,
    "On `digits70seq` the moderate classes lose {:.0f} points of mAP": moderate_loss,
    "GSS, ahead of it in F1 from random weights": lambda: (
        max(mean_gap("GSS", metric, "none", SETS[1])["difference"] for metric in F1) < 0
    ),
    "From `digits` PRS loses {:.1f} and {:.1f} points of majority mAP against CRS, where it loses "
    "{:.1f} and {:.1f} from random weights; in the paper it loses {:.1f} and {:.1f}": majority,
    "`turned_digits` are as good as `digits` on `digits70seq` and better on the other": (
        turned_are_as_good
    ),
    "PRS is {:.0f} and {:.0f} points of minority C-F1 above CRS ({:.0f} and {:.0f} from random "
    "weights), and {:.0f} and {:.0f} points of minority mAP ({:.0f} and {:.0f})": lambda: (
        *gaps("digits", "minority", "C-F1"),
        *gaps("none", "minority", "C-F1"),
        *gaps("digits", "minority", "mAP"),
        *gaps("none", "minority", "mAP"),
    ),
    "PRS is ahead there of every method that sees one task after another, of CRS in mAP not "
    "clearly": ahead_of_all,
    "level with Multitask in C-F1": level_with_multitask,
    "in the paper it is {:.0f} points above": lambda: [
        paper("PRS", "C-F1", SETS[0]) - paper("Multitask", "C-F1", SETS[0])
    ],
    "is {:.0f} points of C-F1 behind and level with it in O-F1 and mAP": ahead_of_gss,
    "on `digits70seq` they gain more mAP than any other method": two_gain_most,
    "EWC gains {:.0f} and {:.0f} points": lambda: gains("EWC"),
    "from random weights, where nothing of it is frozen, it is within a point of Finetune": (
        lambda: all(abs(gap["difference"]) < 1 for gap in ewc_and_finetune("none"))
    ),
    "from `digits` {:.0f} and {:.0f} points above (paper {:.0f} and {:.0f})": lambda: [
        *(gap["difference"] for gap in ewc_and_finetune("digits")),
        *paper_gaps("EWC", "Finetune"),
    ],
    "ExStream gains {:.0f} and {:.0f}": lambda: gains("ExStream"),
    "It goes from {:.0f} points of mAP behind CRS to {:.0f} on `digits70seq`, and from level with "
    "it to {:.0f} ahead on the other": exstream_and_crs,
    "(paper {:.0f} ahead on both)": lambda: evidence.both(paper_gaps("ExStream", "CRS")),
    "with two seeds on `digits70seq`, has the same directions: {:.0f} points of majority mAP "
    "behind CRS where it is {:.0f} behind from random weights, and ahead of CRS overall in all "
    "three": quick,
    "with two seeds on `digits70seq`": lambda: (
        set(evidence.rows("pretraining_prs_minus_crs", "quick")["seeds"]) == {2}
    ),
}
FREE = ()
