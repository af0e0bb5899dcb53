"""What the README says in numbers, written between markers: from CSV files and parameters."""

from collections import Counter
from collections.abc import Callable

import pandas as pd

from prslib.experiments.cost import blanks_for_missing, kind_of, work_of
from prslib.paths import figures_dir, known_notebooks, project_root
from prslib.report import GROUPS, METRICS
from prslib.report.notebook import wanted
from prslib.report.statistics import VERDICTS

REPORTED = "seeds"  # the profile with the most seeds on data that everyone has
LARGE = "resnet101"  # the paper's network


def main_table() -> str:
    """Return the overall scores and each group's mAP of ``figures/seeds`` as a Markdown table.

    Returns
    -------
    str
        A row for each method; ours as mean ± s.d. over seeds, the paper's number in brackets.
    """
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


def _numbers(profile: str, name: str) -> pd.DataFrame:
    file = figures_dir(profile) / f"{name}.csv"
    if not file.is_file():
        raise FileNotFoundError(
            f"expected {file}, from which the README takes numbers, it is not there; run "
            f"`make figures PROFILE={profile}` first"
        )
    return pd.read_csv(file)


def _cell(row: pd.Series) -> str:
    spread = "" if pd.isna(row["sd"]) else f" ± {row['sd']:.1f}"
    theirs = "" if pd.isna(row["published"]) else f" [{row['published']:.1f}]"
    return f"{row['mean']:.1f}{spread}{theirs}"


def ledger_counts() -> str:
    """Return how the claims and the published numbers stand in ``figures/seeds``, as sentences.

    Returns
    -------
    str
        Counts by verdict, of the cells that were run, and of the quick profile's verdicts that
        more seeds confirm.
    """
    claims, before = (_numbers(profile, "ledger_claims") for profile in (REPORTED, "quick"))
    cells = _numbers(REPORTED, "ledger_cells")
    count = claims["verdict"].value_counts().reindex(VERDICTS, fill_value=0)
    both = before.merge(claims, on=["claim", "dataset"], suffixes=("_before", ""))
    decided = both[both["verdict_before"].isin(["holds", "does not hold"])]
    return (
        f"Of {len(claims)} rows, {claims['claim'].nunique()} claims on up to "
        f"{claims.groupby('claim')['dataset'].nunique().max()} data sets, {count['holds']} hold, "
        f"{count['does not hold']} do not, {count['undecided']} are undecided and "
        f"{count['not run']} are not run. Of the paper's {len(cells)} numbers "
        f"{(cells['status'] == 'run').sum()} have one of ours beside them. The quick profile, with "
        f"three seeds at most, decides {len(decided)} of the rows; ten seeds confirm "
        f"{(decided['verdict'] == decided['verdict_before']).sum()} of these."
    )


def paper_cost() -> str:
    """Return how much there is to train in the paper profile, as sentences.

    Returns
    -------
    str
        Counts of runs and of training steps, at the published sizes; runs that are trained as one
        count their steps once.
    """
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
    "paper cost": paper_cost,
}


def renew() -> None:
    """Write all of `WRITTEN` into the README, each between its markers.

    Raises
    ------
    ValueError
        If the README has lost a marker.
    FileNotFoundError
        If figures that it takes numbers from have not been drawn.
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
