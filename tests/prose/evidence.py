"""The numbers in `figures/` as they were committed: with other packages yours may differ a bit."""

import io
import subprocess
from functools import cache, partial

import pandas as pd

from prslib.paths import project_root


@cache
def _read(profile, name):
    path = f"figures/{profile}/{name}.csv"
    try:
        command = ["git", "show", f"HEAD:{path}"]
        done = subprocess.run(command, cwd=project_root(), capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):  # no git, or not a file of the last commit
        return pd.read_csv(project_root() / path)
    return pd.read_csv(io.BytesIO(done.stdout))


def rows(name, profile="quick", **where):
    """Return the rows of a CSV whose columns have the given values; there must be some."""
    frame = _read(profile, name)
    for column, value in where.items():
        several = isinstance(value, (list, tuple, set))
        frame = frame[frame[column].isin(value) if several else frame[column] == value]
    assert len(frame), f"{profile}/{name}.csv has no row with {where}"
    return frame


def number(name, column, profile="quick", **where):
    """Return the one number that a CSV has in a column for the given values of others."""
    found = rows(name, profile, **where)[column]
    assert len(found) == 1, f"{profile}/{name}.csv has {len(found)} rows with {where}"
    return found.iloc[0]


def verdict(claim, dataset, profile="seeds"):
    """Return what the ledger says of a claim on a data set."""
    return number("ledger_claims", "verdict", profile, claim=claim, dataset=dataset)


def mean(name, column="value", profile="quick", **where):
    """Return the mean of a column over the rows with the given values of others."""
    return rows(name, profile, **where)[column].mean()


def both(values, digits=0):
    """Return the one number that all values are when they are rounded."""
    assert len({round(value, digits) for value in values}) == 1, f"{values} are not the same"
    return [values[0]]


def of(profile):
    """Return `rows`, `number` and `mean` for one profile's figures."""
    return [partial(read, profile=profile) for read in (rows, number, mean)]
