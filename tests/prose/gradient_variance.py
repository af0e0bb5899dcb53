"""What `gradient_variance` concludes."""

from prose.evidence import mean, number, rows, verdict

DOCUMENT = "notebooks/gradient_variance.py"
SECTION = ("## What can be concluded, and what cannot", "")
NAME = "gradient_variance_prs_minus_others"
MNIST = {"profile": "paper", "dataset": "imbal-mnistseq"}


def share_above(dataset, than):
    """Return the share of the points, over all seeds, at which PRS has the larger variance."""
    found = rows("gradient_variance", "seeds", dataset=dataset, method=["PRS", than])
    found = found.pivot(index=["seed", "images"], columns="method", values="value")
    return (found["PRS"] > found[than]).mean()


def mnist(than, *columns):
    return [number(NAME, column, than=than, **MNIST) for column in columns]


def mnist_points():
    found = rows(NAME, **MNIST)["points_above"]
    return found.min(), found.max()


def more_balanced():
    prs, crs = (
        mean("memory_distance", "to equal", dataset="digits70seq", method=method)
        for method in ("PRS", "CRS")
    )
    return prs < crs / 2


def rare_kept_better():
    where = {"dataset": "digits70seq", "group": "minority"}
    gain = rows("main_prs_minus_crs", metric=["C-F1", "mAP"], **where)
    return (gain["clearly"] == "above").all()


def ten_seeds(dataset, than, column="ratio"):
    where = {"dataset": dataset, "than": than, "seeds": 10}
    return number("gradient_variance_prs_minus_others", column, "seeds", **where)


SAID = {
    "**With one label an image the claim holds.**": lambda: all(
        verdict(f"variance_{than}", "imbal-digits") == "holds" for than in ("crs", "gss")
    ),
    "Over ten seeds on `imbal-digits` (the seeds profile) PRS has {:.1f} times the gradient "
    "variance of CRS and {:.1f} times that of GSS": lambda: [
        ten_seeds("imbal-digits", than) for than in ("CRS", "GSS")
    ],
    "is above each at more than eight points in ten": lambda: all(
        0.8 < share_above("imbal-digits", than) < 0.9 for than in ("CRS", "GSS")
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
    "**On `digits70seq` it holds by little.**": lambda: all(
        verdict(f"variance_{than}", "digits70seq") == "holds" for than in ("crs", "gss")
    ),
    "Over ten seeds PRS has {:.2f} times the gradient variance of GSS, {:.2f} times that of CRS "
    "and {:.2f} times that of ExStream": lambda: [
        ten_seeds("digits70seq", than) for than in ("GSS", "CRS", "ExStream")
    ],
    "Its memory is more balanced than that of CRS there too": more_balanced,
    "keeps the rare classes better": rare_kept_better,
    "GSS is left out of the quick profile": lambda: (
        "GSS" not in set(rows("gradient_variance", dataset="digits70seq")["method"])
    ),
}
FREE = ()
