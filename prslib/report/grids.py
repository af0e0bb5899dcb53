"""Make grids of configurations: every combination, and pairs of values."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache, partial
from itertools import product
from typing import Any

from prslib.checks import check_int, expected, items, one_of
from prslib.datasets import DATASETS, load_dataset
from prslib.training.config import RunConfig
from prslib.training.replay import check


def configs(**fields: Any) -> list[RunConfig]:
    """Make the configurations of a grid, one for each combination of listed values.

    Parameters
    ----------
    **fields
        Fields of `RunConfig`; a list or range stands for one run of each of its values,
        at least one.

    Returns
    -------
    list of RunConfig
        In the order of the fields, the last one changing fastest; each run once.

    Raises
    ------
    TypeError, ValueError, FileNotFoundError
        As in `RunConfig`; ValueError if a list is empty.

    Examples
    --------
    >>> [(c.method, c.seed) for c in configs(method=["CRS", "PRS"], seed=range(2))]
    [('CRS', 0), ('CRS', 1), ('PRS', 0), ('PRS', 1)]
    """
    values = [_values(name, value) for name, value in fields.items()]
    made = [
        RunConfig(**dict(zip(fields, row, strict=True))) for row in product(*values)
    ]
    check_all(made)
    first = {}
    for config in made:
        first.setdefault(config.hash, config)
    return list(first.values())


def _values(name: str, value: Any) -> list:
    """Return the values of a field; refuse none, with which nothing would be trained."""
    values = list(value) if isinstance(value, list | range) else [value]
    if not values:
        raise ValueError(expected(f"at least one of {name}", "none"))
    return values


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
    few_seeds: Mapping[str, int] | None = None,
    **fields: Any,
) -> list[RunConfig]:
    """Make configurations of several methods, some with fewer seeds (Table 1).

    The paper has five seeds, and three for GSS "due to its computational complexity".

    Parameters
    ----------
    methods, seeds : sequence of str, sequence of int
        Keys of `METHODS`, and the seeds for which each of them is run.
    costly, costly_seeds : sequence of str, sequence of int
        Methods and data sets, and the seeds that all of them take; the older form of
        `few_seeds`.
    few_seeds : dict of str to int, optional
        Methods and data sets, each with the number of seeds that it takes: the first
        ones. Where a method and its data set both have a number, the smaller one counts.
        Other names are ignored.
    **fields
        Further fields, as in `configs`.

    Returns
    -------
    list of RunConfig
        Data set by data set, the methods with the fewest seeds first.

    Raises
    ------
    TypeError
        If methods or seeds are no lists, or a number of seeds is no integer.
    ValueError
        If a list of methods, seeds or data sets is empty, or a number of seeds is below
        1, or as in `configs`.

    Examples
    --------
    >>> few = {"GSS": 1}
    >>> made = configs_of(["CRS", "GSS"], [0, 1], few_seeds=few, dataset="digits70tiny")
    >>> [(config.method, config.seed) for config in made]
    [('GSS', 0), ('CRS', 0), ('CRS', 1)]
    """
    methods = _values("methods", items("methods", methods))
    seeds = _values("seeds", items("seeds", seeds))
    costly = items("costly", costly)
    seeds_of = dict.fromkeys(costly, items("costly_seeds", costly_seeds))
    for name, count in (few_seeds or {}).items():
        seeds_of[name] = seeds[: check_int(f"few_seeds of {name}", count, least=1)]
    datasets = fields.pop("dataset", RunConfig.dataset)
    made = []
    for name in _values("dataset", datasets):
        one_of("dataset", name, DATASETS)
        fields["dataset"] = name
        with_seeds = defaultdict(list)
        for method in methods:
            fewer = [seeds_of[key] for key in (method, name) if key in seeds_of]
            with_seeds[tuple(min(fewer, key=len, default=seeds))].append(method)
        for chosen in sorted(with_seeds, key=len):
            made += configs(**fields, method=with_seeds[chosen], seed=[*chosen])
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
    few_seeds: Mapping[str, int] | None = None,
    dataset: str | None = None,
) -> str:
    """Return how many seeds a figure shows, for its caption: "3 seeds (GSS: 1)".

    A figure of one data set names no other one.
    """
    few = dict(few_seeds or {})
    if dataset is not None:
        seeds = seeds[: few.get(dataset)]
        few = {name: few[name] for name in few if name not in DATASETS}
    fewer = [f"{name}: {few[name]}" for name in few if few[name] < len(seeds)]
    text = f"{len(seeds)} seed{'s' if len(seeds) > 1 else ''}"
    return f"{text} ({', '.join(fewer)})" if fewer else text
