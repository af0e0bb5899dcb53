"""Whether the rare classes are forgotten first: the conclusions of `notebooks/tail_forgetting`."""

from prose import evidence

rows, number, mean = evidence.of("seeds")
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
    cells = found.groupby(["metric", "task"])["correlation"].mean()
    return len(cells) == 6 and (cells < 0).all()


def below_zero_with_every_seed():
    found = rows("tail_correlations", method="CRS", measure="normalised")
    cells = found.groupby(["metric", "seed"])["correlation"].mean()
    return len(cells) == 20 and (cells < 0).all()


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


def lost_f1():
    """Return the range over the groups of what EWC forgets of C-F1, and the paper's two ends."""
    ours = [forgotten("EWC", group, metric="C-F1") for group in GROUPS]
    paper = [forgotten("EWC", group, "published", "C-F1") for group in GROUPS]
    return min(ours), max(ours), paper[0], paper[2]


def paper_forgets_less_in_two_groups():
    more = {g: forgotten("CRS", g, "published") - forgotten("PRS", g, "published") for g in GROUPS}
    return min(more["moderate"], more["minority"]) > 2 and abs(more["majority"]) < 1


SAID = {
    "On ten seeds (the seeds profile)": lambda: set(rows("tail_groups_table")["seeds"]) == {10},
    "Small classes are forgotten more in each of the three tasks": more_in_each_task,
    "the rank correlation is ${:.2f}$ with AP and ${:.2f}$ with F1": lambda: (
        correlation("CRS", "AP"),
        correlation("CRS", "F1"),
    ),
    "and below 0 with every seed": below_zero_with_every_seed,
    "{:.0f}, {:.0f} and {:.0f} % of mAP are forgotten, from majority to minority": lambda: (
        [forgotten("CRS", group) for group in GROUPS]
    ),
    "(paper {:.0f}, {:.0f} and {:.0f} %": lambda: (
        [forgotten("CRS", group, "published") for group in GROUPS]
    ),
    "with twice the memory": twice_the_memory,
    "**In points it is so too**": lambda: all(
        correlation("CRS", metric, "absolute") < 0 for metric in ("AP", "F1")
    ),
    "to lose: ${:+.2f}$ with AP and ${:+.2f}$ with F1": lambda: [
        correlation("CRS", metric, "absolute") for metric in ("AP", "F1")
    ],
    "**Holds for EWC in AP**, with a rank correlation of ${:.2f}$": lambda: [
        correlation("EWC", "AP")
    ],
    "it forgets little: {:.0f}, {:.0f} and {:.0f} % of mAP, from majority to minority (paper "
    "{:.0f}, {:.0f} and {:.0f})": lambda: [
        forgotten("EWC", group, column) for column in ("mean", "published") for group in GROUPS
    ],
    "all groups lose {:.0f} to {:.0f} %, where the paper has {:.0f} for the majority and {:.0f} "
    "for the minority": lost_f1,
    "**With PRS the order is nearly gone** (${:+.2f}$ with AP, ${:+.2f}$ with F1)": lambda: [
        correlation("PRS", metric) for metric in ("AP", "F1")
    ],
    "**With PRS the order is nearly gone**": lambda: all(
        abs(correlation("PRS", metric)) < 0.4 * abs(correlation("CRS", metric))
        for metric in ("AP", "F1")
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
        abs(forgotten("PRS", "overall") - forgotten("CRS", "overall")) < 1
    ),
    "In the paper PRS forgets less mAP in two groups and as much in the majority": (
        paper_forgets_less_in_two_groups
    ),
}
FREE = ()
