"""Which order of the classes did the paper train? Its table, read backwards.

The order of the classes of Imbal-MNISTseq is not published, and it decides more than the method
does. The first column of the table bounds it: after its first task no method can be right on more
of the test set than the first pair makes up. What is left is trained and compared.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from joblib import Memory

from prslib import published
from prslib.config import RunConfig, configs
from prslib.datasets import SequentialDataset, load_dataset
from prslib.paths import cache_dir

PER_TASK = 2
TABLES = {"Imbal-MNISTseq": "mnist", "Imbal-SVHNseq": "svhn"}


def published_row(dataset: SequentialDataset) -> pd.DataFrame:
    """Load the paper's accuracies for a data set or the one it stands for (Appendix).

    Parameters
    ----------
    dataset : SequentialDataset
        Single-label.

    Returns
    -------
    DataFrame
        Columns method, trained_tasks, published, in percent.

    Raises
    ------
    ValueError
        If the paper has no such table for it.
    """
    if dataset.stands_for not in TABLES:
        raise ValueError(
            f"expected a data set that stands for one of {', '.join(TABLES)}, got "
            f"{dataset.name}, which stands for {dataset.stands_for}"
        )
    cells = published.load(TABLES[dataset.stands_for]).rename(columns={"value": "published"})
    return cells[["method", "trained_tasks", "published"]]


def pair_shares(dataset: SequentialDataset) -> pd.Series:
    """Return the share of the test set that each pair of classes makes up, in percent.

    Parameters
    ----------
    dataset : SequentialDataset
        Single-label.

    Returns
    -------
    Series
        The shares by pair (a, b) with a < b, the largest first.
    """
    labels = dataset.tests["full"].labels
    counts, low, high = labels.sum(axis=0), *np.triu_indices(labels.shape[1], k=1)
    pairs = pd.MultiIndex.from_arrays([low, high])
    return pd.Series(100 * (counts[low] + counts[high]) / len(labels), pairs).sort_values(
        ascending=False, kind="stable"
    )


def possible_orders(dataset: SequentialDataset) -> list[tuple[int, ...]]:
    """List the orders whose first pair is large enough for the paper's first column.

    Parameters
    ----------
    dataset : SequentialDataset
        Single-label, an even number of classes.

    Returns
    -------
    list of tuple of int
        Schedules, each pair ascending, in lexicographic order; runs that begin alike follow each
        other.

    Notes
    -----
    The table's numbers are means over seeds; a mean above every other pair's share can only come
    from seeds that all, or nearly all, begin with these pairs.
    """
    cells = published_row(dataset)
    needed = cells.loc[cells["trained_tasks"] == 1, "published"].max()
    shares = pair_shares(dataset)
    starts = sorted(shares.index[shares >= needed])
    classes = range(dataset.num_classes)
    return [
        (*start, *rest)
        for start in starts
        for rest in _pairings([c for c in classes if c not in start])
    ]


def _pairings(classes: list[int]) -> list[tuple[int, ...]]:
    """List all ways to take the classes two by two, pairs ascending, in lexicographic order."""
    if not classes:
        return [()]
    return [
        (a, b, *rest)
        for i, a in enumerate(classes)
        for b in classes[i + 1 :]
        for rest in _pairings([c for c in classes if c not in (a, b)])
    ]


def random_orders(dataset: SequentialDataset, count: int, seed: int = 0) -> list[tuple[int, ...]]:
    """Draw different orders of the classes, uniformly (our own choice).

    Parameters
    ----------
    dataset : SequentialDataset
        Whose classes.
    count : int
        How many orders.
    seed : int
        Of the draw.

    Returns
    -------
    list of tuple of int
        Schedules, each pair ascending.
    """
    rng, drawn = np.random.default_rng(seed), {}
    while len(drawn) < count:
        order = np.sort(rng.permutation(dataset.num_classes).reshape(-1, PER_TASK), axis=1)
        drawn[tuple(order.ravel().tolist())] = None
    return list(drawn)


def train_orders(
    dataset: str,
    orders: Sequence[tuple[int, ...]],
    methods: Sequence[str],
    seeds: Sequence[int],
    workers: int | None = None,
    **fields,
) -> pd.DataFrame:
    """Train methods on many orders of the classes and set the paper's numbers beside them.

    Parameters
    ----------
    dataset : str
        A key of `DATASETS` that is trained with an MLP.
    orders : sequence of tuple of int
        Schedules.
    methods : sequence of str
        Keys of `METHODS` whose memory looks at labels alone.
    seeds : sequence of int
        One run of every method and order for each.
    workers : int, optional
        Processes side by side.
    **fields
        Further fields of `RunConfig`.

    Returns
    -------
    DataFrame
        As `prslib.runs.mlp_loop.progressions` gives it, and published.
    """
    wanted = configs(
        dataset=dataset, method=list(methods), seed=list(seeds), schedule=list(orders), **fields
    )
    remembered = Memory(cache_dir() / "orders", verbose=0).cache(
        _progressions, ignore=["wanted", "workers"]
    )
    rows = remembered([config.hash for config in wanted], wanted, workers)
    theirs = published_row(load_dataset(dataset, images=False))
    return rows.merge(theirs, how="left", on=["method", "trained_tasks"])


def _progressions(hashes: list[str], wanted: list[RunConfig], workers: int | None) -> pd.DataFrame:
    """Train the runs that the hashes stand for; drawing again looks up and trains nothing."""
    from prslib.runs.mlp_loop import progressions  # with torch; what is kept needs none

    return progressions(wanted, workers)


def distances(rows: pd.DataFrame) -> pd.DataFrame:
    """Measure how far each order's progression is from the paper's.

    Parameters
    ----------
    rows : DataFrame
        As `train_orders` gives it.

    Returns
    -------
    DataFrame
        Columns schedule, rms and largest (the gaps between mean over seeds and published, in
        points), cells (how many there are); the nearest order first.
    """
    cells = rows.groupby(["schedule", "method", "trained_tasks"], sort=False)
    gaps = (cells["value"].mean() - cells["published"].first()).abs().dropna()
    found = gaps.groupby("schedule", sort=False).agg(
        rms=lambda gap: np.sqrt((gap**2).mean()), largest="max", cells="size"
    )
    return found.sort_values("rms", kind="stable").reset_index()


def search(
    dataset: str,
    methods: Sequence[str],
    keep: tuple[int, int],
    seeds: Sequence[int],
    workers: int | None = None,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Look among all possible orders for those that give the paper's whole progression.

    Finetune is cheap and nearly tells the pair of each task, since at the end of a task it knows
    little else: all possible orders are trained with it, the nearest with every method, and the
    nearest of those with every seed.

    Parameters
    ----------
    dataset : str
        A key of `DATASETS` that is trained with an MLP.
    methods : sequence of str
        Methods beside Finetune to agree with.
    keep : tuple of int
        How many orders go on from the first to the second and from the second to the third look.
    seeds : sequence of int
        The first one serves for the first two looks.
    workers : int, optional
        Processes side by side.

    Returns
    -------
    DataFrame
        The progressions of the second look, one seed each.
    DataFrame
        The progressions of the third look, all seeds.

    Raises
    ------
    ValueError
        If no order is possible, as on a stand-in, whose pairs all have the same share.
    """
    data = load_dataset(dataset, images=False)
    orders = possible_orders(data)
    if not orders:
        raise ValueError(
            f"expected a pair of classes in {dataset} large enough for the paper's first column, "
            f"the largest makes up {pair_shares(data).iloc[0]:.2f} % of the test set; only the "
            "data set of the paper can be searched"
        )
    finetuned = train_orders(dataset, orders, ["Finetune"], seeds[:1], workers)
    orders = sorted(map(schedule_of, distances(finetuned)["schedule"][: keep[0]]))
    second = train_orders(dataset, orders, ["Finetune", *methods], seeds[:1], workers)
    orders = sorted(map(schedule_of, distances(second)["schedule"][: keep[1]]))
    return second, train_orders(dataset, orders, ["Finetune", *methods], seeds, workers)


def schedule_of(text: str) -> tuple[int, ...]:
    """Read a schedule from the text that scores carry.

    Parameters
    ----------
    text : str
        Such as "1+2,0+3".

    Returns
    -------
    tuple of int
        The classes in order.

    Raises
    ------
    ValueError
        If the text is none.

    Examples
    --------
    >>> schedule_of("1+2,0+3")
    (1, 2, 0, 3)
    """
    try:
        return tuple(int(part) for part in text.replace("+", ",").split(","))
    except ValueError:
        raise ValueError(
            f"expected an order of classes such as '1+2,0+3', got {text!r}; join the classes of a "
            "task with + and the tasks with commas"
        ) from None


def table_of(dataset: str) -> str:
    """Return the name of the paper's table for a data set, "mnist" or "svhn".

    Parameters
    ----------
    dataset : str
        A key of `DATASETS`, single-label.

    Returns
    -------
    str
        A key of `prslib.published.TABLES`.

    Examples
    --------
    >>> table_of("imbal-digits")
    'mnist'
    """
    return TABLES[load_dataset(dataset, images=False).stands_for]
