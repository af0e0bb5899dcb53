"""What becomes of the smallest task: the conclusions of `notebooks/inter_task`."""

import pandas as pd

from prose import evidence

rows, number, mean = evidence.of("seeds")
DOCUMENT = "notebooks/inter_task.py"
SECTION = ("\n## What holds\n", "")
END = "inter_task_digits49seq"
F1 = ("C-F1", "O-F1")


def score(method, metric):
    return mean(END, method=method, metric=metric)


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


def later_samplers_in_f1():
    """Return the range of what CBRS and OCDM are above PRS in F1, in points."""
    found = -pd.concat([minus(name)[[*F1]] for name in ("CBRS", "OCDM")])
    return found.min(), found.max()


def cbrs_alone_is_clearly_above():
    cbrs, ocdm = (minus(name, "clearly")[[*F1]] for name in ("CBRS", "OCDM"))
    return (cbrs == "below").all() and ocdm.isna().all()


SAID = {
    "On ten seeds (the seeds profile)": lambda: set(minus("CRS", "seeds")) == {10},
    "where the paper prints no numbers to compare with": lambda: (
        rows("inter_task_all_digits49seq")["published"].isna().all()
    ),
    "**Holds against CRS.**": lambda: (minus("CRS", "clearly") == "above").all(),
    "On Task 3 CRS ends with a C-F1 of {:.0f}, PRS with {:.0f}": lambda: [
        score("CRS", "C-F1"),
        score("PRS", "C-F1"),
    ],
    "On Task 3": task_3_is_smallest,
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
    "which give the task room in memory too": lambda: min(held("GSS"), held("ExStream")) > 20,
    "PRS is {:.0f} points of C-F1 above ExStream, s.d. {:.0f}, and {:.0f} below GSS, s.d. "
    "{:.0f}": lambda: (
        *(minus("ExStream", column)["C-F1"] for column in ("difference", "sd")),
        -minus("GSS")["C-F1"],
        minus("GSS", "sd")["C-F1"],
    ),
    "of whose memory this task is {:.0f} %": lambda: [held("GSS")],
    "**The later samplers balance the memory as well**": lambda: (
        min(held("CBRS"), held("OCDM")) > (held("Stream") + equal_share()) / 2
    ),
    "stand beside PRS in mAP": lambda: (
        pd.concat([minus("CBRS"), minus("OCDM")])["mAP"].abs().max() < 2
    ),
    "are {:.0f} to {:.0f} points above it, CBRS clearly": later_samplers_in_f1,
    "CBRS clearly": cbrs_alone_is_clearly_above,
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
