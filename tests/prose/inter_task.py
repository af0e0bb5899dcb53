"""What becomes of the smallest task: the conclusions of `notebooks/inter_task`."""

import pandas as pd

from prose.evidence import both, mean, rows

DOCUMENT = "notebooks/inter_task.py"
SECTION = ("\n## What holds\n", "")
END = "inter_task_digits49seq"
F1 = ("C-F1", "O-F1")


def score(method, metric):
    return mean(END, method=method, metric=metric)


def f1(method):
    """Return C-F1 and O-F1 as the one number that they come to."""
    return both([score(method, metric) for metric in F1])


def minus(other, column="difference"):
    """Return how far PRS is above a method on the smallest task, in points, by metric."""
    found = rows("inter_task_prs_minus_others", than=other)
    return pd.Series(found[column].to_numpy(), index=found["metric"])


def held(method):
    """Return the smallest task's part of a memory, or of the stream, in percent."""
    return mean("inter_task_memory", "share", method=method)


def classes():
    """Return how many classes the smallest task has, and how many there are."""
    stream = rows("memory_distribution_digits49seq", method="Stream")
    return (stream["task"] == 3).sum(), len(stream)


def equal_share():
    of_task, of_all = classes()
    return 100 * of_task / of_all


def task_3_is_smallest():
    every = rows("inter_task_all_digits49seq")
    return set(every.loc[every["images"] == every["images"].min(), "task"]) == {3}


def on_largest_task(metric):
    every = rows("inter_task_all_digits49seq", metric=metric)
    largest = every[every["images"] == every["images"].max()]
    return [largest.loc[largest["method"] == name, "value"].mean() for name in ("CRS", "PRS")]


def after(method):
    """Return the smallest task's mAP by the number of tasks trained."""
    found = rows("inter_task_progression_digits49seq", method=method, metric="mAP")
    return found.groupby("trained_tasks")["value"].mean()


def of_another_size():
    apart = pd.concat([minus("GSS").abs(), minus("ExStream").abs()]).groupby(level=0).max()
    return (apart < minus("CRS") / 2).all()


SAID = {
    "where the paper prints no numbers to compare with": lambda: (
        rows("inter_task_all_digits49seq")["published"].isna().all()
    ),
    "**Holds against CRS.**": lambda: (minus("CRS") > minus("CRS", "sd")).all(),
    "CRS ends with an F1 of {:.0f} on Task 3, PRS with {:.0f}": lambda: [*f1("CRS"), *f1("PRS")],
    "on Task 3": task_3_is_smallest,
    "in mAP it is {:.0f} against {:.0f}": lambda: [score("CRS", "mAP"), score("PRS", "mAP")],
    "CRS gives the task {:.1f} % of its memory, near the stream's {:.1f}": lambda: (
        held("CRS"),
        held("Stream"),
    ),
    "near the stream's": lambda: abs(held("CRS") - held("Stream")) < 1,
    "PRS {:.1f}, near the {:.1f} of its twelve classes out of {}": lambda: (
        held("PRS"),
        equal_share(),
        classes()[1],
    ),
    "of its twelve classes": lambda: classes()[0] == 12 and abs(held("PRS") - equal_share()) < 1,
    "both give the task room in memory too": lambda: min(held("GSS"), held("ExStream")) > 20,
    "the differences above are of another size than those to CRS": of_another_size,
    "GSS, ahead of PRS in F1": lambda: (minus("GSS")[[*F1]] < 0).all(),
    "has one seed here": lambda: set(minus("GSS", "seeds")) == {1},
    "**The later samplers balance the memory as well**": lambda: (
        min(held("CBRS"), held("OCDM")) > (held("Stream") + equal_share()) / 2
    ),
    "stand beside PRS in mAP": lambda: (
        pd.concat([minus("CBRS"), minus("OCDM")])["mAP"].abs().max() < 2
    ),
    "in F1 CBRS is above it": lambda: (minus("CBRS") < -minus("CBRS", "sd"))[[*F1]].all(),
    "on the largest task CRS has a C-F1 of {:.0f} and PRS one of {:.0f}": lambda: on_largest_task(
        "C-F1"
    ),
    "while in mAP the gap is {:.0f} to {:.0f}": lambda: on_largest_task("mAP"),
    "With PRS's balanced memory its mAP rises from {:.0f} when its own stream ends to {:.0f} one "
    "task later": lambda: after("PRS")[[1, 2]],
    "with CRS it rises to {:.0f} and then falls to {:.0f}": lambda: after("CRS")[[2, 6]],
    "and then falls to": lambda: after("CRS")[1:].is_monotonic_decreasing,
}
FREE = ()
