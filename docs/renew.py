"""Write numbers of `figures`, and code, into README and docs.

`make figures PROFILE=seeds` calls ``python docs/renew.py``. What is between the marks
``<!-- KIND WORDS: begin -->`` and ``<!-- KIND: end -->`` is written by the function in
`KINDS`, with the words as its arguments.
"""

import ast
import re
import textwrap
from pathlib import Path

import pandas as pd
from articles import REPORTED

from prslib.paths import figures_dir, project_root
from prslib.report.ledger import as_markdown, counts
from prslib.report.tables import MAIN_METRICS

ROOT = project_root()
STREAMS = {"reutersseq": "Reuters", "cocoseq-mini": "COCO"}
CHOSEN = 0.5  # the rho that the pages recommend beside the trained one
BLOCK = re.compile(r"(<!-- (\w+)([^:]*): begin -->\n).*?(<!-- \2: end -->)", re.DOTALL)
QUESTION = re.compile(r"\[(.+)\]\((\w+)\.ipynb\)")
FOOTNOTE = (
    "† on a stand-in made of handwritten digits; the other numbers are from real data, "
    "COCO images where no other is named."
)


def numbers(name: str, folder: str = REPORTED) -> pd.DataFrame:
    """Read a table that a notebook or a benchmark wrote."""
    return pd.read_csv(figures_dir(folder) / f"{name}.csv")


def answer(notebook: str) -> str:
    """Return a notebook's answer, with a mark if it is about a stand-in."""
    sentence, data = numbers(f"{notebook}_sentence").iloc[0]
    return f"{sentence}†" if data == "stand-in" else sentence


def list_answers(folder: str = "") -> str:
    """Return a table of questions, which lead to the articles, and answers."""
    start = (ROOT / "notebooks" / "start.md").read_text("utf-8")
    rows = [
        {"question": f"[{question}]({folder}{name}.md)", "answer": answer(name)}
        for question, name in QUESTION.findall(start)
    ]
    return f"{as_markdown(pd.DataFrame(rows))}\n\n{FOOTNOTE}"


def pivot(file: str, index: str, columns: str, values: str, *where: str) -> str:
    """Return means of a CSV's rows that have certain values, "memory=2000" and the like."""
    rows = numbers(*reversed(file.split("/")))
    for condition in where:
        column, value = condition.split("=")
        rows = rows[rows[column].astype(str) == value]
    table = rows.pivot_table(values, index, columns, sort=False)
    table.columns = [str(name) for name in table.columns]
    return as_markdown(table.map("{:,.1f}".format).reset_index())


def list_changes() -> str:
    """Return what CBRS and PRS change against CRS on each real stream."""
    trained = numbers("main_results_table").query("method == 'PRS'")
    trained = trained.groupby("dataset")["rho"].first()
    pays = numbers("when_it_pays_minus_crs").query("method == 'CBRS'")
    imbalance = pays.groupby("dataset")["imbalance"].first()
    of_prs = numbers("main_results_prs_minus_crs")
    sweep = numbers("rho_sweep_minus_crs").query(f"rho == {CHOSEN}")
    rows = []
    for dataset, stream in STREAMS.items():
        samplers = {"CBRS": pays}
        samplers[f"PRS, $\\rho = {trained[dataset]:g}$"] = of_prs
        samplers[f"PRS, $\\rho = {CHOSEN:g}$"] = sweep
        for sampler, gaps in samplers.items():
            gaps = gaps[gaps["dataset"] == dataset].set_index(["group", "metric"])
            row = {"stream": f"{stream}, {imbalance[dataset]:.0f}:1"}
            row |= {"minus CRS": sampler, "seeds": gaps["seeds"].iloc[0]}
            row["rare: mAP"] = with_interval(gaps.loc["minority", "mAP"])
            row["frequent: C-F1"] = with_interval(gaps.loc["majority", "C-F1"])
            for metric in MAIN_METRICS:
                row[f"all: {metric}"] = with_interval(gaps.loc["overall", metric])
            rows.append(row)
    return as_markdown(pd.DataFrame(rows))


def with_interval(row: pd.Series) -> str:
    """Return a difference and the ends of its interval."""
    return f"{row['difference']:+.1f} [{row['low']:+.1f}, {row['high']:+.1f}]"


def count_claims() -> str:
    """Count the claims by verdict, real images apart from stand-ins."""
    return as_markdown(counts(numbers("ledger_claims")).reset_index())


def quote(file: str, name: str = "") -> str:
    """Return a block with a file's code, or with that of one function or method."""
    text = (ROOT / file).read_text("utf-8")
    if name:
        nodes = ast.parse(text).body
        for step in name.split("."):
            node = next(n for n in nodes if getattr(n, "name", "") == step)
            nodes = getattr(node, "body", [])
        lines = text.splitlines()[node.lineno - 1 : node.end_lineno]
        text = textwrap.dedent("\n".join(lines))
    return f"```py\n# {file}\n{text.strip()}\n```"


KINDS = {
    "answer": answer,
    "answers": list_answers,
    "changes": list_changes,
    "claims": count_claims,
    "code": quote,
    "table": pivot,
}


def fill(block: re.Match) -> str:
    """Return a block with the present text between its marks."""
    begin, kind, words, end = block.groups()
    return f"{begin}{KINDS[kind](*words.split())}\n{end}"


def renew() -> dict[Path, str]:
    """Return each page and its text with present numbers and code."""
    pages = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
    return {page: BLOCK.sub(fill, page.read_text("utf-8")) for page in pages}


if __name__ == "__main__":
    for file, text in renew().items():
        file.write_text(text, encoding="utf-8")
