"""Compare every number and every claim of the paper with the replication."""

from collections import Counter
from itertools import chain

import numpy as np
import pandas as pd

from prslib import runs
from prslib.report.answers import STREAMS, join_words, name_streams
from prslib.report.claims import CLAIMS, COCO, FACT, PRIMARY, SENSITIVITY, Claim, Scores
from prslib.report.results import (
    DATA_SOURCES,
    STAND_IN,
    data_sources_of,
    printed_rows,
    results_of,
)
from prslib.report.tables import TEST_WORDS, labels_of
from prslib.statistics import LEVEL, VERDICTS, WORDS, holm
from prslib.train import RunConfig

TEXTS = ("statement", "source", "test", "unit", "over", "kind")  # fields of a claim


def gather(
    by_notebook: dict[str, list[RunConfig]], missing: str, device: str = "cpu"
) -> pd.DataFrame:
    """Gather what the stored runs of notebooks measured, standard runs first.

    Missing runs are trained if `missing` is "train".
    """
    configs: dict[str, RunConfig] = {}
    standards: dict[str, RunConfig] = {}
    for config in chain(*by_notebook.values()):
        configs.setdefault(repr(config.identity), config)
        standards.setdefault(config.dataset, config)
    in_figure_1 = {
        repr(config.identity) for config in by_notebook.get("tail_forgetting", [])
    }
    if missing == "train":
        runs.train(configs.values(), device=device)
    paths = [(config, runs.path_of(config)) for config in configs.values()]
    # one in memory at a time
    stored = (runs.load(config, path) for config, path in paths if path.is_file())
    return results_of(stored, standards, in_figure_1)


def decide(results: pd.DataFrame, level: float = LEVEL) -> pd.DataFrame:
    """Test each claim on each of its data sets, with and without correction.

    A claim about COCOseq is also tested on other real streams, in separate rows whose
    column stands_for is empty, because the paper has no number to compare with.
    """
    nothing = {"": Scores(results.iloc[:0])}
    printed = nothing | scores_by("stands_for", printed_rows())
    ours = nothing | scores_by("dataset", results)
    data_sources = data_sources_of(name for name in ours if name)
    rows = []
    for claim in CLAIMS.values():
        texts = {name: getattr(claim, name) for name in TEXTS}
        for paper, dataset in places_of(claim, data_sources):
            effect = claim.decide(printed[paper])["effect"]
            place = {
                "stands_for": paper,
                "published": claim.printed.get(paper, effect),
                "dataset": dataset,
                "data": data_sources.get(dataset, ""),
            }
            decided = claim.decide(ours[dataset], level)
            rows.append({"claim": claim.name} | texts | place | decided)
    table = drop_not_run(pd.DataFrame(rows))
    table["verdict"] = correct(table, level)
    return table


def scores_by(column: str, rows: pd.DataFrame) -> dict[str, Scores]:
    """Return the scores of each data set, by its name in a column."""
    of_sets = rows.groupby(column, sort=False)
    return {str(name): Scores(of_set) for name, of_set in of_sets}


def places_of(claim: Claim, data_sources: dict[str, str]) -> list[tuple[str, str]]:
    """Return the data sets of a claim: pairs of the paper's and ours, "" if there is none."""
    places = []
    for paper in claim.on:
        names = [name for name in data_sources if labels_of(name).stands_for == paper]
        if not claim.stand_ins:
            names = [name for name in names if data_sources[name] != STAND_IN]
        places += [(paper, name) for name in names or [""]]
    if COCO in claim.on:
        names = [name for name in data_sources if data_sources[name] == "other"]
        places += [("", name) for name in names]
    return places


def drop_not_run(decided: pd.DataFrame) -> pd.DataFrame:
    """Drop rows that were not run; keep one if a claim has no other row on a data set."""
    is_run = decided["alone"] != "not run"
    place = ["claim", "stands_for"]
    any_run = is_run.groupby([decided[name] for name in place]).transform("any")
    stays = ~any_run & ~decided.duplicated(place) & (decided["stands_for"] != "")
    return decided[is_run | stays].reset_index(drop=True)


def correct(decided: pd.DataFrame, level: float) -> pd.Series:
    """Return the verdicts after Holm's correction for the number of claims on a data set.

    For a claim of the kind "sensitivity", the verdict is this word.
    """
    kinds = decided["claim"].map(lambda name: CLAIMS[name].kind)
    is_run = decided["alone"] != "not run"
    verdicts = decided["alone"].mask(is_run & (kinds == SENSITIVITY), SENSITIVITY)
    tested = decided["p"].where(kinds == PRIMARY)
    p = tested.groupby(decided["dataset"]).transform(holm)
    return verdicts.mask(verdicts.isin(WORDS) & (p >= 1 - level), "undecided")


def digits_of(unit: str) -> int:
    """Return the number of decimals of a printed effect."""
    return 2 if unit == "rank correlation" else 1


def as_markdown(table: pd.DataFrame) -> str:
    """Return a table of text as Markdown."""
    lines = [table.columns, ["---"] * len(table.columns), *table.astype(str).to_numpy()]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def counts(decided: pd.DataFrame) -> pd.DataFrame:
    """Count rows by verdict, for the paper's images, other real streams and synthetic data."""
    verdicts = list(VERDICTS[:-1])
    run = decided[decided["verdict"].isin(verdicts)]
    table = pd.crosstab(run["data"].map(DATA_SOURCES), run["verdict"])
    order = list(DATA_SOURCES.values())
    table = table.sort_index(key=lambda names: names.map(order.index))
    table = table.reindex(columns=verdicts, fill_value=0)
    return table.assign(rows=table.sum(axis=1))


def list_main_claims(decided: pd.DataFrame) -> str:
    """List the main claims in Markdown, with the tested real streams by verdict."""
    real = on_real_data(decided)
    rows = []
    for name, claim in CLAIMS.items():
        streams = list_streams(real, name)
        if claim.headline and len(streams):
            tests = say_tests(real[real["claim"] == name])
            about = f"{', '.join(claim.metrics)}; {tests}"
            row = {"claim of the paper": claim.statement, "scores; test set": about}
            rows.append(row | streams.to_dict())
    columns = ["claim of the paper", "scores; test set", *VERDICTS]
    table = pd.DataFrame(rows, columns=columns)
    return as_markdown(table.dropna(axis=1, how="all").fillna("-")) if rows else ""


def list_streams(decided: pd.DataFrame, claim: str) -> pd.Series:
    """List, for each verdict, the real streams on which a claim received it."""
    rows = on_real_data(decided)
    rows = rows[rows["claim"] == claim]
    return rows.groupby("verdict")["dataset"].agg(join_words).map(name_streams)


def say_untested(decided: pd.DataFrame) -> str:
    """Write in Markdown how many claims per question were not tested on real data."""
    tested = set(on_real_data(decided)["claim"])
    claims = {name: claim for name, claim in CLAIMS.items() if claim.kind == PRIMARY}
    questions = [claims[name].question for name in claims if name not in tested]
    text = f"**Not tested on real data**: {len(questions)} of {len(claims)} claims."
    topics = Counter(questions).items()
    listed = ", ".join(f'"{topic}" ({count})' for topic, count in topics)
    return (
        f"{text} Number of untested claims per question: {listed}." if listed else text
    )


def on_real_data(decided: pd.DataFrame) -> pd.DataFrame:
    """Return the rows that were run on real data."""
    return decided[(decided["data"] != STAND_IN) & (decided["verdict"] != "not run")]


def say_tests(decided: pd.DataFrame) -> str:
    """Name the test sets that rows use; "" if they use no test images."""
    words = [TEST_WORDS.get(name, "") for name in decided["test_set"].unique()]
    words += [CLAIMS[name].second_test_set for name in decided["claim"].unique()]
    return ", ".join(dict.fromkeys(filter(None, words)))


def lay_out(decided: pd.DataFrame) -> pd.DataFrame:
    """Lay out the results as text, with a row per claim and a column per data set."""
    rows = decided[decided["verdict"] != "not run"]
    lines = []
    for name, of_claim in rows.groupby("claim", sort=False):
        claim = CLAIMS[str(name)]
        about = f"**{claim.statement}** ({claim.source}). "
        about += f"Measured: {claim.test} ({claim.unit})."
        papers = of_claim[of_claim["published"].notna()].drop_duplicates("stands_for")
        digits = digits_of(claim.unit)
        line = {
            "claim": about if claim.kind == PRIMARY else f"*{claim.kind}:* {about}",
            "test": say_tests(of_claim),
            "paper": "; ".join(
                f"{row.published:+.{digits}f} ({row.stands_for})"
                for row in papers.itertuples()
            ),
        }
        of_sets = {row["dataset"]: _say(row) for row in of_claim.to_dict("records")}
        lines.append(line | of_sets)
    names = data_sources_of(rows["dataset"])
    table = pd.DataFrame(lines, columns=["claim", "test", "paper", *names]).fillna("")
    return table.loc[:, (table != "").any()].rename(columns=STREAMS)


def _say(row: dict) -> str:
    """Write verdict and effect of a row and, unless the claim holds, its weakest cell."""
    digits = digits_of(row["unit"])
    effect, low, high = (row[name] for name in ("effect", "low", "high"))
    text = "" if np.isnan(effect) else f"{effect:+.{digits}f}"
    if not np.isnan(low):  # one seed has no interval
        text += f" [{low:+.{digits}f}, {high:+.{digits}f}]"
    if row["kind"] == FACT:
        return text
    verdict = row["alone"] if row["kind"] == SENSITIVITY else row["verdict"]
    if row["weakest"] and verdict != "holds":
        text += f" (weakest cell: {row['weakest']})"
    return f"**{verdict}** {text}"
