"""Write the committed numbers into README and docs; check that this machine repeats them."""

import json
import re
import subprocess
import tarfile
import tempfile
from collections import Counter
from collections.abc import Callable
from io import BytesIO, StringIO
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from llvmlite.binding import get_host_cpu_name

from prslib.experiments.cost import blanks_for_missing, work_of
from prslib.experiments.store import Store
from prslib.experiments.sweep import run_all
from prslib.paths import figures_dir, known_notebooks, project_root
from prslib.report.claims import CLAIMS, QUESTIONS
from prslib.report.ledger import HEADLINES, account, as_markdown
from prslib.report.statistics import VERDICTS
from prslib.report.tables import GROUPS, METRICS, final, scores_of
from prslib.report.topics import runs_of
from prslib.training import versions
from prslib.training.config import RunConfig

REPORTED = "seeds"  # the profile with the most seeds on data that everyone has
# the notebooks in the order of their questions
ORDER = (
    *("walkthrough", "main_results", "precision_recall", "memory_distribution", "rho_sweep"),
    *("tail_forgetting", "inter_task", "schedules_and_memory", "imbalanced_test", "feature_tsne"),
    *("gradient_variance", "architectures", "pretraining", "single_label", "deviations"),
    *("datasets", "ledger"),
)
BESIDE = "CBRS"  # a later sampler that balances the memory too
# rows of the table of speeds: ours in bench/samplers.py and Avalanche's, which it ends with
# ", one piece" where Avalanche gets the whole stream
CONTESTANTS = {
    "CRS": ("CRS", "Avalanche reservoir"),
    "PRS": ("PRS", "PRS as an Avalanche buffer"),
    "CBRS": ("CBRS", "Avalanche class-balanced"),
    "OCDM": ("OCDM", ""),
    "GSS, gradients given": ("GSS, gradient products given", ""),
    "ExStream, features given": ("ExStream, features given", ""),
}
# what `prslib verify` trains and compares
NOTEBOOK, TABLE = "main_results", "main_results_groups_{}"  # a row a seed, method and score
TRAINED = ("EWC", "CRS", "ExStream", "PRS")  # one of each kind that trains fast
CELLS = ["method", "group", "metric"]
LIMIT = 1.0  # s.d. over seeds, root mean square over a table's cells


def _numbers(folder: str, name: str) -> pd.DataFrame:
    file = figures_dir(folder) / f"{name}.csv"
    if not file.is_file():
        make = "make bench" if folder == "bench" else f"make figures PROFILE={folder}"
        raise FileNotFoundError(
            f"expected {file}, from which README and docs take numbers, it is not there; run "
            f"`{make}` first"
        )
    return pd.read_csv(file)


def main_table() -> str:
    """Return overall scores and each group's mAP: mean ± s.d. over seeds [the paper's number]."""
    cells = _numbers(REPORTED, "main_results_table")
    cells = cells[cells["measure"] == "score"]
    columns = [*product(["overall"], METRICS), *product(GROUPS[:-1], ["mAP"])]
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


def small_table() -> str:
    """Return each group's mAP on the first data set, of real images; the best is bold."""
    cells = _numbers(REPORTED, "main_results_table")
    cells = cells[cells["dataset"] == cells["dataset"].iloc[0]]
    cells = cells[(cells["measure"] == "score") & (cells["metric"] == "mAP")]
    rivals = cells[cells["method"] != "Multitask"]  # which sees all tasks at once
    best = rivals.loc[rivals.groupby("group")["mean"].idxmax()].index
    found = [f"**{_cell(row)}**" if i in best else _cell(row) for i, row in cells.iterrows()]
    table = cells.assign(cell=found).pivot(index="method", columns="group", values="cell")
    table = table.loc[cells["method"].unique(), list(GROUPS)]
    return as_markdown(table.add_suffix(" mAP").rename_axis("").reset_index())


def _cell(row: pd.Series) -> str:
    spread = "" if pd.isna(row["sd"]) else f" ± {row['sd']:.1f}"
    theirs = "" if pd.isna(row["published"]) else f" [{row['published']:.1f}]"
    return f"{row['mean']:.1f}{spread}{theirs}"


def ledger_counts() -> str:
    """Count the claims by verdict, and the paper's numbers that have one of ours beside them."""
    claims, cells = _numbers(REPORTED, "ledger_claims"), _numbers(REPORTED, "ledger_cells")
    count = claims["verdict"].value_counts().reindex(VERDICTS, fill_value=0)
    return (
        f"Of {len(claims)} rows, {claims['claim'].nunique()} claims on up to "
        f"{claims.groupby('claim')['dataset'].nunique().max()} data sets, {count['holds']} hold, "
        f"{count['does not hold']} do not, {count['undecided']} are undecided and "
        f"{count['not run']} are not run. Of the paper's {len(cells)} numbers "
        f"{(cells['status'] == 'run').sum()} have one of ours beside them."
    )


def headline_claims() -> str:
    """Return the effect and the verdict of `HEADLINES` on the first data set."""
    claims = _numbers(REPORTED, "ledger_claims").set_index("claim")
    claims = claims.loc[[name for name in HEADLINES if name in claims.index]]
    return _claims(claims[claims["dataset"] == claims["dataset"].iloc[0]], "data")


def all_claims() -> str:
    """Return the effect and the verdict of every claim, a table for each of `QUESTIONS`."""
    claims = _numbers(REPORTED, "ledger_claims")
    question = pd.Series({name: QUESTIONS.get(name) for name in CLAIMS}).ffill()
    asked = claims.groupby(claims["claim"].map(question), sort=False)
    return "\n\n".join(f"### {name}\n\n{_claims(rows)}" for name, rows in asked)


def _claims(rows: pd.DataFrame, *without: str) -> str:
    table = account(rows).rename(columns={"effect": "ours [95 % interval]"})
    table["claim"] = table["claim"].mask(table["claim"].duplicated(), "")
    return as_markdown(table.drop(columns=["where", "p", "seeds", *without]))


def findings() -> str:
    """Say what PRS buys, what it costs and how a later sampler does, first on real images."""
    rows = _numbers(REPORTED, "main_results_prs_minus_crs")
    rows = rows[rows["dataset"] == rows["dataset"].iloc[0]].set_index(["group", "metric"])
    others = _numbers(REPORTED, "main_results_prs_minus_others").set_index("than").loc[[BESIDE]]
    overall = others[(others["group"] == "overall") & (others["metric"] == "mAP")]
    said = {
        "What it buys": rows.loc[[("overall", "mAP"), ("minority", "mAP")], "sentence"],
        "What it costs": rows.loc[[("majority", "C-F1")], "sentence"],
        f"Beside {BESIDE}, a later sampler that also balances the memory": overall["sentence"],
    }
    return "\n".join(f"- **{head}.** {' '.join(lines)}" for head, lines in said.items())


def questions(link: str = "notebooks/{}.ipynb") -> str:
    """Return the notebooks and what each asks, which is its title, in `ORDER`."""
    rows = []
    for name in ORDER:
        text = (project_root() / "notebooks" / f"{name}.ipynb").read_text(encoding="utf-8")
        title = "".join(json.loads(text)["cells"][0]["source"]).splitlines()[0].lstrip("# ")
        rows.append([f"[{title}]({link.format(name)})", f"`{name}`"])
    return as_markdown(pd.DataFrame(rows, columns=["question", "notebook"]))


def speeds() -> str:
    """Return how many samples a second every sampler takes on COCOseq's labels."""
    rows = _numbers("bench", "samplers")
    rates = rows[rows["stream"] == "cocoseq"].set_index("contestant")["samples_per_s"]
    cells = {contestant: f"{float(f'{rate:.2g}'):,.0f}" for contestant, rate in rates.items()}
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
    speeds = speeds[speeds["stream"] == "cocoseq"].set_index("contestant")["samples_per_s"]
    scores = _numbers(REPORTED, "main_results_table")
    scores = scores[scores["dataset"] == scores["dataset"].iloc[0]]
    scores = scores[scores["measure"] == "score"].set_index(["method", "group", "metric"])["mean"]
    columns = [("overall", "mAP"), ("minority", "mAP"), ("majority", "C-F1")]
    rows = []
    for name, keeps in KEEPS.items():
        (contestant,) = [ours for ours, _ in CONTESTANTS.values() if ours.split(",")[0] == name]
        row = {"sampler": f"[{name}]({name.lower()}.md)", "keeps": keeps}
        row["µs a sample"] = f"{1e6 / speeds[contestant]:.2g}"
        row |= {" ".join(key): f"{scores[name, *key]:.1f}" for key in columns}
        rows.append(row)
    return as_markdown(pd.DataFrame(rows))


def paper_cost() -> str:
    """Count the runs and training steps of the paper profile; runs trained as one count once."""
    runs, steps = set(), {True: Counter(), False: Counter()}
    with blanks_for_missing():
        for name in known_notebooks("paper"):
            for config in runs_of("paper", name):
                runs.add(config.hash)
                trained = steps["resnet101" in config.resolved["model"]]
                trained[config.training] = max(trained[config.training], work_of(config).steps)
    large, small = (sum(steps[is_large].values()) / 1e6 for is_large in (True, False))
    return (
        f"In all the paper profile wants {len(runs)} runs: {large:.2f} million training steps of "
        f"a ResNet-101 and {small:.2f} million of small networks."
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
    return [root / "README.md", root / "notebooks" / "start.md", *sorted(root.glob("docs/**/*.md"))]


def renew() -> None:
    """Write all of `WRITTEN` into `files`, each between its markers; on an error nothing."""
    texts = {file: file.read_text(encoding="utf-8") for file in files()}
    found = {name for text in texts.values() for _, name, _ in BLOCK.findall(text)}
    if wrong := sorted(found ^ WRITTEN.keys()):
        raise ValueError(
            f"expected the markers <!-- {wrong[0]}: begin --> and <!-- {wrong[0]}: end --> in "
            f"README.md or docs/ if they are among {', '.join(WRITTEN)}, and only then"
        )
    written = {name: write() for name, write in WRITTEN.items()}
    for file, text in texts.items():
        new = BLOCK.sub(lambda block: f"{block[1]}{written[block[2]]}\n{block[3]}", text)
        file.write_text(new, encoding="utf-8")


def verify(profile: str) -> tuple[list[str], bool]:
    """Compare new runs and a profile's CSV files with HEAD's: lines, and if all are in `LIMIT`."""
    here = {file.stem: file.read_text() for file in figures_dir(profile).glob("*.csv")}
    committed = _committed_tables(profile)
    named = dict(versions().itertuples(index=False))
    lines = [f"{', '.join(map(' '.join, named.items()))}; processor {get_host_cpu_name()}"]
    if "ledger_versions" in committed:
        then = pd.read_csv(StringIO(committed["ledger_versions"]), index_col=0)["version"]
        other = [f"{name} {was}" for name, was in then.items() if named.get(name) != was]
        lines.append(f"committed with other versions: {', '.join(other) or 'none'}")
    found = _runs_anew(profile, committed or here)
    if committed:
        found |= {name: _apart(committed[name], here[name]) for name in committed if name in here}
        missing = sorted(set(committed) - set(here))
        lines += [f"not drawn here: {', '.join(missing)}"] if missing else []
    else:
        lines.append("no commit to ask (git): the runs are compared with the tables drawn here")
    other = {name: apart for name, apart in found.items() if apart != 0}
    lines.append(f"same bytes: {len(found) - len(other)} of {len(found)}")
    for name, apart in other.items():
        far = f"{apart:.2f} s.d. over seeds apart" if apart >= 0 else "differs, without an s.d."
        lines.append(f"{name}: {far}")
    lines.append(f"limit: {LIMIT:g} s.d. (root mean square over a table's cells)")
    return lines, not any(apart > LIMIT for apart in found.values())


def chosen(profile: str) -> list[RunConfig]:
    """Return the runs that are trained anew: the first of each method on each data set."""
    first = {}
    for config in runs_of(profile, NOTEBOOK):
        if config.method in TRAINED:
            first.setdefault((config.dataset, config.method), config)
    return list(first.values())


def _runs_anew(profile: str, tables: dict[str, str]) -> dict[str, float]:
    """Return how far each data set's new runs are from the table of its scores."""
    configs = chosen(profile)
    if absent := [c.dataset for c in configs if TABLE.format(c.dataset) not in tables]:
        raise FileNotFoundError(
            f"expected {TABLE.format(absent[0])}.csv in {figures_dir(profile)}, it is not there; "
            f"run `make figures PROFILE={profile}` first"
        )
    with tempfile.TemporaryDirectory() as folder:
        rows = final(scores_of(run_all(configs, Store(folder))))
    found = {}
    for name, part in rows[rows["measure"] == "score"].groupby("dataset", sort=False):
        then = pd.read_csv(StringIO(tables[TABLE.format(name)]))
        then = then.assign(sd=then.groupby(CELLS)["value"].transform("std"))
        both = part.merge(then, on=[*CELLS, "seed"], suffixes=("", "_then"))
        anew = pd.read_csv(StringIO(both.to_csv(float_format="%.6g")))["value"]  # as it was saved
        label = f"{', '.join(part['method'].unique())} on {name}, trained anew"
        found[label] = _distance(anew - both["value_then"], both["sd"])
    return found


def _committed_tables(profile: str) -> dict[str, str]:
    """Return the text of a profile's CSV files in the last commit by name; none without git."""
    command = ["git", "-C", project_root(), "archive", "HEAD", f"figures/{profile}"]
    try:
        packed = subprocess.run(command, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return {}
    with tarfile.open(fileobj=BytesIO(packed)) as files:
        tables = [file for file in files if file.name.endswith(".csv")]
        return {Path(file.name).stem: files.extractfile(file).read().decode() for file in tables}


def _apart(then: str, now: str) -> float:
    """Return how far two texts of a table are apart; inf for other rows, -1 without an s.d."""
    if then == now:
        return 0.0
    then, now = (pd.read_csv(StringIO(text)) for text in (then, now))
    if list(then) != list(now) or len(then) != len(now):
        return np.inf
    column = next((name for name in ("value", "mean", "difference") if name in then), None)
    if "sd" not in then and {"seed", "value"} <= set(then):
        keys = [name for name in then if name not in ("seed", "value")]
        then = then.assign(sd=then.groupby(keys, dropna=False)["value"].transform("std"))
    if column is None or "sd" not in then:
        return -1.0
    return _distance(now[column] - then[column], then["sd"])


def _distance(gaps: pd.Series, sd: pd.Series) -> float:
    """Return the root mean square of gaps in units of s.d.; a cell without one takes the mean."""
    known = sd.where(sd > 0)
    in_sd = (gaps / known.fillna(known.mean())).where(gaps != 0, 0.0)
    return float(np.sqrt((in_sd**2).mean())) if in_sd.notna().any() else -1.0
