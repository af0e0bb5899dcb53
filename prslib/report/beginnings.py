"""What a network began with: the methods' scores by weights, and the distances between methods."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from prslib import published, report
from prslib.config import RunConfig
from prslib.datasets import load_dataset, pretraining
from prslib.methods import METHODS
from prslib.report import ledger, variations
from prslib.report.observations import observe
from prslib.results import Run

SEED = 0  # of the example scenes


def with_memory(methods: Sequence[str]) -> list[str]:
    """Return those of the methods that keep a memory; what the paper trains in other settings."""
    return [name for name in methods if METHODS[name].sampler]


def elsewhere(own: dict, schedules: int, unbalanced_rho: float | None) -> list[dict]:
    """List the settings beside Table 1's in which two beginnings are compared.

    Parameters
    ----------
    own : dict
        The data set's name, "dataset", and the power of allocation of PRS on it, "rho".
    schedules : int
        How many schedules beside the standard one (Table 2).
    unbalanced_rho : float or None
        Power of allocation of PRS on the unbalanced test set (Appendix, "Imbalanced test-set"),
        which the paper has for one of its data sets; None to leave it out.

    Returns
    -------
    list of dict
        Fields of `RunConfig`; a list stands for one run each of its values.

    Examples
    --------
    >>> own = {"dataset": "digits49seq", "rho": 0.0}
    >>> elsewhere(own, 1, 0.5)
    [{'dataset': 'digits49seq', 'rho': 0.0, 'schedule': [(0, 1, 2, 3, 4, 5)]}]
    """
    orders = variations.permuted_schedules(own["dataset"], schedules)
    found = [own | {"schedule": orders}] if orders else []
    stands_for = load_dataset(own["dataset"], images=False).stands_for
    tested = set(published.load("imbalanced_test")["dataset"])
    if unbalanced_rho is not None and stands_for in tested:
        found.append(own | {"rho": unbalanced_rho, "test_set": "imbalanced"})
    return found


def rows_of(runs: Sequence[Run]) -> pd.DataFrame:
    """Take the final scores of runs that began with several weights, beside the paper's (Table 1).

    Parameters
    ----------
    runs : sequence of Run
        Finished runs in Table 1's setting.

    Returns
    -------
    DataFrame
        As `report.final` gives them, with weights, stands_for and published; the paper's numbers
        are those of a network pretrained on ImageNet, and stand beside all weights.
    """
    return report.beside(report.final(report.scores_of(runs, "weights")), "main")


def shifts(gaps: pd.DataFrame, cells: Sequence[tuple[str, str]]) -> pd.DataFrame:
    """Say how far the distance between two methods moves from the first weights to the others.

    Parameters
    ----------
    gaps : DataFrame
        As `report.seed_gaps` gives them, by weights.
    cells : sequence of (group, metric)
        Which scores.

    Returns
    -------
    DataFrame
        As `report.contrasts` gives it, with the column weights; published is NaN, as the paper has
        one beginning only.
    """
    first, *others = gaps["weights"].unique()
    distances = gaps.assign(method=gaps["weights"], published=np.nan)
    found = [
        report.contrasts(distances, name, first, cells).assign(weights=name) for name in others
    ]
    return pd.concat(found, ignore_index=True)


def with_paper(rows: pd.DataFrame) -> pd.DataFrame:
    """Set the paper's numbers apart, as weights of their own after ours (Table 1).

    Parameters
    ----------
    rows : DataFrame
        As `rows_of` gives them.

    Returns
    -------
    DataFrame
        The rows without published, and for each number of the paper one without value, whose
        weights are "ImageNet [paper]".
    """
    cells = ["dataset", "method", "measure", "group", "metric"]
    theirs = rows.dropna(subset="published").drop_duplicates(cells)
    theirs = theirs.assign(weights="ImageNet [paper]", value=np.nan)
    return pd.concat([rows.assign(published=np.nan), theirs], ignore_index=True)


def decide(runs: Sequence[Run], wanted: Sequence[RunConfig], level: float = 0.95) -> pd.DataFrame:
    """Decide the paper's claims under each beginning, those that these runs say something of.

    Parameters
    ----------
    runs : sequence of Run
        Finished runs, those of ``wanted``.
    wanted : sequence of RunConfig
        For each weights Table 1's runs first; the other runs vary their setting.
    level : float
        Share of the resamples that an interval holds.

    Returns
    -------
    DataFrame
        As `prslib.report.ledger.decide` gives it, with the column weights; no row is "not run".
    """
    parts = []
    for weights in dict.fromkeys(config.resolved["weights"] for config in wanted):
        asked = [config for config in wanted if config.resolved["weights"] == weights]
        hashes = {config.hash for config in asked}
        found = observe([run for run in runs if run.config.hash in hashes], asked)
        parts.append(ledger.decide(found, asked, level).assign(weights=weights))
    decided = pd.concat(parts, ignore_index=True)
    return decided[decided["verdict"] != "not run"].reset_index(drop=True)


def verdicts(decided: pd.DataFrame) -> pd.DataFrame:
    """Lay claims out whose verdict is not the same under every beginning.

    Parameters
    ----------
    decided : DataFrame
        As `decide` gives it.

    Returns
    -------
    DataFrame
        Text: claim, data, a column for each weights with the effect, its interval and the verdict,
        and paper, the same measure of the paper's own numbers.
    """
    told = ledger.account(decided)
    cells = told["effect"] + ": " + told["verdict"]
    rows = told.assign(weights=decided["weights"], cell=cells)
    several = rows.groupby(["claim", "data"])["verdict"].transform("nunique") > 1
    wide = rows[several].pivot_table(
        index=["claim", "data", "paper"], columns="weights", values="cell", aggfunc="first",
        sort=False,
    )  # fmt: skip
    weights = list(decided["weights"].unique())
    wide = wide.reindex(columns=weights).astype(object)
    wide = wide.where(wide.notna(), "not run").reset_index()
    return wide[["claim", "data", *weights, "paper"]]


def example_scenes(
    begun_with: Sequence[str], dataset: str, count: int
) -> tuple[pd.DataFrame, list[np.ndarray]]:
    """Draw a few images of a stream, and of what the embedded weights have learned (our own).

    Parameters
    ----------
    begun_with : sequence of str
        Weights; those that are not embedded in the package are passed over.
    dataset : str
        A key of `DATASETS`.
    count : int
        Images of each.

    Returns
    -------
    frame : DataFrame
        source (the data set or the weights) and labels (names of the classes), a row an image.
    images : list of ndarray of uint8, (H, W, channels)
        The images, in the frame's order.
    """
    data, rng = load_dataset(dataset), np.random.default_rng(SEED)
    rows = np.sort(rng.choice(len(data.train), count, replace=False))
    drawn = [(dataset, data.class_names, data.train.images[rows], data.train.labels[rows])]
    for name in begun_with:
        if name in pretraining.TURNS:
            scenes, labels = pretraining.draw_scenes(name, count, rng)
            drawn.append((name, pretraining.CLASS_NAMES, scenes, labels))
    told = [
        (source, ", ".join(names[i] for i in np.flatnonzero(row)))
        for source, names, _, labels in drawn
        for row in labels
    ]
    images = [image for _, _, scenes, _ in drawn for image in scenes]
    return pd.DataFrame(told, columns=["source", "labels"]), images
