"""The conclusions of the notebook on what a network began with, on ten seeds."""

from functools import partial

from prose import evidence

rows = partial(evidence.rows, profile="seeds")
DOCUMENT = "notebooks/pretraining.py"
SECTION = ("## In short\n", "")
SETS = ("digits70seq", "digits49seq")
METRICS = ("C-F1", "O-F1", "mAP")


def gaps(weights, group, metric, column="difference", profile="seeds"):
    """Return what PRS is above CRS, on each data set of the profile."""
    where = {"weights": weights, "group": group, "metric": metric}
    return evidence.rows("pretraining_prs_minus_crs", profile, **where)[column].tolist()


def majority():
    theirs = gaps("digits", "majority", "mAP", "published")
    ours = [gaps(weights, "majority", "mAP") for weights in ("digits", "none")]
    return [-value for pair in (*ours, theirs) for value in pair]


def turned_are_between():
    none, turned, digits = (
        gaps(weights, "majority", "mAP") for weights in ("none", "turned_digits", "digits")
    )
    return none[0] < turned[0] < digits[0] and abs(turned[1] - digits[1]) < 0.5


def clearly_ahead(weights="digits"):
    return all(
        difference > sd
        for metric in METRICS
        for difference, sd in zip(
            *(gaps(weights, "overall", metric, column) for column in ("difference", "sd")),
            strict=True,
        )
    )


def within_before():
    found = zip(*(gaps("none", "overall", "O-F1", c) for c in ("difference", "sd")), strict=True)
    return all(difference < sd for difference, sd in found)


def scores(method, metric, weights, dataset):
    """Return a method's overall scores, seed by seed."""
    where = {"method": method, "metric": metric, "weights": weights, "dataset": dataset}
    return rows("pretraining_overall", **where).set_index("seed")["value"]


def mean_gap(than, metric, weights, dataset, method="PRS"):
    """Return the mean over common seeds of a difference, and its s.d."""
    found = scores(method, metric, weights, dataset) - scores(than, metric, weights, dataset)
    return found.mean(), found.std()


def paper(method, metric, dataset):
    where = {"method": method, "metric": metric, "dataset": dataset, "group": "overall"}
    return rows("pretraining_table", measure="score", **where)["published"].iloc[0]


def paper_gaps(method, than, metric="mAP"):
    return [paper(method, metric, name) - paper(than, metric, name) for name in SETS]


def above_all_but_multitask():
    others = ("Finetune", "EWC", "CRS", "GSS", "ExStream")
    close = []
    for than in others:
        for metric in METRICS:
            difference, sd = mean_gap(than, metric, "digits", SETS[0])
            assert difference > 0
            close += [(than, metric)] if difference < sd else []
    return close == [("GSS", "mAP")]


def level_with_multitask():
    return abs(mean_gap("Multitask", "C-F1", "digits", SETS[0])[0]) < 0.5


def level_with_gss():
    found = [mean_gap("GSS", metric, "digits", SETS[1]) for metric in METRICS]
    return all(abs(difference) < sd for difference, sd in found)


def gains(method):
    return [
        scores(method, "mAP", "digits", name).mean() - scores(method, "mAP", "none", name).mean()
        for name in SETS
    ]


def exstream_gains_most():
    others = ("Multitask", "Finetune", "EWC", "CRS", "GSS", "PRS")
    return all(gains("ExStream")[0] > gains(other)[0] for other in others)


def exstream_and_crs():
    before, after = (
        [mean_gap("CRS", "mAP", weights, name, "ExStream") for name in SETS]
        for weights in ("none", "digits")
    )
    assert abs(before[1][0]) < before[1][1]  # level
    return -before[0][0], -after[0][0], after[1][0]


def ewc_stays_below():
    found = {
        (weights, name): mean_gap("Finetune", "mAP", weights, name, "EWC")
        for weights in ("none", "turned_digits", "digits")
        for name in SETS
    }
    level = found.pop(("none", SETS[1]))
    return abs(level[0]) < level[1] and all(difference < -sd for difference, sd in found.values())


def quick():
    gap = [gaps(w, "majority", "mAP", profile="quick")[0] for w in ("digits", "none")]
    overall = [gaps("digits", "overall", metric, profile="quick")[0] for metric in METRICS]
    assert min(overall) > 0
    return [-value for value in gap]


SAID = {
    "On ten seeds (the seeds profile; GSS three)": lambda: (
        set(rows("pretraining_prs_minus_crs")["seeds"]) == {10}
        and len(scores("GSS", "mAP", "digits", SETS[0])) == 3
    ),
    "From `digits` PRS loses {:.1f} and {:.1f} points of majority mAP against CRS, where it loses "
    "{:.1f} and {:.1f} from random weights; in the paper it loses {:.1f} and {:.1f}": majority,
    "`turned_digits` are between the two on `digits70seq` and as good as `digits` on the other": (
        turned_are_between
    ),
    "ahead in all three overall metrics on both sets by more than the spread": clearly_ahead,
    "in C-F1 by {:.0f} and {:.0f} points (paper {:.0f} and {:.0f}), in O-F1 by {:.0f} and {:.0f} "
    "(paper {:.0f} and {:.0f}), where {:.0f} and {:.0f} points of O-F1 were within the spread": (
        lambda: (
            *gaps("digits", "overall", "C-F1"),
            *gaps("digits", "overall", "C-F1", "published"),
            *gaps("digits", "overall", "O-F1"),
            *gaps("digits", "overall", "O-F1", "published"),
            *gaps("none", "overall", "O-F1"),
        )
    ),
    "were within the spread": within_before,
    "In mAP its lead on `digits70seq` shrinks from {:.1f} to {:.1f} points": lambda: (
        gaps("none", "overall", "mAP")[0],
        gaps("digits", "overall", "mAP")[0],
    ),
    "PRS is {:.0f} and {:.0f} points of minority C-F1 above CRS ({:.0f} and {:.0f} from random "
    "weights), and {:.0f} and {:.0f} points of minority mAP ({:.0f} and {:.0f})": lambda: (
        *gaps("digits", "minority", "C-F1"),
        *gaps("none", "minority", "C-F1"),
        *gaps("digits", "minority", "mAP"),
        *gaps("none", "minority", "mAP"),
    ),
    "From `digits` PRS is above every other method of the paper with a memory or without on "
    "`digits70seq`, GSS in mAP not clearly": above_all_but_multitask,
    "level with Multitask in C-F1": level_with_multitask,
    "On `digits49seq` GSS, ahead of it by {:.0f} points of C-F1 from random weights": lambda: [
        -mean_gap("GSS", "C-F1", "none", SETS[1])[0]
    ],
    "is level with it in all three metrics": level_with_gss,
    "It gains {:.0f} and {:.0f} points of mAP": lambda: gains("ExStream"),
    "more than any other method on `digits70seq`": exstream_gains_most,
    "It goes from {:.0f} points of mAP behind CRS to {:.0f} on `digits70seq`, and from level with "
    "it to {:.0f} ahead on the other": exstream_and_crs,
    "(paper {:.0f} ahead on both)": lambda: evidence.both(paper_gaps("ExStream", "CRS")),
    "under every beginning but random weights on `digits49seq`, where the two are level": (
        ewc_stays_below
    ),
    "the paper has it {:.0f} and {:.0f} points above": lambda: paper_gaps("EWC", "Finetune"),
    "with two seeds on `digits70seq`, has the same directions: {:.0f} points of majority mAP "
    "behind CRS where it is {:.0f} behind from random weights, and ahead of CRS overall in all "
    "three": quick,
    "with two seeds on `digits70seq`": lambda: (
        set(evidence.rows("pretraining_prs_minus_crs", "quick")["seeds"]) == {2}
    ),
}
FREE = ()
