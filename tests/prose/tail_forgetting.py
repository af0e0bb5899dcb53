"""Whether the rare classes are forgotten first: the conclusions of `notebooks/tail_forgetting`."""

from prose.evidence import mean, number, rows

DOCUMENT = "notebooks/tail_forgetting.py"
SECTION = ("\n## What holds\n", "")
GROUPS = ("majority", "moderate", "minority")


def correlation(method, metric, measure="normalised"):
    """Return the mean rank correlation of a class's size with what is forgotten of it."""
    where = {"method": method, "metric": metric, "measure": measure}
    return mean("tail_correlations", "correlation", **where)


def forgotten(method, group, column="mean", metric="mAP"):
    where = {"method": method, "group": group, "metric": metric}
    return number("tail_groups_table", column, **where)


def more_in_each_task():
    found = rows("tail_correlations", method="CRS", measure="normalised")
    cells = found.groupby(["metric", "task", "seed"])["correlation"].first().unstack("seed")
    return cells.shape == (6, 3) and (cells < 0).all(axis=None)


def twice_the_memory():
    """Say whether the memory that stands for the paper's is twice as large as this one."""
    stands_for = number(
        "main_table",
        "memory_size",
        dataset="digits70seq",
        method="CRS",
        measure="score",
        group="overall",
        metric="mAP",
    )
    return set(rows("tail_groups_table", method="CRS")["memory_size"] * 2) == {stands_for}


def all_f1_is_lost():
    """Say whether every group lost all, and no class of a task less than another."""
    alike = rows("tail_correlations", method="EWC", metric="F1", measure="normalised")
    groups = rows("tail_groups_table", method="EWC", metric=["C-F1", "O-F1"])
    return alike["correlation"].isna().all() and (groups["mean"] == 100).all()


def half_of_ap_is_lost():
    by_class = mean("tail_forgetting_digits70seq", method="EWC", metric="AP")
    return 45 < by_class < 55 and 45 < forgotten("EWC", "overall") < 55


def paper_forgets_less_in_two_groups():
    more = {g: forgotten("CRS", g, "published") - forgotten("PRS", g, "published") for g in GROUPS}
    return min(more["moderate"], more["minority"]) > 2 and abs(more["majority"]) < 1


SAID = {
    "Small classes are forgotten more in each of the three tasks and with each of three seeds": (
        more_in_each_task
    ),
    "the rank correlation is ${:.2f}$ with AP and ${:.2f}$ with F1": lambda: (
        correlation("CRS", "AP"),
        correlation("CRS", "F1"),
    ),
    "{:.0f}, {:.0f} and {:.0f} % of mAP are forgotten, from majority to minority": lambda: (
        [forgotten("CRS", group) for group in GROUPS]
    ),
    "(paper {:.0f}, {:.0f} and {:.0f} %": lambda: (
        [forgotten("CRS", group, "published") for group in GROUPS]
    ),
    "with twice the memory": twice_the_memory,
    "In points of F1 the large classes lose more, as they had more to lose (${:+.2f}$)": lambda: [
        correlation("CRS", "F1", "absolute")
    ],
    "the large classes lose more": lambda: correlation("CRS", "F1", "absolute") > 0,
    "in points of AP the small ones still do (${:+.2f}$)": lambda: [
        correlation("CRS", "AP", "absolute")
    ],
    "the small ones still do": lambda: correlation("CRS", "AP", "absolute") < 0,
    "**EWC's panel is not reproduced.**": lambda: correlation("EWC", "AP") > 0,
    "Every class loses all of its F1": all_f1_is_lost,
    "together they lose half of their AP": half_of_ap_is_lost,
    "(${:+.2f}$ with AP)": lambda: [correlation("PRS", "AP")],
    "**With PRS the order is gone**, if not turned": lambda: (
        correlation("PRS", "AP") > 0 and abs(correlation("PRS", "F1")) < 0.1
    ),
    "It forgets {:.0f} % of the minority's mAP where CRS forgets {:.0f}": lambda: (
        forgotten("PRS", "minority"),
        forgotten("CRS", "minority"),
    ),
    "pays with the majority's, {:.0f} against {:.0f} %": lambda: (
        forgotten("PRS", "majority"),
        forgotten("CRS", "majority"),
    ),
    "overall the two forget as much, {:.0f} and {:.0f} %": lambda: (
        forgotten("PRS", "overall"),
        forgotten("CRS", "overall"),
    ),
    "overall the two forget as much": lambda: (
        abs(forgotten("PRS", "overall") - forgotten("CRS", "overall")) < 2
    ),
    "In the paper PRS forgets less mAP in two groups and as much in the majority": (
        paper_forgets_less_in_two_groups
    ),
}
FREE = ()
