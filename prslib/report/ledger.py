"""The paper's claims, one row each, with what our runs say about them."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from prslib import notebook
from prslib.config import RunConfig
from prslib.paths import known_notebooks
from prslib.report.bootstrap import VERDICTS, paired_bootstrap
from prslib.report.claim import Claim
from prslib.report.claims import CLAIMS
from prslib.report.numbers import MATCH, first_dataset
from prslib.report.observations import observe, published_observations
from prslib.store import Store
from prslib.sweep import run_all

OWN = "ledger"  # the notebook that asks for nothing but what the others want
# the notebooks of the standard settings: the first run of a data set is what others vary
FIRST = ("main_results", "precision_recall", "single_label")


def all_wanted(profile: str) -> tuple[list[RunConfig], dict[str, str]]:
    """Return what all other notebooks of a profile want, those with the standard runs first.

    Parameters
    ----------
    profile : str
        "smoke", "quick", "seeds" or "paper".

    Returns
    -------
    list of RunConfig
        Each once.
    dict of str to str
        The notebooks that were left out because a file they need is not there, and which.

    Raises
    ------
    FileNotFoundError
        If all of them are left out; the message says what the first of them needs.

    Examples
    --------
    >>> wanted, left_out = all_wanted("smoke")
    >>> wanted[0].dataset, left_out
    ('digits70tiny', {})
    """
    known = [name for name in known_notebooks(profile) if name != OWN]
    standard, found, left_out = [name for name in FIRST if name in known], [], {}
    for name in [*standard, *(name for name in known if name not in FIRST)]:
        try:
            found += notebook.wanted(name, profile)
        except FileNotFoundError as error:
            left_out[name] = str(error)
    if left_out and not found:
        raise FileNotFoundError(next(iter(left_out.values())))
    first = {}
    for config in found:
        first.setdefault(config.hash, config)
    return list(first.values()), left_out


def gather(
    wanted: Sequence[RunConfig], missing: str, store: Store | None = None, device: str = "cpu"
) -> pd.DataFrame:
    """Load the runs that were asked for and say what they show (all tables).

    Parameters
    ----------
    wanted : sequence of RunConfig
        All of them; the first of each data set is its standard.
    missing : str
        What to do with runs that are not stored: "train" or "leave".
    store : Store, optional
        Where finished runs are kept, by default the cache.
    device : str
        Where to train, "cpu" or "cuda".

    Returns
    -------
    DataFrame
        As `prslib.report.observations.observe` gives it.
    """
    store = store or Store()
    if missing == "train":
        return observe(run_all(wanted, store, device=device), wanted)
    unique = {config.hash: config for config in wanted}.values()
    found = [store.load(config) for config in unique if store.path(config).exists()]
    return observe([run for run in found if run is not None], wanted)


def decide(
    observations: pd.DataFrame,
    wanted: Sequence[RunConfig],
    level: float = 0.95,
    claims: dict[str, Claim] = CLAIMS,
) -> pd.DataFrame:
    """Decide every claim on every data set it is about, by a paired bootstrap over seeds.

    Parameters
    ----------
    observations : DataFrame
        As `gather` gives them.
    wanted : sequence of RunConfig
        All that were asked for.
    level : float
        Share of the resamples that an interval holds.
    claims : dict of str to Claim
        Which claims.

    Returns
    -------
    DataFrame
        claim, statement, source, test, stands_for, dataset, stand_in, effect, low, high, unit,
        seeds, resamples, level, coverage (the most an interval of so few seeds can promise),
        published (the same measure of the paper's own cells, NaN where it prints none), runs (how
        many of those asked for the claim looks at), verdict; above 0 speaks for the claim.
    """
    printed = published_observations()
    printed = printed.drop_duplicates(MATCH)  # the main table comes first
    printed = dict(list(printed.groupby("stands_for")))
    first = observations["stands_for"].map(first_dataset(observations))
    found = dict(list(observations[observations["dataset"] == first].groupby("stands_for")))
    rows = []
    for name, claim in claims.items():
        needed = claim.needs(wanted)
        for paper in claim.on:
            said = {"claim": name, "statement": claim.statement, "source": claim.source}
            said |= {"test": claim.test, "unit": claim.unit, "stands_for": paper}
            said["published"] = paired_bootstrap(claim.table(printed[paper]), claim.effect).effect
            ours = found.get(paper, observations.iloc[:0])
            rows.append(said | _decided(claim, ours, level) | _origin(ours, needed))
    return pd.DataFrame(rows)


def _decided(claim: Claim, rows: pd.DataFrame, level: float) -> dict:
    found = paired_bootstrap(claim.table(rows), claim.effect, level)
    values = {"effect": found.effect, "low": found.low, "high": found.high}
    sure = {"seeds": found.seeds, "resamples": found.resamples, "level": found.level}
    return values | sure | {"coverage": found.coverage, "verdict": found.verdict}


def _origin(rows: pd.DataFrame, needed: Sequence[RunConfig]) -> dict:
    dataset = rows["dataset"].iloc[0] if len(rows) else ""
    runs = sum(config.dataset == dataset for config in needed)
    return {"dataset": dataset, "stand_in": bool(rows["stand_in"].any()), "runs": runs}


def account(decided: pd.DataFrame) -> pd.DataFrame:
    """Lay the decided claims out as text, a row for each claim and data set (all claims).

    Parameters
    ----------
    decided : DataFrame
        As `decide` gives them.

    Returns
    -------
    DataFrame
        claim, where (in the paper), data, effect (with its interval and unit), paper (the same
        measure of the paper's own numbers), seeds, verdict.
    """
    rows = [
        {
            "claim": row.statement,
            "where": row.source,
            "data": _data(row),
            "effect": _effect(row),
            "paper": "" if np.isnan(row.published) else f"{row.published:+.1f}",
            "seeds": row.seeds or "",
            "verdict": row.verdict,
        }
        for row in decided.itertuples()
    ]
    return pd.DataFrame(rows)


def as_markdown(table: pd.DataFrame) -> str:
    """Return a table of text as Markdown."""
    lines = [table.columns, ["---"] * len(table.columns), *table.astype(str).to_numpy()]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def sentences(decided: pd.DataFrame) -> list[str]:
    """Say how many claims hold, and of each that does not by how much it fails.

    Parameters
    ----------
    decided : DataFrame
        As `decide` gives them.

    Returns
    -------
    list of str
        First the counts, then a sentence for each claim and data set that does not hold.
    """
    counts = decided["verdict"].value_counts().reindex(VERDICTS, fill_value=0)
    listed = ", ".join(f"{name}: {count}" for name, count in counts.items())
    said = [f"Of {len(decided)} rows, {decided['claim'].nunique()} claims, {listed}."]
    for row in decided[decided["verdict"] == "does not hold"].itertuples():
        gap = row.effect - row.published
        paper = f"; the paper's own numbers give {row.published:+.1f}, a difference of {gap:+.1f}"
        said.append(
            f"Does not hold on {_data(row)}: {row.statement}. {row.test[0].upper()}{row.test[1:]}: "
            f"{_effect(row)} over {row.seeds} seeds{'' if np.isnan(gap) else paper}."
        )
    return said


def _data(row) -> str:
    return f"{row.dataset} [{row.stands_for}]" if row.stand_in else row.stands_for


def _effect(row) -> str:
    if row.verdict == "not run":
        return ""
    interval = f" [{row.low:+.1f}, {row.high:+.1f}]" if row.seeds > 1 else ""
    return f"{row.effect:+.1f}{interval} {row.unit}"
