"""List the runs of notebooks: grids in which some methods have fewer seeds, and test sets."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from prslib.checks import check_int, expected, one_of
from prslib.datasets import DATASETS
from prslib.report.asked import Asked, configs, list_values
from prslib.report.notebook import Settings
from prslib.report.tables import labels_of
from prslib.train import METHODS

# names of test sets: classes alike (FULL for single-label data), as the stream comes, and
# further images of cocoseq-mini
BALANCED, FULL, IMBALANCED, OPEN = "balanced", "full", "imbalanced", "open"


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
        Methods and data sets that are run with only the first seeds, and how many. If a
        method and its data set both have a number, the smaller one applies.
    **fields
        Further fields, as in `configs`.

    Returns
    -------
    list of Asked
        Data set by data set, the methods with the fewest seeds first.

    Examples
    --------
    >>> few = {"GSS": 1}
    >>> made = configs_of(["CRS", "GSS"], [0, 1], few_seeds=few, dataset="digits70tiny")
    >>> [(config.method, config.seed) for config in made]
    [('GSS', 0), ('CRS', 0), ('CRS', 1)]
    """
    seeds_of = {}
    for name, count in (few_seeds or {}).items():
        one_of("method or data set", name, [*METHODS, *DATASETS])
        seeds_of[name] = seeds[: check_int(f"few_seeds of {name}", count, least=1)]
    made = []
    for name in list_values(fields.pop("dataset", Asked.dataset)):
        with_seeds = defaultdict(list)
        for method in methods:
            fewer = [seeds_of[key] for key in (method, name) if key in seeds_of]
            with_seeds[tuple(min(fewer, key=len, default=seeds))].append(method)
        for chosen in sorted(with_seeds, key=len):
            grid = {"method": with_seeds[chosen], "seed": [*chosen]}
            made += configs(**fields, dataset=name, **grid)
    return made


def zip_fields(**fields: Sequence) -> list[dict]:
    """Return a list of dicts: the first value of every field, then the second, and so on."""
    rows = zip(*fields.values(), strict=True)
    return [dict(zip(fields, row, strict=True)) for row in rows]


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


def sampler_runs(
    settings: Settings, names: Sequence[str], seeds: Sequence[int], **fields: Any
) -> list[Asked]:
    """List CRS and the other samplers, PRS also with further powers of allocation.

    Methods of ``tuned_threshold`` are trained as in the main table, so that both notebooks
    share their runs in the standard setting.
    """
    few = settings.few_seeds
    fixed: dict[str, Any] = {"few_seeds": few, "dataset": names} | fields
    made = configs_of(["CRS", *settings.method], seeds, **fixed)
    for power in settings.powers:
        made += configs_of(["PRS"], seeds, rho=power, **fixed)
    return made if fields else tune_thresholds(settings, made)


def tune_thresholds(settings: Settings, configs: Iterable[Asked]) -> list[Asked]:
    """Make the runs of some methods also tune their threshold."""
    chosen = settings.tuned_threshold
    return [
        replace(config, tuned_threshold=config.method in chosen) for config in configs
    ]


def main_runs(settings: Settings) -> list[Asked]:
    """List the main table's runs, on both kinds of test set."""
    check_labels(settings.dataset, one=False)
    check_compared(settings.method, "CRS", "PRS")
    for name in settings.tuned_threshold:
        one_of("method", name, METHODS)
    return on_tests(tune_thresholds(settings, standard_runs(settings)))


def on_tests(configs: Iterable[Asked]) -> list[Asked]:
    """Read each run on all its test sets with classes alike or as the stream comes."""
    return [
        replace(config, test_set=test_set)
        for config in configs
        for test_set in (BALANCED, FULL, IMBALANCED)
        if test_set in labels_of(config.dataset).tests
    ]


def on_open(configs: Iterable[Asked]) -> list[Asked]:
    """Read runs on further images if their data set has any, for scores of classes."""
    return [
        replace(config, test_set=OPEN)
        if OPEN in labels_of(config.dataset).tests
        else config
        for config in configs
    ]


def check_labels(names: Sequence[str], one: bool) -> None:
    """Raise ValueError for a data set with one label per sample, or with several."""
    for name in names:
        one_of("dataset", name, DATASETS)
        if (DATASETS[name].recipe.loss == "cross_entropy") != one:
            kind = "one label" if one else "several labels"
            raise ValueError(expected(f"data with {kind} per sample", repr(name)))


def check_memory(methods: Sequence[str]) -> None:
    """Raise ValueError for a method without a memory."""
    with_memory = [name for name, row in METHODS.items() if row.sampler]
    for name in methods:
        one_of("method with a memory", name, with_memory)


def check_compared(methods: Sequence[str], *compared: str) -> None:
    """Raise ValueError unless the methods that a notebook compares are among its parameters."""
    if not {*compared} <= {*methods}:
        what = f"method with {' and '.join(compared)}"
        raise ValueError(expected(what, ", ".join(methods)))
