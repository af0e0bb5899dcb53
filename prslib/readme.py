"""The README's tables, written from the quick profile's CSV files between two markers."""

import re

import pandas as pd

from prslib.paths import figures_dir, project_root
from prslib.report import GROUPS, METRICS

BEGIN, END = "<!-- main table: begin -->", "<!-- main table: end -->"


def main_table() -> str:
    """Return the overall scores and minority mAP of ``figures/quick`` as a Markdown table.

    Returns
    -------
    str
        A row for each method; ours as mean ± s.d. over seeds, the paper's number in brackets.
    """
    cells = pd.read_csv(figures_dir("quick") / "main_table.csv")
    cells = cells[cells["measure"] == "score"]
    columns = [("overall", metric) for metric in METRICS] + [
        (group, "mAP") for group in GROUPS if group != "overall"
    ]
    blocks = []
    for (name, stands_for), part in cells.groupby(["dataset", "stands_for"], sort=False):
        part = part.set_index(["method", "group", "metric"])
        head = " | ".join(f"{group} {metric}" for group, metric in columns)
        lines = [f"| {name} [{stands_for}] | {head} |", "|---" * (len(columns) + 1) + "|"]
        for method in part.index.unique("method"):
            row = [_cell(part.loc[(method, *column)]) for column in columns]
            lines.append(f"| {method} | " + " | ".join(row) + " |")
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def _cell(row: pd.Series) -> str:
    spread = "" if pd.isna(row["sd"]) else f" ± {row['sd']:.1f}"
    theirs = "" if pd.isna(row["published"]) else f" [{row['published']:.1f}]"
    return f"{row['mean']:.1f}{spread}{theirs}"


def renew() -> None:
    """Write the table into the README.

    Raises
    ------
    ValueError
        If the README has lost its markers.
    """
    file = project_root() / "README.md"
    text = file.read_text(encoding="utf-8")
    pattern = re.compile(f"{re.escape(BEGIN)}.*{re.escape(END)}", re.DOTALL)
    if not pattern.search(text):
        raise ValueError(f"{file.name} must hold the markers {BEGIN} and {END}; put them back")
    file.write_text(pattern.sub(f"{BEGIN}\n{main_table()}\n{END}", text), encoding="utf-8")
