"""The conclusions of the notebook on base architectures."""

from prose.evidence import number, rows
from prslib import published
from prslib.datasets import DATASETS

DOCUMENT = "notebooks/architectures.py"
SECTION = ("## In short\n", "")
PLAIN, AC, RA = "ResNet101", "Attention Consistency", "RNN-Attention"
METRICS = ("C-F1", "O-F1", "mAP")


def offline(metric, column="value"):
    """Return Multitask's scores after one epoch on the balanced test set, by network."""
    found = rows("architectures_offline", setting="1 epoch, balanced", metric=metric)
    assert set(found["architecture"]) == {PLAIN, AC, RA}
    return found.set_index("architecture")[column]


def ac_below_plain():
    ours, paper = (offline("mAP", column) for column in ("value", "published"))
    return ours[AC] < ours[PLAIN] and paper[AC] < paper[PLAIN]


def best_after_ten():
    where = {"dataset": "COCOseq", "epochs": 10, "metric": "C-F1"}
    cells = published.load("architectures", **where)
    best = cells.pivot(index="test_set", columns="architecture", values="value").idxmax(axis=1)
    return len(best) == 2 and (best == RA).all()


def steps():
    images = number("datasets_sizes", "train", dataset="digits70seq")
    return [round(images / DATASETS["digits70seq"].recipe.batch_size, -1)]


def ahead(metric, group="overall", column="difference"):
    """Return PRS minus CRS in points, by network."""
    found = rows("architectures_prs_minus_crs", group=group, metric=metric)
    assert len(found) == 3
    names = found["network"].str.extract(r"\[(.*)\]", expand=False)
    return found.set_index(names)[column]


def best_minority():
    where = {"measure": "score", "group": "minority", "metric": "mAP"}
    scores = rows("architectures_methods", **where).pivot(
        index="network", columns="method", values="mean"
    )
    return len(scores) == 3 and (scores.idxmax(axis=1) == "PRS").all()


def paper_leads_everywhere():
    return all((ahead(metric, column="published") > 0).all() for metric in METRICS)


def level_on_plain():
    """Return whether PRS is within a point of CRS in C-F1 and mAP and not in O-F1."""
    near = max(abs(ahead(metric)[PLAIN]) for metric in ("C-F1", "mAP"))
    return near < 1 and ahead("O-F1")[PLAIN] < -2


def predicts_frequent_classes():
    where = {"architecture": RA, "method": "PRS", "measure": "score", "metric": "C-F1"}
    found = rows("architectures_methods", **where).set_index("group")["mean"]
    return found["majority"] > 2 * found["moderate"] > 4 * found["minority"]


def crs_replays_them_more():
    where = {"dataset": "digits70seq", "group": "majority"}
    share = rows("memory_groups", **where).groupby("method")["share"].mean()
    return share["CRS"] > 1.5 * share["PRS"]


def with_three_seeds(name):
    found = rows("architectures_prs_minus_crs", "seeds", group="overall", seeds=3)
    return found[found["network"].str.startswith(name)]


def within_spread_on_two():
    found = [with_three_seeds("convnet ["), with_three_seeds("convnet_attention")]
    return all(len(f) == 3 and (f["difference"].abs() < f["sd"]).all() for f in found)


def behind_on_ra():
    lost = -with_three_seeds("convnet_rnn")["difference"]
    return lost.min(), lost.max()


SAID = {
    "PRS is above ExStream on every network": lambda: (
        number("ledger_claims", "verdict", "seeds", claim="architectures") == "holds"
    ),
    "within the spread of CRS on the plain one and on AC": within_spread_on_two,
    "behind CRS by {:.0f} to {:.0f} points on RA": behind_on_ra,
    "With one seed": lambda: set(rows("architectures_methods")["seeds"]) == {1},
    "Attention Consistency comes below the plain network in mAP after one epoch, as in the paper": (
        ac_below_plain
    ),
    "RNN-Attention has the lowest C-F1 after one epoch, as in the paper": lambda: all(
        offline("C-F1", column).idxmin() == RA for column in ("value", "published")
    ),
    "where it is the best after ten": best_after_ten,
    "Here it is far below the plain network": lambda: all(
        offline(metric)[PLAIN] - offline(metric)[RA] > 10 for metric in METRICS
    ),
    "some {:.0f} steps to learn it": steps,
    "PRS has the best minority mAP on all three networks": best_minority,
    "by {:.0f} to {:.0f} points against CRS": lambda: ahead("mAP", "minority").agg(["min", "max"]),
    "The paper's claim that PRS leads on every network": paper_leads_everywhere,
    "overall it is level with CRS in C-F1 and mAP on the plain network and behind in O-F1": (
        level_on_plain
    ),
    "on AC and RA it is behind in mAP and O-F1": lambda: all(
        (ahead(metric)[[AC, RA]] < -1).all() for metric in ("mAP", "O-F1")
    ),
    "predictions are of frequent classes": predicts_frequent_classes,
    "which CRS replays more often": crs_replays_them_more,
}
FREE = ()
