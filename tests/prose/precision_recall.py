"""The conclusions of the notebook on precision and recall."""

from prose.evidence import both, number, rows

DOCUMENT = "notebooks/precision_recall.py"
SECTION = ("## In short\n", "")
SETS = ("digits70seq", "digits49seq")


def gaps(group, metric, column="difference", name="precision_recall_prs_minus_crs"):
    """Return PRS minus CRS on both stand-ins, in points."""
    return [number(name, column, dataset=d, group=group, metric=metric) for d in SETS]


def gain_beyond_spread(group, metric):
    spreads = gaps(group, metric, "sd")
    return all(gap > sd for gap, sd in zip(gaps(group, metric), spreads, strict=True))


def precision_does_not_fall():
    return all(
        gap > -sd
        for metric in ("C-P", "O-P")
        for gap, sd in zip(gaps("majority", metric), gaps("majority", metric, "sd"), strict=True)
    )


def score(metric, group="minority", dataset=SETS[0], method="PRS", column="mean"):
    where = {"dataset": dataset, "method": method, "group": group, "metric": metric}
    return number("precision_recall", column, **where)


def named(group, dataset, method):
    """Return how often a group's classes are named, as a multiple of how often they are there."""
    precision = score("O-P", group, dataset, method)
    return score("O-R", group, dataset, method) / precision if precision else 0


def same_room():
    """Return whether PRS gives a majority class about as many samples as a minority class."""
    for dataset in SETS:
        held = rows("memory_groups", dataset=dataset, method="PRS").groupby("group")
        room = held["share"].mean() / held["classes"].first()
        if not 0.9 < room["majority"] / room["minority"] < 1.1:
            return False
    return True


def precision_far_above_recall():
    return all(
        score("C-P", dataset=d, column=column) > 2 * score("C-R", dataset=d, column=column)
        for d in SETS
        for column in ("mean", "published")
    )


def seldom_named():
    methods = rows("precision_recall")["method"].unique()
    return all(named("minority", d, method) < 0.5 for d in SETS for method in methods)


def digits49_ahead(metric):
    """Return whether PRS is above CRS by more than the spread in the main table."""
    where = {"dataset": "digits49seq", "group": "overall", "metric": metric}
    found = rows("main_prs_minus_crs", **where).iloc[0]
    return found["difference"] > found["sd"]


def multitask_names_next_to_none():
    recall = [score("C-R", dataset=d, method="Multitask") for d in SETS]
    precision = [score("C-P", dataset=d, method="Multitask") for d in SETS]
    return max(recall) < 3 and all(p > r for p, r in zip(precision, recall, strict=True))


def ten_seeds(metric):
    where = {"dataset": "digits49seq", "group": "overall", "metric": metric, "seeds": 10}
    found = rows("main_prs_minus_crs", "seeds", **where)
    return found[["difference", "sd"]].iloc[0].tolist()


SAID = {
    "C-F1 is above as well, by {:.0f} points, s.d. {:.0f}": lambda: ten_seeds("C-F1"),
    "C-F1 is above as well": lambda: ten_seeds("C-F1")[0] > ten_seeds("C-F1")[1],
    "and O-F1 is not": lambda: ten_seeds("O-F1")[0] < ten_seeds("O-F1")[1],
    "it has {:.0f} and {:.0f} points more of C-P (paper {:.0f} and {:.0f})": lambda: [
        *gaps("minority", "C-P"),
        *gaps("minority", "C-P", "published"),
    ],
    "and {:.0f} more of C-R on both sets (paper {:.0f} and {:.0f})": lambda: [
        *both(gaps("minority", "C-R")),
        *gaps("minority", "C-R", "published"),
    ],
    "all by more than the spread": lambda: (
        gain_beyond_spread("minority", "C-P") and gain_beyond_spread("minority", "C-R")
    ),
    "It costs recall on the majority**, {:.0f} and {:.0f} points of C-R, where the paper has "
    "{:.0f}": lambda: [
        -points
        for points in [
            *gaps("majority", "C-R"),
            *both(gaps("majority", "C-R", "published")),
        ]
    ],
    "Precision does not clearly fall there": precision_does_not_fall,
    "A majority class has the same room in the memory as a rare one": same_room,
    "and is named less often": lambda: all(
        named("majority", d, "PRS") < named("majority", d, "CRS") for d in SETS
    ),
    "precision is far above recall**, as in the paper": precision_far_above_recall,
    "PRS {:.0f} and {:.0f} on `digits70seq`, {:.0f} and {:.0f} there": lambda: [
        score(metric, column=column)
        for column in ("mean", "published")
        for metric in ("C-P", "C-R")
    ],
    "At a threshold of 0.5 a rare class is seldom named at all": seldom_named,
    "on `digits49seq`, PRS is clearly above CRS in overall mAP": lambda: digits49_ahead("mAP"),
    "in `main_results` not in C-F1 and O-F1": lambda: (
        not digits49_ahead("C-F1") and not digits49_ahead("O-F1")
    ),
    "names next to none of them": multitask_names_next_to_none,
}
FREE = ("than they cross 0.5",)
