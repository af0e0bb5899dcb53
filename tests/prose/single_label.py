"""What `single_label` concludes."""

from math import factorial

from prose.evidence import number, rows
from prslib import load_dataset

DOCUMENT = "notebooks/single_label.py"
SECTION = ("## What can be concluded, and what cannot", "")
NEAREST = ("1+7,0+2,8+9,3+5,4+6", "1+2,0+6,8+9,3+5,4+7")
PLAIN = "0+1,2+3,4+5,6+7,8+9"


def after(method, order, column="value", statistic="mean"):
    """Return a method's accuracies over seeds in the table, one after each task."""
    found = rows("single_label_mnist", "paper", method=method, order=order)
    return found.groupby("trained_tasks")[column].agg(statistic).tolist()


def multitask():
    found = rows("single_label_mnist", "paper", method="Multitask", order=PLAIN)
    return found["value"].mean(), found["value"].std(), found["published"].mean()


def looked(order, method, task, column="value", statistic="mean"):
    """Return a number over seeds of an order in the last look."""
    where = {"schedule": order, "method": method, "trained_tasks": task}
    return rows("single_label_mnist_search", "paper", **where)[column].agg(statistic)


def ends_with(order, *columns):
    """Return the numbers of CRS and PRS after the last task, in the last look."""
    return [looked(order, method, 5, column) for method in ("CRS", "PRS") for column in columns]


def gaps():
    """Return the distances to the paper's numbers in the last look, an order a row."""
    of = ["schedule", "method", "trained_tasks"]
    found = rows("single_label_mnist_search", "paper").groupby(of)[["value", "published"]].mean()
    return (found["value"] - found["published"]).abs().unstack(["method", "trained_tasks"])


def two_agree_in_all_fifteen():
    near = gaps().max(axis=1) < 5
    return gaps().shape == (10, 15) and set(near[near].index) == set(NEAREST)


def both_agree_equally():
    rms = ((gaps() ** 2).mean(axis=1) ** 0.5).sort_values()
    first, second, third = rms.iloc[:3]
    return set(rms.index[:2]) == set(NEAREST) and second - first < 0.2 and third - second < 0.5


def five_seeds():
    names = ("single_label_mnist", "single_label_mnist_search")
    return all(rows(name, "paper")["seed"].nunique() == 5 for name in names)


def gss_between_at_the_end():
    ours, theirs = (
        [after(method, NEAREST[1], column)[-1] for method in ("CRS", "GSS", "PRS")]
        for column in ("value", "published")
    )
    return ours == sorted(ours) and theirs == sorted(theirs)


def gss_dips_as_the_others():
    theirs = after("GSS", NEAREST[1], "published")
    ours = [after(method, NEAREST[1]) for method in ("GSS", "CRS", "PRS", "Finetune")]
    return all(two - three > 3 for _, two, three, *_ in ours) and theirs[2] > theirs[1]


def later_samplers():
    return [after(method, NEAREST[1])[-1] for method in ("CBRS", "OCDM", "PRS")]


def frequencies():
    """Return the classes' numbers of training images, which the stand-in shares with MNIST."""
    return load_dataset("imbal-digits", images=False).class_freq


def dip_is_the_orders():
    """Return whether the nearest orders dip for PRS and CRS, and few of the random ones."""
    near = [looked(o, m, 3) < looked(o, m, 2) for o in gaps().index for m in ("CRS", "PRS")]
    found = rows("single_label_mnist_orders", "paper", method=["CRS", "PRS"])
    found = found.pivot(index=["method", "schedule"], columns="trained_tasks", values="value")
    return all(near) and (found[3] < found[2]).mean() < 0.2


def large_second_and_rare_third():
    rarest = set(map(str, frequencies().argsort()[:3]))
    pairs = [order.split(",") for order in gaps().index]
    return all("0" in second.split("+") for _, second, *_ in pairs) and all(
        set(third.split("+")) <= rarest for _, _, third, *_ in pairs
    )


def possible():
    """Return how many orders begin with one of the pairs that the nearest ones begin with."""
    starts = {order[:3] for order in gaps().index}
    return [len(starts) * factorial(8) // 2**4]


def first_column():
    (far, far_sd), (near, near_sd) = (
        [looked(order, "Finetune", 1, statistic=statistic) for statistic in ("mean", "std")]
        for order in NEAREST
    )
    return near, near_sd, looked(NEAREST[1], "Finetune", 1, "published"), far, far_sd


def last(name="single_label_mnist_orders", of="method"):
    """Return the accuracies after the last task of random orders, an order a row."""
    found = rows(name, "paper", trained_tasks=5)
    assert set(found["seed"]) == {0}
    return found.pivot(index="schedule", columns=of, values="value")


def gains():
    return last()["PRS"] - last()["CRS"]


def published_gain():
    return after("PRS", PLAIN, "published")[-1] - after("CRS", PLAIN, "published")[-1]


def difference(order, task, column="difference"):
    where = {"order": order, "trained_tasks": task}
    return number("single_label_mnist_prs_minus_crs", column, "paper", **where)


def ahead_after(order):
    """Return the tasks after which PRS is clearly above CRS."""
    return [t for t in range(1, 6) if difference(order, t, "clearly") == "above"]


def released():
    found = last("single_label_mnist_variants", "variant")
    gap = found["paper"] - found["authors"]
    return gap.mean(), len(gap), gap.sem()


SAID = {
    "(`figures/paper/single_label_mnist*.csv`), five seeds": five_seeds,
    "has {:.1f} ± {:.1f} (paper {:.2f})": multitask,
    "Two of the ten orders in the last look agree with all fifteen numbers of Finetune, CRS and "
    "PRS within 5 points": two_agree_in_all_fifteen,
    "{{1, 7}}, {{0, 2}}, {{8, 9}}, {{3, 5}}, {{4, 6}} ends with CRS {:.1f} (paper {:.2f}) and PRS "
    "{:.1f} ({:.2f})": lambda: ends_with(NEAREST[0], "value", "published"),
    "{{1, 2}}, {{0, 6}}, {{8, 9}}, {{3, 5}}, {{4, 7}} with {:.1f} and {:.1f}": lambda: ends_with(
        NEAREST[1], "value"
    ),
    "it goes through {:.1f}, {:.1f}, {:.1f}, {:.1f} and {:.1f}": lambda: after("GSS", NEAREST[1]),
    "between CRS and PRS at the end, as in the paper": gss_between_at_the_end,
    "but with the dip of the others": gss_dips_as_the_others,
    "and {:.0f} points lower": lambda: [
        after("GSS", NEAREST[1], "published")[-1] - after("GSS", NEAREST[1])[-1]
    ],
    "(paper {:.2f}, {:.2f}, {:.2f}, {:.2f}, {:.2f})": lambda: after("GSS", NEAREST[1], "published"),
    "Later balanced samplers are level with PRS": lambda: (
        max(later_samplers()) - min(later_samplers()) < 2
    ),
    "CBRS {:.1f}, OCDM {:.1f}, PRS {:.1f}": later_samplers,
    "The dip after the third task is the order's": dip_is_the_orders,
    "All of the nearest orders have 0": large_second_and_rare_third,
    "by far the largest class": lambda: frequencies()[0] > 2 * max(frequencies()[1:]),
    "Both agree equally well, others nearly": both_agree_equally,
    "the best of {} would agree somewhat by chance": possible,
    "The first column speaks for {{1, 2}}: Finetune has {:.2f} ± {:.2f} there (paper {:.2f}) and "
    "{:.2f} ± {:.2f} with {{1, 7}}": first_column,
    "It is so in {} of {} random orders": lambda: ((gains() > 0).sum(), len(gains())),
    "by {:.1f} points in the middle (paper {:.1f})": lambda: (gains().median(), published_gain()),
    "The plain order {{0, 1}}, {{2, 3}}, ... is an exception, {:.1f} against {:.1f}": lambda: (
        after("PRS", PLAIN)[-1],
        after("CRS", PLAIN)[-1],
    ),
    "a difference with an s.d. of {:.0f} over seeds": lambda: [difference(PLAIN, 5, "sd")],
    "PRS falls by {:.0f} points over its last pair": lambda: [
        after("PRS", PLAIN)[3] - after("PRS", PLAIN)[4]
    ],
    "which has {} images": lambda: [sum(frequencies()[8:])],
    "says little about height": lambda: last()[["CRS", "PRS"]].std().min() > 5,
    "With drawn orders PRS is ahead after two": lambda: (
        ahead_after("drawn from the seed") == [2, 3, 4, 5]
    ),
    "{:.1f} points lower over {} orders (standard error {:.1f})": released,
}
FREE = ()
