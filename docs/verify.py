"""Draw a profile from newly trained runs and compare every table with the commit.

`make verify` calls ``python docs/verify.py``. If the installed packages have the versions
with which the committed tables were made, all bytes have to be the same. It names other
versions, and the largest difference of numbers.
"""

import argparse
import io
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pandas as pd

from prslib.checks import expected
from prslib.paths import DEFAULT, known_profiles, project_root
from prslib.rounding import versions

VERSIONS = "ledger_versions.csv"
Tables = dict[str, str]  # the text of each file by its name


def verify(profile: str) -> list[str]:
    """Draw a profile again, print a comparison, and return the tables that differ."""
    with tempfile.TemporaryDirectory() as name:
        committed = read_commit(profile, Path(name) / "committed")
        drawn = draw(profile, Path(name) / "drawn")
    now = {f"{package} {version}" for package, version in versions().to_numpy()}
    then = read(committed[VERSIONS])
    other = {f"{package} {version}" for package, version in then.to_numpy()} - now
    print(f"{', '.join(sorted(now))}; {platform.machine()}")
    if other:
        print(f"committed with other versions: {', '.join(sorted(other))}")
    print_largest(committed, drawn)
    names = sorted({*committed, *drawn})
    differing = [name for name in names if committed.get(name) != drawn.get(name)]
    for table in differing:
        print(f"differs: {table}")
    count = len(differing) or "none"
    print(f"Of {len(committed)} tables, compared byte by byte, {count} differ.")
    return differing


def read_commit(profile: str, folder: Path) -> Tables:
    """Return the tables of a profile in the last commit."""
    archive = folder.with_suffix(".tar")
    tables = f"figures/{profile}"
    paths = [tables, f"{tables}/{VERSIONS}"]  # git refuses a path that is missing
    command = ["git", "archive", f"--output={archive}", "HEAD", *paths]
    done = subprocess.run(command, cwd=project_root(), capture_output=True, text=True)
    if done.returncode:
        what = "a checkout with committed figures of the profile"
        raise SystemExit(expected(what, done.stderr.strip()))
    shutil.unpack_archive(archive, folder, filter="data")
    return tables_in(folder / "figures" / profile)


def draw(profile: str, folder: Path) -> Tables:
    """Train all runs of a profile and draw it, with a cache and figures in a folder."""
    folders = {"PRSLIB_CACHE": f"{folder}/cache", "PRSLIB_FIGURES": f"{folder}/figures"}
    command = [sys.executable, "-m", "prslib", "figures", "--profile", profile]
    done = subprocess.run(command, cwd=project_root(), env=os.environ | folders)
    if done.returncode:
        raise SystemExit("a notebook failed, see above")
    return tables_in(folder / "figures" / profile)


def tables_in(folder: Path) -> Tables:
    """Return the text of every table in a folder, by the file's name."""
    return {file.name: file.read_bytes().decode() for file in folder.glob("*.csv")}


def read(table: str) -> pd.DataFrame:
    """Read a table with every cell as text."""
    return pd.read_csv(io.StringIO(table), dtype=str, keep_default_na=False)


def print_largest(then: Tables, now: Tables) -> None:
    """Print the largest difference of numbers, if there is one."""
    cells = pd.DataFrame({"then": stack(then), "now": stack(now)})
    numbers = cells.apply(pd.to_numeric, errors="coerce")
    gaps = (numbers["now"] - numbers["then"]).abs()
    if gaps.max() > 0:
        cell = gaps.idxmax()
        before, after = cells.loc[cell]
        where = "{}, row {}, {}".format(*cell)
        print(f"largest difference of numbers: {where}: {before} is {after} now")


def stack(tables: Tables) -> pd.Series:
    """Return every cell by its table, row and column."""
    return pd.concat({name: read(text).stack() for name, text in tables.items()})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--profile",
        default=DEFAULT,
        choices=known_profiles(),
        help="quick needs some minutes on two cores",
    )
    sys.exit(bool(verify(parser.parse_args().profile)))
