"""Make grids of configurations: every combination, and pairs of values."""

from collections.abc import Iterable, Sequence
from functools import lru_cache, partial
from itertools import product
from typing import Any

from prslib.checks import expected, items, one_of
from prslib.datasets import DATASETS, load_dataset
from prslib.training.config import RunConfig
from prslib.training.replay import check


def configs(**fields: Any) -> list[RunConfig]:
    """Make the configurations of a grid, one for each combination of listed values.

    Parameters
    ----------
    **fields
        Fields of `RunConfig`; a list or range stands for one run of each of its values.

    Returns
    -------
    list of RunConfig
        In the order of the fields, the last one changing fastest; each run once.

    Raises
    ------
    TypeError, ValueError, FileNotFoundError
        As in `RunConfig`.

    Examples
    --------
    >>> [(c.method, c.seed) for c in configs(method=["CRS", "PRS"], seed=range(2))]
    [('CRS', 0), ('CRS', 1), ('PRS', 0), ('PRS', 1)]
    """
    values = [v if isinstance(v, list | range) else [v] for v in fields.values()]
    made = [
        RunConfig(**dict(zip(fields, row, strict=True))) for row in product(*values)
    ]
    check_all(made)
    first = {}
    for config in made:
        first.setdefault(config.hash, config)
    return list(first.values())


def check_all(configs: Iterable[RunConfig]) -> None:
    """Raise ValueError where a configuration does not fit its data set."""
    load = lru_cache(partial(load_dataset, images=False))
    for config in configs:
        check(config, load(config.dataset))


def configs_of(
    methods: Sequence[str],
    seeds: Sequence[int],
    costly: Sequence[str] = (),
    costly_seeds: Sequence[int] = (),
    **fields: Any,
) -> list[RunConfig]:
    """Make configurations of several methods, the costly with fewer seeds (Table 1).

    The paper has five seeds, and three for GSS "due to its computational complexity".

    Parameters
    ----------
    methods, seeds : sequence of str, sequence of int
        Keys of `METHODS`, and the seeds for which each of them is run.
    costly, costly_seeds : sequence of str, sequence of int
        The methods and data sets that take other seeds, and these; other names are
        ignored.
    **fields
        Further fields, as in `configs`.

    Returns
    -------
    list of RunConfig
        The costly methods first, as their runs take longest.

    Raises
    ------
    TypeError
        If methods or seeds are no lists.
    ValueError
        If a costly method has no seed, or as in `configs`.

    Examples
    --------
    >>> made = configs_of(["CRS", "GSS"], [0, 1], ["GSS"], [0], dataset="digits70tiny")
    >>> [(config.method, config.seed) for config in made]
    [('GSS', 0), ('CRS', 0), ('CRS', 1)]
    """
    methods = items("methods", methods)
    seeds = items("seeds", seeds)
    costly = items("costly", costly)
    costly_seeds = items("costly_seeds", costly_seeds)
    datasets = fields.pop("dataset", RunConfig.dataset)
    made = []
    for name in datasets if isinstance(datasets, list) else [datasets]:
        one_of("dataset", name, DATASETS)
        slow = [method for method in methods if {method, name} & {*costly}]
        if slow and not costly_seeds:
            raise ValueError(expected(f"costly_seeds of {', '.join(slow)}", "none"))
        usual = [method for method in methods if method not in slow]
        fields["dataset"] = name
        made += configs(**fields, method=slow, seed=costly_seeds)
        made += configs(**fields, method=usual, seed=seeds)
    return made


def paired(**fields: Sequence) -> list[dict]:
    """Pair lists of values: the first of every field, then the second, and so on.

    Parameters
    ----------
    **fields
        Lists of one length.

    Returns
    -------
    list of dict
        One for each place in the lists.

    Raises
    ------
    TypeError
        If one of them is no list.
    ValueError
        If the lists differ in length.

    Examples
    --------
    >>> paired(dataset=["cocoseq", "nuswideseq"], rho=[-0.03, 0.02])[1]
    {'dataset': 'nuswideseq', 'rho': 0.02}
    """
    lists = {name: items(name, values) for name, values in fields.items()}
    if len(set(map(len, lists.values()))) > 1:
        got = ", ".join(f"{len(values)} of {name}" for name, values in lists.items())
        raise ValueError(expected("lists of one length", got))
    rows = zip(*lists.values(), strict=True)
    return [dict(zip(fields, row, strict=True)) for row in rows]


def seeds_text(
    seeds: Sequence[int],
    costly: Sequence[str] = (),
    costly_seeds: Sequence[int] = (),
    dataset: str | None = None,
) -> str:
    """Return how many seeds a figure shows, for its caption: "3 seeds (GSS: 1)".

    A figure of one data set names no other one.
    """
    if dataset in costly:
        return seeds_text(costly_seeds)
    if dataset is not None:
        costly = [name for name in costly if name not in DATASETS]
    text = f"{len(seeds)} seed{'s' if len(seeds) > 1 else ''}"
    if costly and len(costly_seeds) != len(seeds):
        text += f" ({', '.join(costly)}: {len(costly_seeds)})"
    return text
