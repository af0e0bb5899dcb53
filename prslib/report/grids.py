"""List the runs of notebooks: grids with fewer seeds for some, and where each is tested."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from prslib.checks import check_int, expected, items, one_of
from prslib.datasets import DATASETS
from prslib.report.asked import Asked, configs, drop_repeated, list_values
from prslib.report.notebook import Settings
from prslib.report.tables import labels_of
from prslib.train import METHODS, Run

OPEN, BALANCED = "open", "balanced"  # test sets


def configs_of(
    methods: Sequence[str],
    seeds: Sequence[int],
    few_seeds: Mapping[str, int] | None = None,
    **fields: Any,
) -> list[Asked]:
    """Make configurations of several methods, some with fewer seeds (Table 1).

    The paper has five seeds, and three for GSS "due to its computational complexity".

    Parameters
    ----------
    methods, seeds : sequence of str, sequence of int
        Keys of `METHODS`, and the seeds for which each of them is run.
    few_seeds : dict of str to int, optional
        Methods and data sets, each with the number of seeds that it takes: the first
        ones. Where a method and its data set both have a number, the smaller one counts.
    **fields
        Further fields, as in `configs`.

    Returns
    -------
    list of Asked
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
    methods = list_values("methods", items("methods", methods))
    seeds = list_values("seeds", items("seeds", seeds))
    seeds_of = {}
    for name, count in (few_seeds or {}).items():
        one_of("method or data set", name, [*METHODS, *DATASETS])
        seeds_of[name] = seeds[: check_int(f"few_seeds of {name}", count, least=1)]
    datasets = fields.pop("dataset", Asked.dataset)
    made = []
    for name in list_values("dataset", datasets):
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


def standard_runs(settings: Settings) -> list[Asked]:
    """List a run of every data set, method and seed that the parameters name."""
    return configs_of(
        settings.method,
        settings.seeds,
        few_seeds=settings.few_seeds,
        dataset=settings.dataset,
        rho=settings.rho,
        memory_size=settings.memory_size,
    )


def main_runs(settings: Settings) -> list[Asked]:
    """List the main table's runs, on the open images and on the paper's."""
    check_labels(settings.dataset, one=False)
    check_compared(settings.method, "CRS", "PRS")
    for name in settings.own_threshold:
        one_of("method", name, METHODS)
    made = [
        replace(config, own_threshold=config.method in settings.own_threshold)
        for config in standard_runs(settings)
    ]
    return drop_repeated([*tested_on(made), *tested_on(made, BALANCED)])


def tested_on(configs: Iterable[Asked], test_set: str = OPEN) -> list[Asked]:
    """Test runs elsewhere where their data set has an open test set; others stay.

    The rule: what is decided is decided on the open images, as their chance is the
    smallest part of an interval (`figures/studies/more_seeds.csv`). The balanced test
    set, which is the paper's, serves the tables beside the paper's own.
    """
    return [
        replace(config, test_set=test_set) if has_open(config.dataset) else config
        for config in configs
    ]


def has_open(dataset: str) -> bool:
    """Tell whether a data set has an open test set."""
    return OPEN in labels_of(dataset).tests


def runs_on(runs: Iterable[Run], test_set: str = OPEN) -> list[Run]:
    """Pick the runs that are where `tested_on` would test them."""
    return [
        run
        for run in runs
        if not has_open(run.config.dataset)
        or run.config.resolved["test_set"] == test_set
    ]


def check_labels(names: Sequence[str], one: bool) -> None:
    """Raise ValueError for a data set with one label a sample, or with several."""
    for name in names:
        one_of("dataset", name, DATASETS)
        if (DATASETS[name].recipe.loss == "cross_entropy") != one:
            kind = "one label" if one else "several labels"
            raise ValueError(expected(f"data with {kind} a sample", repr(name)))


def check_memory(methods: Sequence[str]) -> None:
    """Raise ValueError for a method without a memory."""
    with_memory = [name for name, row in METHODS.items() if row.sampler]
    for name in methods:
        one_of("method with a memory", name, with_memory)


def check_compared(methods: Sequence[str], *compared: str) -> None:
    """Raise ValueError unless the methods that a notebook compares are among its own."""
    if not {*compared} <= {*methods}:
        what = f"method with {' and '.join(compared)}"
        raise ValueError(expected(what, ", ".join(methods)))
