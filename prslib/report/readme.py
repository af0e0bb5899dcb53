"""Write the numbers of figures/seeds into README and docs, between markers."""

import json
import re
from collections import Counter
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pandas as pd

from prslib.experiments.cost import blanks_for_missing, steps_of
from prslib.paths import known_notebooks, project_root
from prslib.report.answers import (
    ORDER,
    STAND_IN_NOTE,
    answers,
    in_three,
    listed,
    numbers,
)
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


def main_table() -> str:
    """Return overall scores and each group's mAP."""
    cells = numbers(REPORTED, "main_results_table")
    cells = cells[cells["measure"] == "score"]
    columns = [*product(["overall"], METRICS), *product(GROUPS[:-1], ["mAP"])]
    blocks = []
    for (name, stands_for), scores in cells.groupby(
        ["dataset", "stands_for"], sort=False
    ):
        scores = scores.set_index(["method", "group", "metric"])
        head = " | ".join(f"{group} {metric}" for group, metric in columns)
        lines = [
            f"| {name} [{stands_for}] | {head} |",
            "|---" * (len(columns) + 1) + "|",
        ]
        for method in scores.index.unique("method"):
            row = [_cell(scores.loc[(method, *column)]) for column in columns]
            lines.append(f"| {method} | " + " | ".join(row) + " |")
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def small_table() -> str:
    """Return each group's mAP on the first data set, of real images."""
    cells = numbers(REPORTED, "main_results_table")
    cells = cells[cells["dataset"] == cells["dataset"].iloc[0]]
    cells = cells[(cells["measure"] == "score") & (cells["metric"] == "mAP")]
    rivals = cells[cells["method"] != "Multitask"]  # which sees all tasks at once
    best = rivals.loc[rivals.groupby("group")["mean"].idxmax()].index
    texts = [
        f"**{_cell(row)}**" if i in best else _cell(row) for i, row in cells.iterrows()
    ]
    table = cells.assign(cell=texts).pivot(
        index="method", columns="group", values="cell"
    )
    table = table.loc[cells["method"].unique(), list(GROUPS)]
    return as_markdown(table.add_suffix(" mAP").rename_axis("").reset_index())


def _cell(row: pd.Series) -> str:
    spread = "" if pd.isna(row["sd"]) else f" ± {row['sd']:.1f}"
    theirs = "" if pd.isna(row["published"]) else f" [{row['published']:.1f}]"
    return f"{row['mean']:.1f}{spread}{theirs}"


def ledger_counts() -> str:
    """Count the claims by verdict, real images apart from stand-ins."""
    claims, cells = (
        numbers(REPORTED, "ledger_claims"),
        numbers(REPORTED, "ledger_cells"),
    )
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
    questions = pd.Series(
        {name: claim.question or None for name, claim in CLAIMS.items()}
    )
    asked = claims.groupby(claims["claim"].map(questions.ffill()), sort=False)
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


def questions() -> str:
    """Return each question, its answer, and links to the article and the notebook."""
    said = answers()
    links = "[article](docs/report/{0}.md), [notebook](notebooks/{0}.ipynb)"
    rows = [[_title(name), said[name], links.format(name)] for name in ORDER]
    table = pd.DataFrame(rows, columns=["question", "answer", "read, run"])
    return f"{as_markdown(table)}\n\n{STAND_IN_NOTE}"


def start() -> str:
    """Return each question with a link to its notebook, for JupyterLab."""
    rows = [[f"[{_title(name)}]({name}.ipynb)", f"`{name}`"] for name in ORDER]
    return as_markdown(pd.DataFrame(rows, columns=["question", "notebook"]))


def report() -> str:
    """Return each question with a link to its article, and the answer."""
    said = answers()
    rows = [[f"[{_title(name)}]({name}.md)", said[name]] for name in ORDER]
    table = pd.DataFrame(rows, columns=["question", "answer"])
    return f"{as_markdown(table)}\n\n{STAND_IN_NOTE}"


def speeds() -> str:
    """Return how many samples a second every sampler takes on COCOseq's labels."""
    rows = numbers("bench", "samplers")
    rates = rows[rows["stream"] == "cocoseq"].set_index("contestant")["samples_per_s"]
    cells = {
        contestant: f"{float(f'{rate:.2g}'):,.0f}" for contestant, rate in rates.items()
    }
    peers = ["plain numpy", "Avalanche", "Avalanche, one batch"]
    rows = []
    for name, (ours, peer) in CONTESTANTS.items():
        whole = f"{ours}, one piece"
        of = (ours, whole, f"{ours} in plain numpy", peer, f"{peer}, one piece")
        rows.append([name, *(cells.get(contestant, "") for contestant in of)])
    columns = ["samples/s", "prslib", "prslib, one batch", *peers]
    return as_markdown(pd.DataFrame(rows, columns=columns))


KEEPS = {
    "CRS": "every sample with the same chance",
    "PRS": "class $i$ in proportion to $n_i^\\rho$",
    "CBRS": "equal classes, each a reservoir",
    "OCDM": "the mix closest to $n_i^\\rho$, batch by batch",
    "GSS": "different gradients",
    "ExStream": "prototypes of features, equal classes",
}


def sampler_table() -> str:
    """Say what each sampler keeps, costs a sample and scores on real images."""
    speeds = numbers("bench", "samplers")
    speeds = speeds[speeds["stream"] == "cocoseq"].set_index("contestant")[
        "samples_per_s"
    ]
    scores = numbers(REPORTED, "main_results_table")
    scores = scores[scores["dataset"] == scores["dataset"].iloc[0]]
    scores = scores[scores["measure"] == "score"].set_index(
        ["method", "group", "metric"]
    )["mean"]
    columns = [("overall", "mAP"), ("minority", "mAP"), ("majority", "C-F1")]
    rows = []
    for name, keeps in KEEPS.items():
        (contestant,) = [
            ours for ours, _ in CONTESTANTS.values() if ours.split(",")[0] == name
        ]
        row = {"sampler": f"[{name}]({name.lower()}.md)", "keeps": keeps}
        row["µs a sample"] = f"{1e6 / speeds[contestant]:.2g}"
        row |= {" ".join(key): f"{scores[name, *key]:.1f}" for key in columns}
        rows.append(row)
    return as_markdown(pd.DataFrame(rows))


def paper_cost() -> str:
    """Count the runs and training steps of the paper profile."""
    runs, steps = set(), {True: Counter(), False: Counter()}
    with blanks_for_missing():
        for name in known_notebooks("paper"):
            for config in runs_of("paper", name):
                runs.add(config.hash)
                trained = steps["resnet101" in config.resolved["model"]]
                trained[config.training] = max(
                    trained[config.training], steps_of(config)
                )
    large, small = (sum(steps[is_large].values()) / 1e6 for is_large in (True, False))
    return (
        f"The paper profile needs {len(runs)} runs: {large:.2f} million training steps "
        f"of a ResNet-101 and {small:.2f} million of small networks."
    )


WRITTEN: dict[str, Callable[[], str]] = {
    "main table": main_table,
    "small table": small_table,
    "ledger": ledger_counts,
    "claims": headline_claims,
    "all claims": all_claims,
    "findings": findings,
    "questions": questions,
    "start": start,
    "report": report,
    "samplers": sampler_table,
    "speeds": speeds,
    "paper cost": paper_cost,
}
BLOCK = re.compile(r"(<!-- ([\w ]+): begin -->\n).*?(<!-- \2: end -->)", re.DOTALL)


def files() -> list[Path]:
    """Return the files with numbers between markers."""
    root = project_root()
    return [
        root / "README.md",
        root / "notebooks" / "start.md",
        *sorted(root.glob("docs/**/*.md")),
    ]


def renewed() -> dict[Path, str]:
    """Return the files of `files` with all of `WRITTEN` between their markers."""
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
    return {file: BLOCK.sub(fill, text) for file, text in texts.items()}


def renew() -> None:
    """Write `renewed`; on an error nothing."""
    for file, text in renewed().items():
        file.write_text(text, encoding="utf-8")


def stale() -> list[str]:
    """Name the files that `renew` would change."""
    return [
        str(file.relative_to(project_root()))
        for file, text in renewed().items()
        if file.read_text(encoding="utf-8") != text
    ]
