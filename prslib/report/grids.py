"""List and check the runs of notebooks: grids in which some methods have fewer seeds."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from prslib.checks import check_int, expected, one_of
from prslib.datasets import DATASETS
from prslib.report.notebook import Settings
from prslib.runs import configs
from prslib.train import METHODS, RunConfig


def configs_of(
    methods: Sequence[str],
    seeds: Sequence[int],
    few_seeds: Mapping[str, int] | None = None,
    **fields: Any,
) -> list[RunConfig]:
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
    list of RunConfig
        Data set by data set, the methods with the fewest seeds first.

    Examples
    --------
    >>> few = {"GSS": 1}
    >>> made = configs_of(["CRS", "GSS"], [0, 1], few_seeds=few, dataset="digits70tiny")
    >>> [(config.method, config.seed) for config in made]
    [('GSS', 0), ('CRS', 0), ('CRS', 1)]
    """
    few = few_seeds or {}
    for name, count in few.items():
        one_of("method or data set", name, [*METHODS, *DATASETS])
        check_int(f"few_seeds of {name}", count, least=1)
    made = []
    names = fields.pop("dataset")
    for name in [names] if isinstance(names, str) else names:
        most = min(len(seeds), few.get(name, len(seeds)))
        counts = {method: min(most, few.get(method, most)) for method in methods}
        for count in sorted(set(counts.values())):
            chosen = [method for method in methods if counts[method] == count]
            grid = {"method": chosen, "seed": seeds[:count]}
            made += configs(**fields, dataset=name, **grid)
    return made


def zip_fields(**fields: Sequence) -> list[dict]:
    """Return a list of dicts: the first value of every field, then the second, and so on."""
    rows = zip(*fields.values(), strict=True)
    return [dict(zip(fields, row, strict=True)) for row in rows]


def standard_runs(settings: Settings) -> list[RunConfig]:
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
) -> list[RunConfig]:
    """List the runs of CRS and the other samplers, including PRS with further rhos.

    Methods of ``tuned_threshold`` are trained as in the main table, so that both notebooks
    share their runs in the standard setting.
    """
    few = settings.few_seeds
    fixed: dict[str, Any] = {"few_seeds": few, "dataset": names} | fields
    made = configs_of(["CRS", *settings.method], seeds, **fixed)
    for power in settings.powers:
        made += configs_of(["PRS"], seeds, rho=power, **fixed)
    return made if fields else tune_thresholds(settings, made)


def tune_thresholds(
    settings: Settings, configs: Iterable[RunConfig]
) -> list[RunConfig]:
    """Make the runs of some methods also tune their threshold."""
    chosen = settings.tuned_threshold
    return [
        replace(config, tuned_threshold=config.method in chosen) for config in configs
    ]


def main_runs(settings: Settings) -> list[RunConfig]:
    """List the main table's runs."""
    check_labels(settings.dataset, one=False)
    check_compared(settings.method, "CRS", "PRS")
    for name in settings.tuned_threshold:
        one_of("method", name, METHODS)
    return tune_thresholds(settings, standard_runs(settings))


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
