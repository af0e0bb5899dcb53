"""Make a profile's tables again from new runs, and compare each with the commit.

`make verify` calls ``python docs/verify.py``. If the installed packages have the versions
with which the committed tables were made, all bytes have to be the same. Otherwise the
script says so, rounds numbers to three digits, and compares these and all words.
"""

import argparse
import io
import os
import platform
import re
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
NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?")


def verify(profile: str) -> list[str]:
    """Make a profile's tables again, print a comparison, and return those that differ."""
    with tempfile.TemporaryDirectory() as name:
        committed = read_commit(profile, Path(name) / "committed")
        drawn = draw(profile, Path(name) / "drawn")
    now = {f"{package} {version}" for package, version in versions().to_numpy()}
    then = read(committed[VERSIONS])
    other = {f"{package} {version}" for package, version in then.to_numpy()} - now
    print(f"{', '.join(sorted(now))}; {platform.machine()}")
    if other:
        print(f"committed with other versions: {', '.join(sorted(other))}")
        del committed[VERSIONS], drawn[VERSIONS]
    differing = compare(committed, drawn, by_bytes=not other)
    for table in differing:
        print(f"differs: {table}")
    how = "with numbers of three digits" if other else "byte by byte"
    count = len(differing) or "none"
    print(f"Of {len(committed)} tables, compared {how}, {count} differ.")
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
    """Train all runs of a profile and make its tables, with cache and figures in a folder."""
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


def compare(then: Tables, now: Tables, by_bytes: bool) -> list[str]:
    """Return the tables that differ, and print the largest difference of numbers."""
    cells = pd.DataFrame({"then": stack(then), "now": stack(now)})
    numbers = cells.apply(pd.to_numeric, errors="coerce")
    gaps = (numbers["now"] - numbers["then"]).abs()
    if gaps.max() > 0:
        cell = gaps.idxmax()
        before, after = cells.loc[cell]
        where = "{}, row {}, {}".format(*cell)
        print(f"largest difference of numbers: {where}: {before} is {after} now")
    if by_bytes:
        names = sorted({*then, *now})
        return [name for name in names if then.get(name) != now.get(name)]
    rounded = cells.map(round_numbers, na_action="ignore")
    changed = rounded[rounded["then"] != rounded["now"]]
    return sorted({*changed.index.unique(level=0), *(then.keys() ^ now.keys())})


def stack(tables: Tables) -> pd.Series:
    """Return every cell by its table, row and column."""
    return pd.concat({name: read(text).stack() for name, text in tables.items()})


def round_numbers(text: str) -> str:
    """Round each number in a text to three digits."""
    return NUMBER.sub(lambda number: f"{float(number[0]):.3g}", text)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--profile",
        default=DEFAULT,
        choices=known_profiles(),
        help="quick needs some minutes on two cores",
    )
    sys.exit(bool(verify(parser.parse_args().profile)))
