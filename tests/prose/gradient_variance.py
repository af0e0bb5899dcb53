"""What `gradient_variance` concludes."""

from prose.evidence import mean, number, rows

DOCUMENT = "notebooks/gradient_variance.py"
SECTION = ("## What can be concluded, and what cannot", "")
NAME = "gradient_variance_prs_minus_others"
MNIST = {"profile": "paper", "dataset": "imbal-mnistseq"}


def ratio(dataset, than):
    return number(NAME, "ratio", dataset=dataset, than=than)


def share_above(dataset, than):
    """Return the share of the points, over all seeds, at which PRS has the larger variance."""
    found = rows("gradient_variance", dataset=dataset, method=["PRS", than])
    found = found.pivot(index=["seed", "images"], columns="method", values="value")
    return (found["PRS"] > found[than]).mean()


def mnist(than, *columns):
    return [number(NAME, column, than=than, **MNIST) for column in columns]


def mnist_points():
    found = rows(NAME, **MNIST)["points_above"]
    return found.min(), found.max()


def level_with_crs():
    where = {"dataset": "digits70seq", "than": "CRS"}
    apart = abs(number(NAME, "difference", **where))
    return 0.9 < ratio("digits70seq", "CRS") < 1.1 and apart < number(NAME, "sd", **where)


def more_balanced():
    prs, crs = (
        mean("memory_distance", "to equal", dataset="digits70seq", method=method)
        for method in ("PRS", "CRS")
    )
    return prs < crs / 2


def rare_kept_better():
    where = {"dataset": "digits70seq", "group": "minority"}
    gain = rows("main_prs_minus_crs", metric=["C-F1", "mAP"], **where)
    return (gain["difference"] > gain["sd"]).all()


def ten_seeds(dataset, than):
    where = {"dataset": dataset, "than": than, "seeds": 10}
    return number("gradient_variance_prs_minus_others", "ratio", "seeds", **where)


SAID = {
    "it is {:.1f} times that of CRS and {:.1f} times GSS's": lambda: [
        ten_seeds("imbal-digits", than) for than in ("CRS", "GSS")
    ],
    "it is {:.0f} % below CRS and {:.0f} % below GSS": lambda: [
        100 * (1 - ten_seeds("digits70seq", than)) for than in ("CRS", "GSS")
    ],
    "PRS has more than twice the gradient variance of CRS and of GSS in the mean over the "
    "stream": lambda: min(ratio("imbal-digits", "CRS"), ratio("imbal-digits", "GSS")) > 2,
    "is above each at about nine points in ten": lambda: all(
        0.85 < share_above("imbal-digits", than) < 0.95 for than in ("CRS", "GSS")
    ),
    "five seeds": lambda: (rows(NAME, **MNIST)["seeds"] == 5).all(),
    "{:.1f} times that of CRS": lambda: mnist("CRS", "ratio"),
    "(decimal logarithm {:+.2f}, s.d. {:.2f})": lambda: mnist("CRS", "difference", "sd"),
    "{:.1f} times that of GSS ({:+.2f}, s.d. {:.2f})": lambda: mnist(
        "GSS", "ratio", "difference", "sd"
    ),
    "{:.1f} times that of ExStream ({:+.2f}, s.d. {:.2f})": lambda: mnist(
        "ExStream", "ratio", "difference", "sd"
    ),
    "above them at {:.0f} to {:.0f} % of the points": mnist_points,
    "PRS is level with CRS": level_with_crs,
    "a third below ExStream": lambda: abs(ratio("digits70seq", "ExStream") - 2 / 3) < 0.05,
    "Its memory is more balanced there too": more_balanced,
    "keeps the rare classes better": rare_kept_better,
    "GSS, which is left out here": lambda: (
        "GSS" not in set(rows("gradient_variance", dataset="digits70seq")["method"])
    ),
}
FREE = ()
