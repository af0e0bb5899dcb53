"""The conclusions of the notebook on the unbalanced test set."""

from prose import evidence

rows, number, mean = evidence.of("seeds")
DOCUMENT = "notebooks/imbalanced_test.py"
SECTION = ("## In short\n", "")
METRICS = ("C-F1", "O-F1", "mAP")


def ahead(than="CRS", group="overall", profile="seeds"):
    """Return by how much PRS is above a method on the unbalanced test set, by metric."""
    name = "imbalanced_test_prs_minus_others"
    found = rows(name, than=than, group=group, profile=profile).set_index("metric")
    assert sorted(found.index) == sorted(METRICS)
    return found


def clearly(than="CRS"):
    """Return the metrics in which PRS is clearly above a method."""
    found = ahead(than)["clearly"]
    return [metric for metric in METRICS if found[metric] == "above"]


def leads():
    """Return the ranges of the leads over ExStream and GSS, ours and the paper's."""
    ends = [
        ahead(than)[column].agg(["min", "max"])
        for column in ("difference", "published")
        for than in ("ExStream", "GSS")
    ]
    return [points for pair in ends for points in pair]


def published(metric):
    return [ahead().loc[metric, "published"]]


def majority_share():
    """Return the majority's share of the stream's labels, as of the test set's at half its size."""
    images = rows("datasets_classes_digits70seq", profile="quick").groupby("group")["images"].sum()
    return images["majority"] / images.sum()


def majority_losses():
    found = -ahead(group="majority")[["difference", "published"]]
    return [*found["difference"].agg(["min", "max"]), *found["published"].agg(["min", "max"])]


def power_gains(test_set="imbalanced", column="difference"):
    """Return by how much a power of 0.5 is above one of 0 for PRS, by metric."""
    found = rows("imbalanced_test_power_against_power", test_set=test_set)
    return found.set_index("metric")[column]


def not_of_the_others():
    return power_gains(column="clearly")[["C-F1", "mAP"]].isna().all()


def below_crs_without_power():
    found = rows("imbalanced_test_powers", test_set="imbalanced", metric="O-F1")
    scores = found.groupby("label")["value"].mean()
    return [scores["CRS"] - scores["PRS, rho 0"]]


def two_seeds_agree():
    """Return whether the quick profile has every sign, but where ours is level."""
    signs = []
    for than, group in (("CRS", "overall"), ("CRS", "majority"), ("ExStream", "overall")):
        pair = [ahead(than, group, profile)["difference"] for profile in ("quick", "seeds")]
        signs.append((pair[0] * pair[1] > 0) | (pair[1].abs() < 0.1))
    return all(sign.all() for sign in signs) and set(ahead(profile="quick")["seeds"]) == {2}


SAID = {
    "On ten seeds (the seeds profile)": lambda: set(ahead()["seeds"]) == {10},
    "**Better than ExStream and GSS holds**": lambda: (
        clearly("ExStream") == clearly("GSS") == [*METRICS]
    ),
    "by {:.0f} to {:.0f} points and by {:.0f} to {:.0f} (paper {:.0f} to {:.0f} and {:.0f} to "
    "{:.0f})": leads,
    "**Better than CRS holds in C-F1 alone**": lambda: clearly() == ["C-F1"],
    "by {:.1f} points, s.d. {:.1f} (paper ${:+.1f}$)": lambda: ahead().loc[
        "C-F1", ["difference", "sd", "published"]
    ],
    "In mAP the two are level (paper ${:+.1f}$)": lambda: published("mAP"),
    "In mAP the two are level": lambda: abs(ahead().loc["mAP", "difference"]) < 0.1,
    "where the majority has half of the labels": lambda: 0.45 < majority_share() < 0.55,
    "PRS is {:.1f} points behind (paper ${:+.1f}$)": lambda: (
        -ahead().loc["O-F1", "difference"],
        *published("O-F1"),
    ),
    "The paper's own margins over CRS are small": lambda: ahead()["published"].between(0, 3).all(),
    "PRS is {:.1f} to {:.1f} points behind CRS in all three metrics, and {:.1f} to {:.1f} in the "
    "paper": majority_losses,
    "On the unbalanced one $\\rho = 0.5$ has {:.1f} points more of O-F1 than $\\rho = 0$": lambda: [
        power_gains()["O-F1"]
    ],
    "and no clear difference in the others": not_of_the_others,
    "less in all three, by {:.1f} to {:.1f} points": lambda: (-power_gains("balanced")).agg(
        ["min", "max"]
    ),
    "With $\\rho = 0$ PRS would be {:.1f} points of O-F1 below": below_crs_without_power,
    "two seeds, without GSS, have the same directions": two_seeds_agree,
}
FREE = ()
