"""What a network began with: the methods' scores by weights, and the distances between methods."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from prslib import published, report
from prslib.datasets import load_dataset
from prslib.datasets import scenes as pretraining
from prslib.datasets.scenes import draw_scenes
from prslib.models.networks import make_model
from prslib.models.weights import EMBEDDED, NONE
from prslib.report import ledger
from prslib.report import schedules_and_memory as variations
from prslib.report.observations import observe
from prslib.training.config import Run, RunConfig
from prslib.training.learner import Learner
from prslib.training.methods import METHODS
from prslib.training.portable import round_alike

SCENES_SEED = 0  # of the example scenes


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
    data, rng = load_dataset(dataset), np.random.default_rng(SCENES_SEED)
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


IMAGES, EPOCHS, BATCH_SIZE = 20_000, 4, 20
PRETRAINING_SEED = 20090363
TRAINING = {
    "optimizer": "adam",
    "learning_rate": 0.002,
    "loss": "multilabel_soft_margin",
    "clip_value": 5.0,
}


def pretrain(name: str, images: int = IMAGES, seen: Callable = iter) -> dict[str, torch.Tensor]:
    """Train the small network before any stream; our own choice.

    Parameters
    ----------
    name : str
        A key of `EMBEDDED`, which names scenes and weights.
    images : int
        Scenes, each seen `EPOCHS` times.
    seen : callable
        Wraps the list of batches, to show how far it is.

    Returns
    -------
    dict of str to Tensor
        The network's state. With the same PyTorch the same bytes on every x86-64 processor.
    """
    round_alike()
    rng = np.random.default_rng(PRETRAINING_SEED)
    scenes, labels = draw_scenes(name, images, rng)
    network = make_model(
        "convnet", scenes.shape[1:], labels.shape[1], seed=PRETRAINING_SEED, weights=NONE
    )
    orders = np.concatenate([rng.permutation(images) for _ in range(EPOCHS)])
    batches = np.split(orders, range(BATCH_SIZE, len(orders), BATCH_SIZE))
    pixels, targets = torch.from_numpy(scenes), torch.from_numpy(labels).float()
    Learner(network, **TRAINING).fit(pixels, targets, seen(batches))
    return network.state_dict()


def embed(name: str, seen: Callable = iter) -> Path:
    """Write weights where runs look for them; if they are others, so are the runs' hashes.

    Parameters
    ----------
    name, seen
        As for `pretrain`.

    Returns
    -------
    Path
        The file.
    """
    EMBEDDED[name].parent.mkdir(exist_ok=True)
    torch.save(pretrain(name, seen=seen), EMBEDDED[name])
    return EMBEDDED[name]
