"""What `feature_tsne` concludes."""

from prose.evidence import mean, number, rows, verdict

DOCUMENT = "notebooks/feature_tsne.py"
SECTION = ("## What can be concluded, and what cannot", "")
METRICS = ("kNN accuracy", "silhouette")
MNIST = "feature_separation_imbal-mnistseq"


def one_island_a_colour():
    """Return whether, in either picture, an image's nearest five are of its colour, of seven."""
    drawn = rows("feature_tsne_digits70seq")
    for _, plane in drawn.groupby("method"):
        colours = plane["class_name"].str.split().str[0].to_numpy()
        x, y = plane["x"].to_numpy(), plane["y"].to_numpy()
        apart = (x[:, None] - x) ** 2 + (y[:, None] - y) ** 2
        near = colours[apart.argsort(axis=1)[:, 1:6]]
        if len(set(colours)) != 7 or (near == colours[:, None]).mean() < 0.95:
            return False
    return True


def seeds_move_more():
    """Return whether the seeds are apart by far more than the methods, in the median number."""
    name, of = "feature_separation_imbal-digits", ["group", "metric"]
    values = rows(name).groupby([*of, "method"])["value"].agg(["mean", "min", "max"])
    seeds = (values["max"] - values["min"]).groupby(of).mean()
    methods = values["mean"].groupby(of).agg(lambda pair: abs(pair.diff().iloc[-1]))
    return (seeds > methods).all() and (seeds / methods).median() > 3


def mnist(group, metric="kNN accuracy"):
    where = {"group": group, "metric": metric}
    return [mean(MNIST, profile="paper", method=m, **where) for m in ("CRS", "PRS")]


def mnist_gain(group, column, metric="kNN accuracy"):
    where = {"group": group, "metric": metric}
    return number("feature_separation_prs_minus_crs", column, "paper", **where)


def images_of_a_class():
    found = rows("feature_tsne_imbal-mnistseq", "paper").groupby(["method", "class"]).size()
    assert found.nunique() == 1
    return found.iloc[:1]


def ten_seeds(dataset, group="minority", metric="kNN accuracy"):
    where = {"dataset": dataset, "group": group, "metric": metric, "seeds": 10}
    found = rows("feature_separation_prs_minus_crs", "seeds", **where)
    return found[["difference", "sd"]].iloc[0].tolist()


def clearly(group, metric):
    """Return whether PRS is clearly "above" CRS on `digits70seq`, or "below"."""
    where = {"dataset": "digits70seq", "group": group, "metric": metric}
    return number("feature_separation_prs_minus_crs", "clearly", "seeds", **where)


def crs_knows_them():
    where = {"method": "CRS", "group": "minority", "metric": "kNN accuracy"}
    return [mean("feature_separation_digits70seq", profile="seeds", **where)]


SAID = {
    "**On `digits70seq` the claim holds**": lambda: (
        {clearly("minority", metric) for metric in METRICS} == {"above"}
    ),
    "PRS has {:.1f} points more kNN accuracy on the minority, s.d. {:.1f}, and {:.1f} more "
    "silhouette, s.d. {:.1f}": lambda: [
        number for metric in METRICS for number in ten_seeds("digits70seq", metric=metric)
    ],
    "gains on the moderate classes too": lambda: (
        {clearly("moderate", metric) for metric in METRICS} == {"above"}
    ),
    "loses on the majority in silhouette alone": lambda: (
        clearly("majority", "silhouette") == "below"
        and clearly("majority", "kNN accuracy") not in ("above", "below")
    ),
    "with CRS too the minority's kNN accuracy is {:.0f} %": crs_knows_them,
    "**On `imbal-digits` it takes ten seeds to say that it holds.**": lambda: (
        verdict("features", "imbal-digits") == "holds"
        and verdict("features", "imbal-digits", "quick") == "undecided"
    ),
    "over ten seeds PRS has {:.1f} points more kNN accuracy on the minority, s.d. {:.1f}": lambda: (
        ten_seeds("imbal-digits")
    ),
    "seven islands, one for each colour": one_island_a_colour,
    "moves the numbers far more than the method does": seeds_move_more,
    "five seeds": lambda: rows(MNIST, "paper")["seed"].nunique() == 5,
    "{} images a class": images_of_a_class,
    "kNN accuracy of the minority goes from {:.1f} to {:.1f} %": lambda: mnist("minority"),
    "by {:+.1f} points (s.d. {:.1f})": lambda: (
        mnist_gain("minority", "difference"),
        mnist_gain("minority", "sd"),
    ),
    "of the moderate classes from {:.1f} to {:.1f} %": lambda: mnist("moderate"),
    "and of the majority it stays": lambda: (
        abs(mnist_gain("majority", "difference")) < 1
        and mnist_gain("majority", "clearly") not in ("above", "below")
    ),
    "{:.1f} and {:.1f} %. The silhouette": lambda: mnist("majority"),
    "of the minority turns from below to above zero, {:+.1f} and {:+.1f}": lambda: mnist(
        "minority", "silhouette"
    ),
}
FREE = ()
