"""Write the numbers of figures/seeds and figures/bench, and code, into README and docs.

Run ``python docs/renew.py`` after `make figures PROFILE=seeds`, which calls it. The
sentences that answer the notebooks' questions are in `answers.toml`.
"""

import ast
import json
import re
import textwrap
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import pandas as pd
from answers import (
    PAGES,
    SAMPLERS,
    STREAMS,
    answers,
    best_rhos,
    facts,
    numbers,
    opening,
    trained_rhos,
)

from prslib.paths import project_root
from prslib.report.claims import CLAIMS
from prslib.report.ledger import AT_OWN, account, as_markdown, counts
from prslib.report.tables import ALL_GROUPS, MAIN_METRICS, turned

BESIDE = ("ExStream", "CBRS", "OCDM")  # samplers that balance the memory, too
# columns of the table of claims that are in both its parts, and that are folded
NAMED = ["claim", "data"]
FOLDED = ["weakest cell", *MAIN_METRICS, AT_OWN]
# columns of a table of questions: patterns of a notebook's name, question and answer
README = {
    "question": "{question}",
    "answer": "{answer}",
    "read, run": "[article](docs/report/{name}.md), [notebook](notebooks/{name}.ipynb)",
}
REPORT = {"question": "[{question}]({name}.md)", "answer": "{answer}"}
START = {"question": "[{question}]({name}.ipynb)", "notebook": "`{name}`"}  # JupyterLab


def by_question(columns: dict[str, str]) -> str:
    """Return a table with a row a notebook; its columns are patterns."""
    rows = []
    for name, answer in answers().items():
        file = project_root() / "notebooks" / f"{name}.ipynb"
        title = json.loads(file.read_text("utf-8"))["cells"][0]["source"][0]
        words = {"name": name, "question": title.strip("# \n"), "answer": answer}
        rows.append({key: text.format(**words) for key, text in columns.items()})
    table = as_markdown(pd.DataFrame(rows))
    return f"{table}\n\n{PAGES['stand_in']}" if "answer" in columns else table


def scores() -> pd.DataFrame:
    """Return the main table's scores, each also as the text of a cell."""
    rows = numbers("main_results_table")
    rows = rows[rows["measure"] == "score"]
    spread = rows["sd"].map(" ± {:.1f}".format, na_action="ignore").fillna("")
    theirs = rows["published"].map(" [{:.1f}]".format, na_action="ignore").fillna("")
    return rows.assign(
        cell=rows["mean"].map("{:.1f}".format) + spread + theirs,
        column=rows["group"] + " " + rows["metric"],
    )


def scores_table(rows: pd.DataFrame, columns: list[str], head: str) -> str:
    """Lay out cells of one data set, a row for each method."""
    table = rows.pivot(index="method", columns="column", values="cell")
    table = table.loc[rows["method"].unique(), columns]
    return as_markdown(table.rename_axis(head).reset_index())


def main_table() -> str:
    """Return overall scores and each group's mAP."""
    columns = [f"overall {metric}" for metric in MAIN_METRICS]
    columns += [f"{group} mAP" for group in ALL_GROUPS[:-1]]
    sets = scores().fillna({"stands_for": ""}).groupby(["dataset", "stands_for"])
    return "\n\n".join(
        scores_table(rows, columns, f"{name} [{stands_for}]" if stands_for else name)
        for (name, stands_for), rows in sets
    )


def ledger_counts() -> str:
    """Count the claims by verdict, real images apart from stand-ins."""
    return as_markdown(counts(numbers("ledger_claims")).reset_index())


def all_claims() -> str:
    """Return the effect and the verdict of every claim, a table for each question."""
    claims = numbers("ledger_claims")
    questions = {name: claim.question for name, claim in CLAIMS.items()}
    of_claims = claims["claim"].map(questions)
    asked = claims.groupby(of_claims, sort=False)
    return "\n\n".join(f"### {name}\n\n{claims_table(rows)}" for name, rows in asked)


def claims_table(rows: pd.DataFrame) -> str:
    """Lay out claims, each named once, and their weakest cells and metrics folded below."""
    texts = ["dataset", "data", "weakest", "stands_for"]
    table = account(rows.assign(**rows[texts].fillna("")))
    table = table.rename(columns={"effect": "ours [95 % interval]"})
    metrics = table[[*NAMED, *FOLDED]]
    metrics = metrics[(metrics[FOLDED] != "").any(axis=1)]
    shown = as_markdown(named_once(table.drop(columns=[*FOLDED, "where"])))
    if metrics.empty:
        return shown
    summary = "<details><summary>Metric by metric</summary>"
    return f"{shown}\n\n{summary}\n\n{as_markdown(named_once(metrics))}\n\n</details>"


def named_once(table: pd.DataFrame) -> pd.DataFrame:
    """Name each claim in its first row alone; leave out columns without text."""
    table = table.loc[:, (table != "").any()]
    return table.assign(claim=table["claim"].mask(table["claim"].duplicated(), ""))


def findings() -> str:
    """Return what PRS changes on each real set, and what a threshold of its own does."""
    of_crs = numbers("main_results_prs_minus_crs")
    others = numbers("main_results_prs_minus_others")
    thresholds = numbers("precision_recall_thresholds")
    blocks = []
    for name, rows in of_crs.groupby("dataset", sort=False):
        beside = others[(others["dataset"] == name) & (others["group"] == "overall")]
        cells = [difference_cells(rows, group, "CRS") for group in ALL_GROUPS]
        cells += [
            difference_cells(beside[beside["than"] == method], "overall", method)
            for method in BESIDE
        ]
        turns = turned(thresholds[thresholds["dataset"] == name])
        at_own = " ".join(turns) or "No clear cell turns."
        blocks.append(f"**{name}**\n\n{as_markdown(pd.DataFrame(cells))}\n\n{at_own}")
    return "\n\n".join(blocks)


def verdict() -> str:
    """Say from what imbalance a balanced memory pays, then what each sampler changes."""
    table = pd.DataFrame(changes())
    seeds = " or ".join(sorted(table.pop("seeds").unique()))
    computed = facts() | {"seeds": seeds}
    above = PAGES["verdict"].format(**computed)
    below = PAGES["changes"].format(**computed)
    return f"{above}\n\n{as_markdown(table)}\n\n{below}"


def changes() -> Iterable[dict[str, str]]:
    """Return what CBRS and PRS change against CRS on each real stream, a row for each."""
    keys = ["dataset", "group", "metric"]
    trained = trained_rhos()
    of_prs = numbers("main_results_prs_minus_crs").set_index(keys)
    of_cbrs = numbers("when_it_pays_minus_crs")
    sizes = of_cbrs.groupby("dataset")["imbalance"].first()
    of_cbrs = of_cbrs[of_cbrs["method"] == "CBRS"].set_index(keys)
    sweep = numbers("rho_sweep_minus_crs")
    for name, best, _ in sorted(best_rhos(), reverse=True):
        at_best = sweep[sweep["rho"] == best].set_index(keys)
        samplers = {
            "CBRS": of_cbrs,
            f"PRS, $\\rho = {trained[name]:g}$": of_prs,
            f"PRS, $\\rho = {best:g}$": at_best,
        }
        for sampler, rows in samplers.items():
            rows = rows.loc[name]
            yield {
                "stream": f"{STREAMS[name]}, {sizes[name]:.0f}:1",
                "minus CRS": sampler,
                "rare: mAP": with_ends(rows.loc["minority", "mAP"]),
                "frequent: C-F1": with_ends(rows.loc["majority", "C-F1"]),
                **{
                    f"all: {metric}": with_ends(rows.loc["overall", metric])
                    for metric in MAIN_METRICS
                },
                "seeds": str(rows["seeds"].iloc[0]),
            }


def with_ends(row: pd.Series) -> str:
    """Return a difference and the ends of its interval."""
    return f"{row['difference']:+.1f} [{row['low']:+.1f}, {row['high']:+.1f}]"


def difference_cells(rows: pd.DataFrame, group: str, than: str) -> dict[str, str]:
    """Return a row of PRS's differences from a method; bold where they are clear."""
    cells = {"PRS minus": than, "classes": "all" if group == "overall" else group}
    rows = rows[rows["group"] == group].set_index("metric")
    for metric in MAIN_METRICS:
        row = rows.loc[metric]
        text = with_ends(row)
        cells[metric] = f"**{text}**" if pd.notna(row["clearly"]) else text
    return cells


def costs() -> pd.DataFrame:
    """Return microseconds per sample, contestants by sizes of a batch, for 70 classes."""
    rows = numbers("samplers", "bench").query("memory == 2000")
    return rows.pivot(index="contestant", columns="batch", values="us")


def speeds() -> str:
    """Return what a sample costs in every sampler, and how often that goes into a peer's."""
    table = costs()
    rows = []
    for name, words in SAMPLERS.items():
        row = {"sampler": name}
        for batch, title in ((10, "batches of 10"), (1, "one at a time")):
            ours = table.loc[words["prslib"], batch]
            row[f"µs, {title}"] = f"{float(f'{ours:.2g}'):g}"
            for peer in words.get("peers", []):
                ratio = table.loc[peer, batch] / ours
                cell = f"{peer} {float(f'{ratio:.2g}'):,g}"
                before = row.get(f"times as long, {title}", "")
                row[f"times as long, {title}"] = f"{before}, {cell}".lstrip(", ")
        rows.append(row)
    return as_markdown(pd.DataFrame(rows).fillna(""))


def label_costs() -> str:
    """Return what a batch of 10 costs in each form of labels."""
    rows = numbers("labels", "bench")
    table = rows.pivot(index="labels", columns="sampler", values="us")
    table = table.loc[rows["labels"].unique()].map("{:.1f}".format)
    return as_markdown(table.add_suffix(", µs").reset_index())


def sampler_table() -> str:
    """Say what each sampler keeps, costs a sample and scores on real images."""
    each = numbers("main_results_groups_cocoseq-mini")
    means = each.groupby(["method", "group", "metric"])["value"].mean()
    rows = []
    for label, words in SAMPLERS.items():
        name = label.partition(",")[0]
        row = {"sampler": f"[{name}]({name.lower()}.md)", "keeps": words["keeps"]}
        time = costs().loc[words["prslib"], 10]
        row["µs per sample"] = f"{float(f'{time:.2g}'):g}"  # two digits, not 5.5e+02
        for column in ("overall mAP", "minority mAP", "majority C-F1"):
            row[column] = f"{means[(name, *column.split())]:.1f}"
        rows.append(row)
    return as_markdown(pd.DataFrame(rows))


WRITTEN: dict[str, Callable[[], str]] = {
    "main table": main_table,
    "ledger": ledger_counts,
    "all claims": all_claims,
    "findings": findings,
    "verdict": verdict,
    "questions": partial(by_question, README),
    "start": partial(by_question, START),
    "report": partial(by_question, REPORT),
    "samplers": sampler_table,
    "speeds": speeds,
    "label costs": label_costs,
    "when it pays": lambda: answers()["when_it_pays"],
}
ANSWER = "answer"  # of an article, below its question
BLOCK = re.compile(r"(<!-- ([\w ]+): begin -->\n).*?(<!-- \2: end -->)", re.DOTALL)
# code that a page shows: a file, or a function or method of it
CODE = re.compile(
    r"(<!-- code ([\w/.]+) ?([\w.]*): begin -->\n).*?(<!-- code: end -->)", re.DOTALL
)


def quoted(file: str, name: str = "") -> str:
    """Return a block with a file's code, or with that of one function or method."""
    text = (project_root() / file).read_text("utf-8")
    if name:
        nodes = ast.parse(text).body
        for step in name.split("."):
            node = next(n for n in nodes if getattr(n, "name", "") == step)
            nodes = getattr(node, "body", [])
        lines = text.splitlines()[node.lineno - 1 : node.end_lineno]
        text = textwrap.dedent("\n".join(lines))
    return f"```py\n# {file}\n{text.strip()}\n```"


def renewed() -> dict[Path, str]:
    """Return the files with numbers between markers, and their texts with new numbers."""
    root = project_root()
    pages = [root / "README.md", root / "notebooks" / "start.md"]
    pages += sorted(root.glob("docs/**/*.md"))
    texts = {page: page.read_text("utf-8") for page in pages}
    written = {name: write() for name, write in WRITTEN.items()}
    sentences = answers()

    def quote(block: re.Match) -> str:
        return f"{block[1]}{quoted(block[2], block[3])}\n{block[4]}"

    def renew(page: Path, text: str) -> str:
        answer = opening(sentences.get(page.stem, ""))

        def fill(block: re.Match) -> str:
            block_text = (written | {ANSWER: answer})[block[2]]
            return f"{block[1]}{block_text}\n{block[3]}"

        return CODE.sub(quote, BLOCK.sub(fill, text))

    return {page: renew(page, text) for page, text in texts.items()}


if __name__ == "__main__":
    for file, text in renewed().items():
        file.write_text(text, encoding="utf-8")
