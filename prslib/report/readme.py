"""Write the numbers of figures/seeds into README and docs, between markers."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from itertools import product
from pathlib import Path

import pandas as pd

from prslib.experiments.cost import blanks_for_missing, steps_of
from prslib.paths import figures_dir, known_notebooks, project_root
from prslib.report.articles import REPORTED
from prslib.report.claims import CLAIMS
from prslib.report.ledger import HEADLINES, account, as_markdown, counts
from prslib.report.observations import RELATIONS, relation
from prslib.report.tables import GROUPS, METRICS
from prslib.report.topics import runs_of

# the notebooks in the order of their questions
ORDER = (
    *("walkthrough", "main_results", "precision_recall", "memory_distribution"),
    *("rho_sweep", "tail_forgetting", "inter_task", "schedules_and_memory"),
    *("imbalanced_test", "feature_tsne", "gradient_variance", "architectures"),
    *("pretraining", "single_label", "deviations", "datasets", "ledger"),
)
STAND_IN = "†"
STAND_IN_NOTE = (
    f"{STAND_IN} on a stand-in made of handwritten digits; the other numbers are from "
    "real COCO images."
)
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


def _numbers(folder: str, name: str) -> pd.DataFrame:
    file = figures_dir(folder) / f"{name}.csv"
    if not file.is_file():
        make = "make bench" if folder == "bench" else f"make figures PROFILE={folder}"
        raise FileNotFoundError(
            f"expected {file}, from which README and docs take numbers, it is not "
            f"there; run `{make}` first"
        )
    return pd.read_csv(file)


def main_table() -> str:
    """Return overall scores and each group's mAP."""
    cells = _numbers(REPORTED, "main_results_table")
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
    cells = _numbers(REPORTED, "main_results_table")
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
        _numbers(REPORTED, "ledger_claims"),
        _numbers(REPORTED, "ledger_cells"),
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
    claims = _numbers(REPORTED, "ledger_claims").set_index("claim", drop=False)
    claims = claims.loc[[name for name in HEADLINES if name in claims.index]]
    claims = claims[claims["dataset"] == claims["dataset"].iloc[0]]
    return _claims(claims, "data", "weakest cell", *METRICS, "seeds", "uncorrected")


def all_claims() -> str:
    """Return the effect and the verdict of every claim, a table for each question."""
    claims = _numbers(REPORTED, "ledger_claims")
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
    than_crs = _numbers(REPORTED, "main_results_prs_minus_crs")
    others = _numbers(REPORTED, "main_results_prs_minus_others")
    real = than_crs["dataset"].iloc[0]
    of_crs = than_crs[than_crs["dataset"] == real]
    others = others[(others["dataset"] == real) & (others["group"] == "overall")]
    beside = {name: others[others["than"] == name] for name in BESIDE}
    alike = [name for name, gaps in beside.items() if gaps["clearly"].isna().all()]
    apart = [name for name in BESIDE if name not in alike]
    of_others = [in_three(beside[name], "overall", name) for name in apart]
    if alike:
        of_others.append(
            f"PRS scores about the same as {_listed(alike)}: they do not differ "
            f"clearly in {_listed(METRICS)}."
        )
    groups = ("minority", "overall")
    said = {
        "What PRS buys": " ".join(in_three(of_crs, g, "CRS") for g in groups),
        "What it costs": in_three(of_crs, "majority", "CRS"),
        f"Beside {_listed(BESIDE)}": " ".join(of_others),
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


def in_three(rows: pd.DataFrame, group: str, than: str) -> str:
    """Say PRS's differences from another method in C-F1, O-F1 and mAP of one group."""
    rows = rows[(rows["group"] == group) & rows["metric"].isin(METRICS)]
    before, after = "", f" on the {group} classes"
    if group == "overall":
        before, after = "overall ", ""
    clear = rows["clearly"].notna()
    said = [
        in_words(row, f"{before}{row['metric']}{after}", than)
        for row in rows[clear].to_dict("records")
    ]
    if not clear.all():
        names = _listed(rows.loc[~clear, "metric"])
        said.append(f"PRS and {than} do not differ clearly in {before}{names}{after}.")
    return " ".join(said)


def _listed(names: Iterable[str]) -> str:
    """Return "C-F1, O-F1 and mAP"."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def in_words(row: dict, what: str, than: str = "CRS", method: str = "PRS") -> str:
    """Say a difference of two methods with its interval."""
    gap, low, high = row.get("difference", row.get("effect")), row["low"], row["high"]
    if not (low > 0 or high < 0):
        return (
            f"{method} and {than} do not differ clearly in {what}: {gap:+.1f} points "
            f"{_interval(low, high, '+')}."
        )
    verb, against = ("gains", "over") if gap > 0 else ("loses", "against")
    ends = sorted(abs(end) for end in (low, high))
    return (
        f"{method} {verb} {abs(gap):.1f} points of {what} {against} {than} "
        f"{_interval(*ends)}."
    )


def _interval(low: float, high: float, sign: str = "") -> str:
    if pd.isna(low):
        return "(one seed)"
    return f"(95 % interval {low:{sign}.1f} to {high:{sign}.1f})"


def answers(profile: str = REPORTED) -> dict[str, str]:
    """Answer each notebook's question in at most 20 words, from a profile's tables."""
    claims = _numbers(profile, "ledger_claims").drop_duplicates("claim")
    claims = claims.set_index("claim")  # each on its first data set
    lead = partial(_lead, profile)
    overall = {"group": "overall", "metric": "mAP"}
    rare = overall | {"group": "minority"}
    common = {"group": "majority", "metric": "C-R"}
    texts = {
        "walkthrough": "It lets samples of rare classes in, and removes one from a "
        "class above its quota.",
        "main_results": lead(
            "main_results_prs_minus_crs", "mAP on the minority classes", rare
        ),
        "precision_recall": lead(
            "precision_recall_prs_minus_crs", "recall on the majority classes", common
        ),
        "memory_distribution": _of_claim(
            claims.loc["prs_balances"],
            "PRS's memory is {} points nearer to {} {}.",
            ("balance than to the stream", "the stream than to balance"),
            "PRS's memory is about as near to balance as to the stream: {} points {}.",
        ),
        "rho_sweep": _of_claim(
            claims.loc["rho_ends"],
            "In its weakest metric, rho near 0 is {} points {} the ends {}.",
            ("above", "below"),
            "Undecided: in its weakest metric, rho near 0 leads the ends by {} points {}.",
        ),
        "tail_forgetting": _of_claim(
            claims.loc["tail_crs"],
            "CRS forgets {} points {} of the minority's best mAP than of the "
            "majority's {}.",
            ("more", "less"),
            "CRS forgets about the same share of minority and majority: {} points {}.",
        ),
        "inter_task": lead("inter_task_prs_minus_others", "mAP on that task", overall),
        "schedules_and_memory": _weakest(
            profile,
            "schedules_and_memory_schedules_prs_minus_crs",
            ("In every task order", "In one order"),
        ),
        "imbalanced_test": lead(
            "imbalanced_test_prs_minus_others", "mAP on that set", overall
        ),
        "feature_tsne": _said(
            claims.loc["features"], "minority nearest-neighbour accuracy"
        ),
        "gradient_variance": _of_claim(
            claims.loc["variance_crs"],
            "The gradient over PRS's memory varies {} % {} than over CRS's {}.",
            ("more", "less"),
            "The gradient's variance over both memories does not differ clearly: {} "
            "% {}.",
        ),
        "architectures": _weakest(
            profile,
            "architectures_prs_minus_crs",
            ("With every network", "With one network"),
        ),
        "pretraining": _weakest(
            profile,
            "pretraining_prs_minus_crs",
            ("From all initial weights", "From some weights"),
        ),
        "single_label": _said(claims.loc["single_crs"], "accuracy"),
        "deviations": _cost_of_shortcuts(profile),
        "datasets": _largest_fifth(claims.loc["largest_fifth"]),
        "ledger": _tally(profile),
    }
    return {name: texts[name] for name in ORDER}


def _lead(profile: str, table: str, what: str, where: dict[str, str]) -> str:
    """Say PRS's difference from CRS in one place, on the first data set."""
    rows = _numbers(profile, table)
    for name, value in (where | {"than": "CRS"}).items():
        rows = rows[rows[name] == value] if name in rows else rows
    return _said(rows.iloc[0], what)


def _said(row: pd.Series, what: str) -> str:
    return _marked(in_words(row.to_dict(), what), row)


def _marked(text: str, row: pd.Series) -> str:
    """Mark an answer that a stand-in gave."""
    return text + STAND_IN * (relation(row["dataset"]) == RELATIONS[-1])


def _weakest(profile: str, table: str, places: tuple[str, str]) -> str:
    """Say PRS's smallest difference from CRS in overall mAP, on the first data set."""
    rows = _numbers(profile, table)
    rows = rows[(rows["group"] == "overall") & (rows["metric"] == "mAP")]
    rows = rows[rows["dataset"] == rows["dataset"].iloc[0]]
    row = rows.loc[rows["difference"].idxmin()]
    everywhere, worst = places
    text = _said(row, "mAP")
    if row["low"] > 0:
        return f"{everywhere} {text.replace('gains', 'gains at least')}"
    return f"{worst} {text}"


def _of_claim(row: pd.Series, clear: str, words: tuple[str, str], unclear: str) -> str:
    """Say a claim's effect and interval, with the word for its direction."""
    effect, low, high = row["effect"], row["low"], row["high"]
    if not (low > 0 or high < 0):
        text = unclear.format(f"{effect:+.1f}", _interval(low, high, "+"))
        return _marked(text, row)
    ends = sorted(abs(end) for end in (low, high))
    way = words[int(effect < 0)]
    text = clear.format(f"{abs(effect):.1f}", way, _interval(*ends))
    return _marked(text, row)


def _cost_of_shortcuts(profile: str) -> str:
    """Say the largest loss of a deviation against PRS."""
    files = sorted(figures_dir(profile).glob("deviations_costs_*.csv"))
    rows = pd.concat([pd.read_csv(file) for file in files])
    rows = rows[(rows["group"] == "overall") & (rows["metric"] == "mAP")]
    row = rows.loc[rows["difference"].idxmin()]
    name = f"The costliest shortcut, {row['deviation']},"
    return _marked(in_words(row.to_dict(), "mAP", "PRS", name), row)


def _largest_fifth(row: pd.Series) -> str:
    """Say which share of the labels the largest fifth of the classes has."""
    share, low, high = (50 + row[name] for name in ("effect", "low", "high"))
    text = f"The largest fifth of the classes has {share:.1f} % of the stream's labels"
    text += f" {_interval(low, high)}." if high - low > 0.1 else "."
    return _marked(text, row)


def _tally(profile: str) -> str:
    """Count the claims that hold on real images, or else on stand-ins."""
    total = counts(_numbers(profile, "ledger_claims"))
    row = total.iloc[0]
    return (
        f"On {total.index[0]}, of {row['rows']} claims {row['holds']} hold and "
        f"{row['does not hold']} do not; the others are undecided or show no "
        "difference."
    )


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
    rows = _numbers("bench", "samplers")
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
    speeds = _numbers("bench", "samplers")
    speeds = speeds[speeds["stream"] == "cocoseq"].set_index("contestant")[
        "samples_per_s"
    ]
    scores = _numbers(REPORTED, "main_results_table")
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
