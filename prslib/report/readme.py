"""Write the README's numbers between its markers: from CSV files of figures, and parameters."""

from collections import Counter
from collections.abc import Callable

import pandas as pd

from prslib.experiments.cost import blanks_for_missing, kind_of, work_of
from prslib.paths import figures_dir, known_notebooks, project_root
from prslib.report.ledger import account, as_markdown, in_words
from prslib.report.notebook import wanted
from prslib.report.statistics import VERDICTS
from prslib.report.tables import GROUPS, METRICS

REPORTED = "seeds"  # the profile with the most seeds on data that everyone has
LARGE = "resnet101"  # the paper's network
# the claims in the README, in its order; all others are in the ledger
HEADLINES = (
    *("tail_crs", "order_ewc_f1", "prs_balances", "rho_one", "smallest_task_crs", "above_crs"),
    *("schedules_crs", "architectures_crs", "single_crs", "best", "rho_best", "crs_sacrifices"),
    *("majority", "crs_majority_c_f1", "steadier_crs", "imbalanced_crs", "imbalanced_o_f1"),
)
FINDINGS = (("overall", "mAP"), ("minority", "mAP"), ("majority", "C-F1"))
# contestants of bench/samplers.py: ours, in plain numpy, Avalanche's in batches and in one piece
CONTESTANTS = {
    "CRS": (
        *("CRS", "CRS in plain numpy"),
        *("Avalanche reservoir", "Avalanche reservoir, one piece"),
    ),
    "PRS": ("PRS", "PRS in plain numpy", "PRS as an Avalanche buffer", ""),
    "CBRS": (
        *("CBRS", "CBRS in plain numpy"),
        *("Avalanche class-balanced", "Avalanche class-balanced, one piece"),
    ),
    "OCDM": ("OCDM", "OCDM in plain numpy", "", ""),
    "GSS, gradients given": ("GSS, gradient products given", "", "", ""),
    "ExStream, features given": ("ExStream, features given", "", "", ""),
}


def _numbers(folder: str, name: str) -> pd.DataFrame:
    file = figures_dir(folder) / f"{name}.csv"
    if not file.is_file():
        make = "make bench" if folder == "bench" else f"make figures PROFILE={folder}"
        raise FileNotFoundError(
            f"expected {file}, from which the README takes numbers, it is not there; run "
            f"`{make}` first"
        )
    return pd.read_csv(file)


def main_table() -> str:
    """Return overall scores and each group's mAP: mean ± s.d. over seeds [the paper's number]."""
    cells = _numbers(REPORTED, "main_results_table")
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


def ledger_counts() -> str:
    """Count the claims by verdict, those that the quick profile points at, and the cells run."""
    claims, before = (_numbers(profile, "ledger_claims") for profile in (REPORTED, "quick"))
    cells = _numbers(REPORTED, "ledger_cells")
    count = claims["verdict"].value_counts().reindex(VERDICTS, fill_value=0)
    both = before.merge(claims, on=["claim", "dataset"], suffixes=("_before", ""))
    both = both[both["verdict"].isin(["holds", "does not hold"])]
    alike = (both["effect"] > 0) == (both["effect_before"] > 0)
    return (
        f"Of {len(claims)} rows, {claims['claim'].nunique()} claims on up to "
        f"{claims.groupby('claim')['dataset'].nunique().max()} data sets, {count['holds']} hold, "
        f"{count['does not hold']} do not, {count['undecided']} are undecided and "
        f"{count['not run']} are not run. Of the paper's {len(cells)} numbers "
        f"{(cells['status'] == 'run').sum()} have one of ours beside them. The quick profile has "
        f"at most {before['seeds'].max()} seeds; its effects have the sign of those above in "
        f"{alike.sum()} of the {len(both)} decided rows that it has."
    )


def headline_claims() -> str:
    """Return the effect and the verdict of `HEADLINES`, a row for each claim and data set."""
    claims = _numbers(REPORTED, "ledger_claims").set_index("claim")
    table = account(claims.loc[[name for name in HEADLINES if name in claims.index]])
    table["claim"] = table["claim"].mask(table["claim"].duplicated(), "")
    table = table[["claim", "data", "effect", "paper", "by itself", "verdict"]]
    return as_markdown(table.rename(columns={"effect": "ours [95 % interval]"}))


def findings() -> str:
    """Say what PRS gains and pays against CRS on the first data set, which holds real images."""
    rows = _numbers(REPORTED, "main_results_prs_minus_crs")
    rows = rows[rows["dataset"] == rows["dataset"].iloc[0]].set_index(["group", "metric"])
    return "\n".join(f"- {rows.loc[cell, 'sentence']}" for cell in FINDINGS)


def words() -> str:
    """Say every claim's verdict in a sentence, question by question."""
    return "\n".join(f"- {said}" for said in in_words(_numbers(REPORTED, "ledger_claims")))


def speeds() -> str:
    """Return how many samples a second every sampler takes on COCOseq's labels."""
    rows = _numbers("bench", "samplers")
    rates = rows[rows["stream"] == "cocoseq"].set_index("contestant")["samples_per_s"]
    cells = {contestant: f"{float(f'{rate:.2g}'):,.0f}" for contestant, rate in rates.items()}
    columns = ["samples/s", "prslib", "plain numpy", "Avalanche", "Avalanche, in one piece"]
    found = [[name, *(cells.get(c, "") for c in of)] for name, of in CONTESTANTS.items()]
    return as_markdown(pd.DataFrame(found, columns=columns))


def paper_cost() -> str:
    """Count the runs and training steps of the paper profile; runs trained as one count once."""
    runs, steps, kinds = set(), Counter(), {}
    with blanks_for_missing():
        for name in known_notebooks("paper"):
            for config in wanted(name, "paper"):
                runs.add(config.hash)
                training = config.training
                steps[training] = max(steps[training], work_of(config).steps)
                kinds[training] = (config.resolved["model"], kind_of(config)[1])
    large = {training for training, (model, _) in kinds.items() if LARGE in model}
    plain = {training for training in large if kinds[training] in {(LARGE, True), (LARGE, False)}}
    million = {
        name: sum(steps[training] for training in some) / 1e6
        for name, some in {"large": large, "plain": plain, "small": steps.keys() - large}.items()
    }
    return (
        f"In all the paper profile wants {len(runs)} runs: {million['large']:.2f} million training "
        f"steps of a ResNet-101, {million['plain']:.2f} million of them plain ones, and "
        f"{million['small']:.2f} million of small networks. Every millisecond of a plain step "
        f"makes {1000 * million['plain'] / 60:.0f} minutes of the plain ones."
    )


WRITTEN: dict[str, Callable[[], str]] = {
    "main table": main_table,
    "ledger": ledger_counts,
    "claims": headline_claims,
    "findings": findings,
    "words": words,
    "speeds": speeds,
    "paper cost": paper_cost,
}


def renew() -> None:
    """Write all of `WRITTEN` into the README, each between its markers.

    ValueError if a marker is missing, FileNotFoundError if a CSV file is; nothing is written then.
    """
    file = project_root() / "README.md"
    text = file.read_text(encoding="utf-8")
    for name, write in WRITTEN.items():
        begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
        head, found, rest = text.partition(begin)
        _, also, tail = rest.partition(end)
        if not (found and also):
            raise ValueError(f"{file.name} must hold the markers {begin} and {end}; put them back")
        text = f"{head}{begin}\n{write()}\n{end}{tail}"
    file.write_text(text, encoding="utf-8")
