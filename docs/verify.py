"""Draw a profile from freshly trained runs and compare every table with the commit.

`make verify` calls ``python docs/verify.py``. With the versions of packages that the
committed tables were made with, all bytes have to be the same. With others it says so and
compares words and numbers of three digits.
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
    """Draw a profile anew, print how it compares, and return the differences."""
    with tempfile.TemporaryDirectory() as name:
        committed = read_commit(profile, Path(name) / "committed")
        drawn = draw(profile, Path(name) / "drawn")
    now = name_versions(versions())
    other = name_versions(read(committed[VERSIONS])) - now
    print(f"{', '.join(sorted(now))}; {platform.machine()}")
    if other:
        print(f"committed with other versions: {', '.join(sorted(other))}")
        del committed[VERSIONS], drawn[VERSIONS]
    differences = compare(committed, drawn, by_bytes=not other)
    print(*differences, sep="\n")
    print(f"largest difference of numbers: {find_largest(committed, drawn)}")
    how = "rounded to three digits" if other else "byte by byte"
    count = len(differences) or "none"
    print(f"Of {len(committed)} tables, compared {how}, {count} differ.")
    return differences


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
    own = {"PRSLIB_CACHE": f"{folder}/cache", "PRSLIB_FIGURES": f"{folder}/figures"}
    command = [sys.executable, "-m", "prslib", "figures", "--profile", profile]
    done = subprocess.run(command, cwd=project_root(), env=os.environ | own)
    if done.returncode:
        raise SystemExit("a notebook failed, see above")
    return tables_in(folder / "figures" / profile)


def tables_in(folder: Path) -> Tables:
    """Return the text of every table in a folder, by the file's name."""
    return {file.name: file.read_bytes().decode() for file in folder.glob("*.csv")}


def read(table: str) -> pd.DataFrame:
    """Read a table, every cell as text."""
    return pd.read_csv(io.StringIO(table), dtype=str, keep_default_na=False)


def name_versions(table: pd.DataFrame) -> set[str]:
    """Return "numpy 2.4.6" and the like."""
    return set(table["package"] + " " + table["version"])


def compare(then: Tables, now: Tables, by_bytes: bool) -> list[str]:
    """Return a line for each table that differs."""
    lines = [f"{name}: on one side only" for name in sorted({*then} ^ {*now})]
    for name in sorted({*then} & {*now}):
        before, after = read(then[name]), read(now[name])
        if then[name] == now[name]:
            continue
        if by_bytes:
            lines.append(f"{name}: other bytes")
        elif not before[:0].equals(after[:0]) or len(before) != len(after):
            lines.append(f"{name}: other rows or columns")
        else:
            cells = before.map(round_numbers) != after.map(round_numbers)
            for column, count in cells.sum().items():
                if count:
                    lines.append(f"{name}: {column} differs in {count} rows")
    return lines


def round_numbers(text: str) -> str:
    """Round each number in a text to three digits."""
    return NUMBER.sub(lambda number: f"{float(number[0]):.3g}", text)


def find_largest(then: Tables, now: Tables) -> str:
    """Say which number differs most."""
    largest, words = 0.0, "none"
    for name in sorted({*then} & {*now}):
        before, after = (
            read(table).apply(pd.to_numeric, errors="coerce").stack()
            for table in (then[name], now[name])
        )
        gaps = (after - before).abs().dropna()
        if not gaps.empty and gaps.max() > largest:
            largest = gaps.max()
            row, column = cell = gaps.idxmax()
            change = f"{before[cell]:g} is {after[cell]:g} now"
            words = f"{name}, {column} in row {row + 1}: {change}"
    return words


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--profile",
        default=DEFAULT,
        choices=known_profiles(),
        help="quick trains 296 runs, 5 to 8 minutes on two cores",
    )
    sys.exit(bool(verify(parser.parse_args().profile)))
