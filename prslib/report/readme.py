"""Write the numbers of figures/seeds into README and docs, between markers."""

import json
import re
from collections import Counter
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pandas as pd

from prslib.experiments.cost import blanks_for_missing, steps_of
from prslib.paths import figures_dir, known_notebooks, project_root
from prslib.report.claims import CLAIMS
from prslib.report.ledger import HEADLINES, account, as_markdown, counts
from prslib.report.tables import GROUPS, METRICS
from prslib.report.topics import runs_of

REPORTED = "seeds"  # the profile with the most seeds on data that everyone has
# the notebooks in the order of their questions
ORDER = (
    *("walkthrough", "main_results", "precision_recall", "memory_distribution"),
    *("rho_sweep", "tail_forgetting", "inter_task", "schedules_and_memory"),
    *("imbalanced_test", "feature_tsne", "gradient_variance", "architectures"),
    *("pretraining", "single_label", "deviations", "datasets", "ledger"),
)
BESIDE = ("CBRS", "ExStream", "OCDM")  # samplers that balance the memory, too
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
    for (name, stands_for), part in cells.groupby(
        ["dataset", "stands_for"], sort=False
    ):
        part = part.set_index(["method", "group", "metric"])
        head = " | ".join(f"{group} {metric}" for group, metric in columns)
        lines = [
            f"| {name} [{stands_for}] | {head} |",
            "|---" * (len(columns) + 1) + "|",
        ]
        for method in part.index.unique("method"):
            row = [_cell(part.loc[(method, *column)]) for column in columns]
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
    found = [
        f"**{_cell(row)}**" if i in best else _cell(row) for i, row in cells.iterrows()
    ]
    table = cells.assign(cell=found).pivot(
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
        f"{row['does not hold']} do not, {row['no difference']} show no difference of note "
        f"and {row['undecided']} are undecided."
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
    return _claims(claims[claims["dataset"] == claims["dataset"].iloc[0]], "data")


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
    """Say what PRS buys, what it costs and what it is worth beside later samplers."""
    than_crs = _numbers(REPORTED, "main_results_prs_minus_crs")
    others = _numbers(REPORTED, "main_results_prs_minus_others")
    fewer = _numbers(REPORTED, "main_results_by_images")
    real, *stand_ins = than_crs["dataset"].unique()
    of_crs = than_crs[than_crs["dataset"] == real]
    gains = [
        in_three(of_crs, group, "CRS") for group in ("minority", "moderate", "overall")
    ]
    said = {
        f"What it buys, on `{real}`": " ".join(gains),
        "What it costs": in_three(of_crs, "majority", "CRS"),
    }
    of_others = others[(others["dataset"] == real) & (others["group"] == "overall")]
    for name in BESIDE:
        rows = of_others[of_others["than"] == name]
        said[f"Beside {name}"] = in_three(rows, "overall", name)
    fewer = fewer[fewer["clearly"].notna() & (fewer["dataset"] != real)]
    lines = [
        f"{row['images']} images, {row['group']}: {in_words(row, row['metric'])}"
        for row in fewer.to_dict("records")
    ]
    said["With fewer images"] = " ".join(lines) or "No clear difference from CRS."
    for name in stand_ins:
        rows = than_crs[than_crs["dataset"] == name]
        said[f"On the stand-in `{name}`"] = in_three(rows, "overall", "CRS")
    return "\n".join(f"- **{head}.** {text}" for head, text in said.items())


def in_three(rows: pd.DataFrame, group: str, than: str) -> str:
    """Say PRS's differences from another method in C-F1, O-F1 and mAP of one group."""
    rows = rows[(rows["group"] == group) & rows["metric"].isin(METRICS)]
    place = "" if group == "overall" else f" on the {group} classes"
    clear = [
        in_words(row, f"{row['metric']}{place}", than)
        for row in rows[rows["clearly"].notna()].to_dict("records")
    ]
    unclear = [
        f"{row.metric} ({row.low:+.1f} to {row.high:+.1f})"
        for row in rows[rows["clearly"].isna()].itertuples()
    ]
    if unclear:
        clear += [f"No clear difference from {than}{place} in {', '.join(unclear)}."]
    return " ".join(clear)


def in_words(row: dict, what: str, than: str = "CRS", method: str = "PRS") -> str:
    """Say a difference of two methods with its interval."""
    gap, low, high = row.get("difference", row.get("effect")), row["low"], row["high"]
    if low <= 0 <= high:
        return (
            f"{method} and {than} do not differ clearly in {what}: {gap:+.1f} points "
            f"(95 % interval {low:+.1f} to {high:+.1f})."
        )
    verb, against = ("gains", "over") if gap > 0 else ("loses", "against")
    low, high = sorted(abs(end) for end in (low, high))
    return (
        f"{method} {verb} {abs(gap):.1f} points of {what} {against} {than} "
        f"(95 % interval {low:.1f} to {high:.1f})."
    )


def answers(profile: str = REPORTED) -> dict[str, str]:
    """Answer each notebook's question in one sentence, from the profile's tables."""

    def difference(table: str, what: str, than: str = "CRS", **where: str) -> str:
        rows = _numbers(profile, table)
        for name, value in where.items():
            rows = rows[rows[name] == value]
        return in_words(rows.iloc[0].to_dict(), what, than)

    claims = _numbers(profile, "ledger_claims").set_index("claim")

    def claim(name: str, text: str) -> str:
        row = claims.loc[[name]].iloc[0]
        digits = 2 if row["unit"] == "rank correlation" else 1
        numbers = {k: f"{row[k]:.{digits}f}" for k in ("effect", "low", "high")}
        return f"{text.format(**numbers)}: {row['verdict']}."

    weak = "weakest lead over CRS {effect} points [{low}, {high}]"
    large = {"group": "overall", "metric": "mAP"}
    total = counts(_numbers(profile, "ledger_claims")).iloc[0]
    fifth = claims.loc[["largest_fifth"], "effect"].iloc[0]
    texts = {
        "walkthrough": "It compares its classes with their quotas, lets rare ones in and "
        "removes from the most overfull.",
        "main_results": difference("main_results_prs_minus_crs", "mAP", **large),
        "precision_recall": difference(
            "precision_recall_prs_minus_crs",
            "majority recall (C-R)",
            group="majority",
            metric="C-R",
        ),
        "memory_distribution": claim(
            "prs_balances",
            "PRS's memory is {effect} points nearer to balance than to the stream "
            "[{low}, {high}]",
        ),
        "rho_sweep": claim(
            "rho_ends",
            "Lead of rho near 0 over its ends {effect} points [{low}, {high}]",
        ),
        "tail_forgetting": claim(
            "tail_crs",
            "CRS forgets {effect} % more of the minority's best mAP [{low}, {high}]",
        ),
        "inter_task": difference(
            "inter_task_prs_minus_others", "mAP", than="CRS", **large
        ),
        "schedules_and_memory": claim("schedules_crs", f"In every order, {weak}"),
        "imbalanced_test": difference(
            "imbalanced_test_prs_minus_others", "mAP", than="CRS", **large
        ),
        "feature_tsne": claim(
            "features",
            "Nearest neighbours, minority: {effect} points more right than CRS "
            "[{low}, {high}]",
        ),
        "gradient_variance": claim(
            "variance_crs",
            "PRS's gradient varies {effect} % more than CRS's [{low}, {high}]",
        ),
        "architectures": claim("architectures_crs", f"On every network, {weak}"),
        "pretraining": difference("pretraining_prs_minus_crs", "mAP", **large),
        "single_label": claim(
            "single_crs",
            "PRS's accuracy is {effect} points above CRS's [{low}, {high}]",
        ),
        "deviations": _cost_of_shortcuts(profile),
        "datasets": f"The largest fifth of the classes has {50 + fifth:.1f} % of the labels.",
        "ledger": f"On real images {total['holds']} of {total['rows']} claims hold, "
        f"{total['does not hold']} do not.",
    }
    return {name: texts[name] for name in ORDER}


def _cost_of_shortcuts(profile: str) -> str:
    """Say the largest clear loss of a deviation from PRS."""
    files = sorted(figures_dir(profile).glob("deviations_costs_*.csv"))
    rows = pd.concat([pd.read_csv(file) for file in files])
    rows = rows[(rows["group"] == "overall") & (rows["metric"] == "mAP")]
    row = rows.loc[rows["difference"].idxmin()].to_dict()
    name = row["deviation"]
    return in_words(row, "mAP", "PRS", name[0].upper() + name[1:])


def questions(link: str = "notebooks/{}.ipynb") -> str:
    """Return the notebooks and what each asks, which is its title, in `ORDER`."""
    rows = []
    for name in ORDER:
        text = (project_root() / "notebooks" / f"{name}.ipynb").read_text(
            encoding="utf-8"
        )
        title = (
            "".join(json.loads(text)["cells"][0]["source"]).splitlines()[0].lstrip("# ")
        )
        rows.append([f"[{title}]({link.format(name)})", f"`{name}`"])
    return as_markdown(pd.DataFrame(rows, columns=["question", "notebook"]))


def speeds() -> str:
    """Return how many samples a second every sampler takes on COCOseq's labels."""
    rows = _numbers("bench", "samplers")
    rates = rows[rows["stream"] == "cocoseq"].set_index("contestant")["samples_per_s"]
    cells = {
        contestant: f"{float(f'{rate:.2g}'):,.0f}" for contestant, rate in rates.items()
    }
    peers = ["plain numpy", "Avalanche", "Avalanche, in one piece"]
    found = []
    for name, (ours, peer) in CONTESTANTS.items():
        whole = f"{ours}, one piece"
        of = (ours, whole, f"{ours} in plain numpy", peer, f"{peer}, one piece")
        found.append([name, *(cells.get(contestant, "") for contestant in of)])
    columns = ["samples/s", "prslib", "prslib, in one piece", *peers]
    return as_markdown(pd.DataFrame(found, columns=columns))


KEEPS = {
    "CRS": "every sample with the same chance",
    "PRS": "class $i$ in proportion to $n_i^\\rho$",
    "CBRS": "equal classes, each a reservoir",
    "OCDM": "the mix closest to $n_i^\\rho$, batch by batch",
    "GSS": "different gradients",
    "ExStream": "prototypes of features, equal classes",
}


def sampler_table() -> str:
    """Set beside each sampler what it keeps, costs a sample and scores on real images."""
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
        f"In all the paper profile wants {len(runs)} runs: {large:.2f} million training "
        f"steps of a ResNet-101 and {small:.2f} million of small networks."
    )


WRITTEN: dict[str, Callable[[], str]] = {
    "main table": main_table,
    "small table": small_table,
    "ledger": ledger_counts,
    "claims": headline_claims,
    "all claims": all_claims,
    "findings": findings,
    "questions": questions,
    "start": lambda: questions("{}.ipynb"),
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
    found = {name for text in texts.values() for _, name, _ in BLOCK.findall(text)}
    if wrong := sorted(found ^ WRITTEN.keys()):
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
