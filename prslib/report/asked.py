"""Configure runs together with the test set on which a notebook reads them.

A run scores every test set of its data, whereas a notebook reads one of them.
Configurations that differ only in the test set are one run, which is trained and stored
once.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import product
from typing import Any

from prslib import runs
from prslib.checks import one_of
from prslib.datasets import DATASETS
from prslib.report.tables import labels_of
from prslib.train import Run, RunConfig


@dataclass
class Asked(RunConfig):
    """The configuration of a run, and which of its results are read.

    Parameters
    ----------
    test_set : str or None
        The test set whose scores are read; None for the default of the data set's recipe.
    class_forgetting : bool
        Whether forgetting by class size is measured.
    """

    test_set: str | None = None
    class_forgetting: bool = False

    @property
    def resolved(self) -> dict[str, Any]:
        """Values of all fields, with the data set's recipe in place of None."""
        test_set = self.test_set or DATASETS[self.dataset].recipe.test_set
        read = {"test_set": test_set, "class_forgetting": self.class_forgetting}
        return super().resolved | read

    @cached_property
    def identity(self) -> dict[str, Any]:
        """Fields that the run and its reader use; cached, because the ledger asks often."""
        return super().identity

    @cached_property
    def to_train(self) -> RunConfig:
        """The configuration of the run itself."""
        names = [row.name for row in fields(RunConfig)]
        return RunConfig(**{name: getattr(self, name) for name in names})


def identify(config: RunConfig) -> str:
    """Return text that is equal for equal runs that are read on the same test set."""
    return repr(config.identity)


def drop_repeated(configs: Iterable[Asked]) -> list[Asked]:
    """Return each configuration once, in the order in which they come first."""
    first: dict[str, Asked] = {}
    for config in configs:
        first.setdefault(identify(config), config)
    return list(first.values())


def list_values(value: Any) -> list:
    """Return the values of a field, one or several."""
    return list(value) if isinstance(value, list | range) else [value]


def configs(**fields: Any) -> list[Asked]:
    """Make the configurations of a grid, as `prslib.configs` does, each of them once.

    Raises
    ------
    ValueError
        If a data set has no such test set, or as in `RunConfig`.
    """
    values = [list_values(value) for value in fields.values()]
    made = [Asked(**dict(zip(fields, row, strict=True))) for row in product(*values)]
    for config in made:
        tests = labels_of(config.dataset).tests
        one_of("test_set", config.resolved["test_set"], tests)
    return drop_repeated(made)


def run_all(
    configs: Sequence[Asked], workers: int | None = None, device: str = "cpu"
) -> list[Run]:
    """Return the runs of all configurations; train each missing run once."""
    trained = {repr(config.to_train): config.to_train for config in configs}
    finished = runs.run_all(list(trained.values()), workers, device)
    by_config = dict(zip(trained, finished, strict=True))
    return [
        replace(by_config[repr(config.to_train)], config=config) for config in configs
    ]


def load_stored(configs: Sequence[Asked]) -> list[Run]:
    """Return the runs that are stored."""
    stored = [each for each in configs if runs.path_of(each.to_train).is_file()]
    return run_all(stored)
