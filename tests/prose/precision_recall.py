"""The conclusions of the notebook on precision and recall."""

from prose import evidence

rows, number, mean = evidence.of("seeds")
DOCUMENT = "notebooks/precision_recall.py"
SECTION = ("## In short\n", "")
SETS = ("digits70seq", "digits49seq")


def gaps(group, metric, column="difference", name="precision_recall_prs_minus_crs"):
    """Return PRS minus CRS on both stand-ins, in points."""
    return [number(name, column, dataset=d, group=group, metric=metric) for d in SETS]


def gain_beyond_spread(group, metric):
    return set(gaps(group, metric, "clearly")) == {"above"}


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


def precision_above_recall():
    return all(
        score("C-P", dataset=d, column=column) > 1.5 * score("C-R", dataset=d, column=column)
        for d in SETS
        for column in ("mean", "published")
    )


def seldom_named():
    methods = rows("precision_recall")["method"].unique()
    return all(named("minority", d, method) < 0.5 for d in SETS for method in methods)


def three_seeds_agree():
    """Return whether the quick profile has the signs that the conclusions rest on."""
    signs = {("minority", "C-P"): 1, ("minority", "C-R"): 1, ("majority", "C-R"): -1}
    signs["majority", "C-P"] = 1
    name = "precision_recall_prs_minus_crs"
    return all(
        sign * evidence.number(name, "difference", dataset=d, group=group, metric=metric) > 0
        for (group, metric), sign in signs.items()
        for d in SETS
    )


SAID = {
    "On ten seeds (the seeds profile)": lambda: (
        set(rows("precision_recall_prs_minus_crs")["seeds"]) == {10}
    ),
    "it has {:.0f} and {:.0f} points more of C-P (paper {:.0f} and {:.0f})": lambda: [
        *gaps("minority", "C-P"),
        *gaps("minority", "C-P", "published"),
    ],
    "and {:.0f} and {:.0f} more of C-R (paper {:.0f} and {:.0f})": lambda: [
        *gaps("minority", "C-R"),
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
            *evidence.both(gaps("majority", "C-R", "published")),
        ]
    ],
    "and gives {:.0f} and {:.0f} points of C-P there (paper {:.0f} and {:.0f})": lambda: [
        *gaps("majority", "C-P"),
        *gaps("majority", "C-P", "published"),
    ],
    "A majority class has the same room in the memory as a rare one": same_room,
    "and is named less often": lambda: all(
        named("majority", d, "PRS") < named("majority", d, "CRS") for d in SETS
    ),
    "precision is above recall**, as in the paper": precision_above_recall,
    "PRS has {:.0f} and {:.0f} on `digits70seq` ({:.0f} and {:.0f} there)": lambda: [
        score(metric, column=column)
        for column in ("mean", "published")
        for metric in ("C-P", "C-R")
    ],
    "At a threshold of 0.5 every method names a rare class less than half as often": seldom_named,
    "has {:.0f} and {:.0f} % of C-R where PRS has {:.0f} and {:.0f}": lambda: [
        score("C-R", dataset=d, method=method) for method in ("Multitask", "PRS") for d in SETS
    ],
    "with three seeds, has the same directions": three_seeds_agree,
}
FREE = ()
