"""Write the numbers of figures/seeds into README and docs, between markers."""

import json
import re
from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path

import pandas as pd

from prslib.experiments.cost import blanks_for_missing, steps_of
from prslib.paths import known_notebooks, project_root
from prslib.report import answers
from prslib.report.answers import STAND_IN_NOTE, in_three, listed, numbers
from prslib.report.articles import REPORTED
from prslib.report.claims import CLAIMS
from prslib.report.ledger import HEADLINES, account, as_markdown, counts
from prslib.report.tables import GROUPS, METRICS
from prslib.report.topics import runs_of

BESIDE = ("ExStream", "CBRS", "OCDM")  # samplers that balance the memory, too
# rows of the table of speeds: ours in bench/samplers.py and Avalanche's, which it ends
# with ", one piece" where Avalanche gets the whole stream
CONTESTANTS = {
    "CRS": ("CRS", "Avalanche reservoir"),
    "PRS": ("PRS", "PRS as an Avalanche buffer"),
    "CBRS": ("CBRS", "Avalanche class-balanced"),
    "OCDM": ("OCDM", ""),
    "GSS, gradients given": ("GSS, gradient products given", ""),
    "ExStream, features given": ("ExStream, features given", ""),
}


SPEEDS = {  # columns, and whose of `CONTESTANTS` they are
    "prslib": "{0}",
    "prslib, one batch": "{0}, one piece",
    "plain numpy": "{0} in plain numpy",
    "Avalanche": "{1}",
    "Avalanche, one batch": "{1}, one piece",
}
# what each sampler keeps, and its row among `CONTESTANTS`
KEEPS = {
    "CRS": ("every sample with the same chance", "CRS"),
    "PRS": ("class $i$ in proportion to $n_i^\\rho$", "PRS"),
    "CBRS": ("equal classes, each a reservoir", "CBRS"),
    "OCDM": ("the mix closest to $n_i^\\rho$, batch by batch", "OCDM"),
    "GSS": ("different gradients", "GSS, gradients given"),
    "ExStream": ("prototypes of features, equal classes", "ExStream, features given"),
}
# columns of a table of questions: patterns of a notebook's name, question and answer
README = {
    "question": "{question}",
    "answer": "{answer}",
    "read, run": "[article](docs/report/{name}.md), [notebook](notebooks/{name}.ipynb)",
}
REPORT = {"question": "[{question}]({name}.md)", "answer": "{answer}"}
START = {"question": "[{question}]({name}.ipynb)", "notebook": "`{name}`"}  # JupyterLab


def _scores() -> pd.DataFrame:
    """Return the main table's scores, each also as the text of a cell."""
    rows = numbers(REPORTED, "main_results_table")
    rows = rows[rows["measure"] == "score"]
    return rows.assign(cell=[_cell(row) for row in rows.to_dict("records")])


def _cell(row: dict) -> str:
    spread = "" if pd.isna(row["sd"]) else f" ± {row['sd']:.1f}"
    theirs = "" if pd.isna(row["published"]) else f" [{row['published']:.1f}]"
    return f"{row['mean']:.1f}{spread}{theirs}"


def main_table() -> str:
    """Return overall scores and each group's mAP."""
    columns = [*product(["overall"], METRICS), *product(GROUPS[:-1], ["mAP"])]
    head = " | ".join(f"{group} {metric}" for group, metric in columns)
    blocks = []
    scores = _scores()
    for (name, stands_for), rows in scores.groupby(
        ["dataset", "stands_for"], sort=False
    ):
        cells = rows.pivot(index="method", columns=["group", "metric"], values="cell")
        lines = [f"| {name} [{stands_for}] | {head} |"]
        lines.append("|---" * (len(columns) + 1) + "|")
        for method in rows["method"].unique():
            lines.append(f"| {method} | {' | '.join(cells.loc[method, columns])} |")
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def small_table() -> str:
    """Return each group's mAP on the first data set, of real images."""
    rows = _scores()
    rows = rows[
        (rows["dataset"] == rows["dataset"].iloc[0]) & (rows["metric"] == "mAP")
    ]
    rivals = rows[rows["method"] != "Multitask"]  # which sees all tasks at once
    best = rows.index.isin(rivals.groupby("group")["mean"].idxmax())
    cells = rows["cell"].mask(best, "**" + rows["cell"] + "**")
    table = rows.assign(cell=cells).pivot(index="method", columns="group")["cell"]
    table = table.loc[rows["method"].unique(), list(GROUPS)]
    return as_markdown(table.add_suffix(" mAP").rename_axis("").reset_index())


def ledger_counts() -> str:
    """Count the claims by verdict, real images apart from stand-ins."""
    claims = numbers(REPORTED, "ledger_claims")
    cells = numbers(REPORTED, "ledger_cells")
    said = [
        f"On {images}, of {row['rows']} rows {row['holds']} hold, "
        f"{row['does not hold']} do not, {row['no difference']} show no difference of "
        f"note and {row['undecided']} are undecided."
        for images, row in counts(claims).iterrows()
    ]
    run = (cells["status"] == "run").sum()
    return (
        f"{' '.join(said)} Of the paper's {len(cells)} numbers {run} have one of ours "
        "beside them."
    )


def headline_claims() -> str:
    """Return the effect and the verdict of `HEADLINES` on the first data set."""
    claims = numbers(REPORTED, "ledger_claims").set_index("claim", drop=False)
    claims = claims.loc[[name for name in HEADLINES if name in claims.index]]
    claims = claims[claims["dataset"] == claims["dataset"].iloc[0]]
    return _claims(claims, "data", "weakest cell", *METRICS, "seeds", "uncorrected")


def all_claims() -> str:
    """Return the effect and the verdict of every claim, a table for each question."""
    claims = numbers(REPORTED, "ledger_claims")
    questions = {name: claim.question or None for name, claim in CLAIMS.items()}
    of_claims = claims["claim"].map(pd.Series(questions).ffill())
    asked = claims.groupby(of_claims, sort=False)
    return "\n\n".join(f"### {name}\n\n{_claims(rows)}" for name, rows in asked)


def _claims(rows: pd.DataFrame, *without: str) -> str:
    texts = ["dataset", "data", "weakest"]
    table = account(rows.assign(**rows[texts].fillna("")))
    table = table.rename(columns={"effect": "ours [95 % interval]"})
    table["claim"] = table["claim"].mask(table["claim"].duplicated(), "")
    return as_markdown(table.drop(columns=["where", *without]))


def findings() -> str:
    """Say what PRS buys and costs, and its worth beside later samplers; three metrics.

    The sentences are about the first data set, of real images. The table below them
    has all differences with their intervals.
    """
    than_crs = numbers(REPORTED, "main_results_prs_minus_crs")
    others = numbers(REPORTED, "main_results_prs_minus_others")
    real = than_crs["dataset"].iloc[0]
    of_crs = than_crs[than_crs["dataset"] == real]
    others = others[(others["dataset"] == real) & (others["group"] == "overall")]
    beside = {name: others[others["than"] == name] for name in BESIDE}
    alike = [name for name, gaps in beside.items() if gaps["clearly"].isna().all()]
    apart = [name for name in BESIDE if name not in alike]
    of_others = [in_three(beside[name], "overall", name) for name in apart]
    if alike:
        of_others.append(
            f"PRS scores about the same as {listed(alike)}: they do not differ "
            f"clearly in {listed(METRICS)}."
        )
    groups = ("minority", "overall")
    said = {
        "What PRS buys": " ".join(in_three(of_crs, g, "CRS") for g in groups),
        "What it costs": in_three(of_crs, "majority", "CRS"),
        f"Beside {listed(BESIDE)}": " ".join(of_others),
    }
    lines = [f"- **{head}.** {text}" for head, text in said.items()]
    rows = [_difference_cells(of_crs, group, "CRS") for group in GROUPS]
    rows += [_difference_cells(gaps, "overall", n) for n, gaps in beside.items()]
    return "\n".join([*lines, "", as_markdown(pd.DataFrame(rows))])


def _difference_cells(rows: pd.DataFrame, group: str, than: str) -> dict[str, str]:
    """Return a row of PRS's differences from a method; bold where they are clear."""
    cells = {"PRS minus": than, "classes": "all" if group == "overall" else group}
    rows = rows[rows["group"] == group].set_index("metric")
    for metric in METRICS:
        row = rows.loc[metric]
        text = f"{row['difference']:+.1f} [{row['low']:+.1f}, {row['high']:+.1f}]"
        cells[metric] = f"**{text}**" if pd.notna(row["clearly"]) else text
    return cells


def _title(name: str) -> str:
    """Return the question of a notebook, which is its title."""
    file = project_root() / "notebooks" / f"{name}.ipynb"
    cells = json.loads(file.read_text(encoding="utf-8"))["cells"]
    return "".join(cells[0]["source"]).splitlines()[0].lstrip("# ")


def by_question(columns: dict[str, str]) -> str:
    """Return a table with a row a notebook; its columns are patterns."""
    said = answers.answers()
    rows = []
    for name in answers.ORDER:
        words = {"name": name, "question": _title(name), "answer": said[name]}
        rows.append({key: text.format(**words) for key, text in columns.items()})
    table = as_markdown(pd.DataFrame(rows))
    return f"{table}\n\n{STAND_IN_NOTE}" if "answer" in columns else table


def _rates() -> pd.Series:
    """Return how many samples of COCOseq's labels each contestant takes a second."""
    rows = numbers("bench", "samplers")
    rows = rows[rows["stream"] == "cocoseq"]
    return rows.set_index("contestant")["samples_per_s"]


def speeds() -> str:
    """Return how many samples a second every sampler takes on COCOseq's labels."""
    rates = {name: f"{float(f'{rate:.2g}'):,.0f}" for name, rate in _rates().items()}
    rows = []
    for name, contestants in CONTESTANTS.items():
        row = {"samples/s": name}
        for column, pattern in SPEEDS.items():
            row[column] = rates.get(pattern.format(*contestants), "")
        rows.append(row)
    return as_markdown(pd.DataFrame(rows))


def sampler_table() -> str:
    """Say what each sampler keeps, costs a sample and scores on real images."""
    rates, scores = _rates(), _scores()
    scores = scores[scores["dataset"] == scores["dataset"].iloc[0]]
    means = scores.set_index(["method", "group", "metric"])["mean"]
    columns = [("overall", "mAP"), ("minority", "mAP"), ("majority", "C-F1")]
    rows = []
    for name, (keeps, contestant) in KEEPS.items():
        row = {"sampler": f"[{name}]({name.lower()}.md)", "keeps": keeps}
        time = 1e6 / rates[CONTESTANTS[contestant][0]]
        row["µs a sample"] = f"{float(f'{time:.2g}'):g}"  # two digits, not 5.5e+02
        row |= {" ".join(key): f"{means[name, *key]:.1f}" for key in columns}
        rows.append(row)
    return as_markdown(pd.DataFrame(rows))


def paper_cost() -> str:
    """Count the runs and training steps of the paper profile."""
    with blanks_for_missing():
        configs = {
            config.hash: config
            for name in known_notebooks("paper")
            for config in runs_of("paper", name)
        }
        longest = {"a ResNet-101": Counter(), "small networks": Counter()}
        for config in configs.values():
            large = "resnet101" in config.resolved["model"]
            steps = longest["a ResNet-101" if large else "small networks"]
            steps[config.training] = max(steps[config.training], steps_of(config))
    millions = {name: f"{steps.total() / 1e6:.2f}" for name, steps in longest.items()}
    return (
        f"The paper profile needs {len(configs)} runs: {millions['a ResNet-101']} "
        f"million training steps of a ResNet-101 and {millions['small networks']} "
        "million of small networks."
    )


WRITTEN: dict[str, Callable[[], str]] = {
    "main table": main_table,
    "small table": small_table,
    "ledger": ledger_counts,
    "claims": headline_claims,
    "all claims": all_claims,
    "findings": findings,
    "questions": partial(by_question, README),
    "start": partial(by_question, START),
    "report": partial(by_question, REPORT),
    "samplers": sampler_table,
    "speeds": speeds,
    "paper cost": paper_cost,
}
BLOCK = re.compile(r"(<!-- ([\w ]+): begin -->\n).*?(<!-- \2: end -->)", re.DOTALL)


def files() -> list[Path]:
    """Return the files with numbers between markers."""
    root = project_root()
    pages = [root / "README.md", root / "notebooks" / "start.md"]
    return [*pages, *sorted(root.glob("docs/**/*.md"))]


def stale() -> dict[Path, str]:
    """Return the files that differ from `WRITTEN` between their markers, and their texts."""
    texts = {file: file.read_text(encoding="utf-8") for file in files()}
    blocks = {name for text in texts.values() for _, name, _ in BLOCK.findall(text)}
    if wrong := sorted(blocks ^ WRITTEN.keys()):
        raise ValueError(
            f"expected the markers <!-- {wrong[0]}: begin --> and "
            f"<!-- {wrong[0]}: end --> in README.md or docs/ if they are among "
            f"{', '.join(WRITTEN)}, and only then"
        )
    written = {name: write() for name, write in WRITTEN.items()}
    fill = lambda block: f"{block[1]}{written[block[2]]}\n{block[3]}"  # noqa: E731
    renewed = {file: BLOCK.sub(fill, text) for file, text in texts.items()}
    return {file: text for file, text in renewed.items() if text != texts[file]}


def renew() -> None:
    """Write the files of `stale`; on an error nothing."""
    for file, text in stale().items():
        file.write_text(text, encoding="utf-8")
