"""Ask every topic for its settings and its runs, for all commands and the ledger.

A topic is a notebook and the module of the same name, which has a dataclass
``Settings`` and, where runs are trained, a function ``runs(settings)``. A function
``extra_runs(settings)``, where there is one, lists runs that the ledger does not read.
"""

from importlib import import_module

from prslib.paths import known_notebooks
from prslib.report.notebook import Parameters
from prslib.training.config import RunConfig

LEDGER = "ledger"  # asks for the runs of all others
# have the standard settings: the first run of a data set is what others vary
STANDARD = ("main_results", "precision_recall", "single_label")


def settings_of(profile: str, topic: str) -> Parameters:
    """Return a topic's settings under a profile."""
    return import_module(f"prslib.report.{topic}").Settings.of(profile)


def runs_of(profile: str, topic: str) -> list[RunConfig]:
    """Return the runs of a topic under a profile."""
    module = import_module(f"prslib.report.{topic}")
    runs = getattr(module, "runs", lambda settings: [])
    return runs(settings_of(profile, topic))


def all_runs_of(profile: str, topic: str) -> list[RunConfig]:
    """Return the runs of a topic and the extra ones, which no claim is about."""
    module = import_module(f"prslib.report.{topic}")
    extra_runs = getattr(module, "extra_runs", lambda settings: [])
    return runs_of(profile, topic) + extra_runs(settings_of(profile, topic))


def device_of(profile: str, topic: str) -> str:
    """Return the device of a topic's runs; "cpu" where it has none."""
    return getattr(settings_of(profile, topic), "device", "cpu")


def runs(profile: str) -> tuple[list[RunConfig], dict[str, str]]:
    """Return the runs of all topics, each once, and the topics whose files miss."""
    first = {}
    errors = {}
    names = [name for name in known_notebooks(profile) if name != LEDGER]
    for name in sorted(names, key=lambda name: name not in STANDARD):
        try:
            for config in runs_of(profile, name):
                first.setdefault(config.hash, config)
        except FileNotFoundError as error:
            errors[name] = str(error)
    if errors and not first:
        raise FileNotFoundError(next(iter(errors.values())))
    return list(first.values()), errors
