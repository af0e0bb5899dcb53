"""Set every number and every claim of the paper beside ours, and draw both."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from prslib.checks import one_of
from prslib.experiments.store import Store
from prslib.experiments.sweep import run_all
from prslib.report import notebook, topics
from prslib.report.claims import CLAIMS, Claim, Scores
from prslib.report.observations import (
    RELATIONS,
    SETTING,
    observe,
    published_observations,
)
from prslib.report.statistics import VERDICTS, WORDS, holm
from prslib.report.style import looks_of
from prslib.report.tables import METRICS, PRECISION_RECALL
from prslib.training.config import Run, RunConfig

# fields that the paper's tables vary
VARIED = {
    "epochs",
    "frozen_stages",
    "memory_size",
    "model",
    "rho",
    "schedule",
    "test_set",
}
OF_A_MODEL = {
    "learning_rate",
    "model",
}  # a network of its own may have a step size of its own
KINDS = ("C-F1", "O-F1", "mAP", "precision and recall", "accuracy", "forgetting")
MATCH = [
    *SETTING,
    "frozen",
    "power",
    "trained_tasks",
    "group",
    "measure",
    "metric",
    "task",
]
VERDICT_STYLES = {  # colour and what to look for without colours
    "holds": ("#0072B2", "o"),
    "does not hold": ("#D55E00", "v"),
    "no difference": ("#009E73", "s"),
    "undecided": ("#777777", "D"),
    "not run": ("#bbbbbb", ""),
}
LINEAR = 10  # up to here the axis of effects is linear, beyond it logarithmic
TICKS = (-300, -100, -30, -10, -5, 0, 5, 10, 30, 100, 300)
HEADLINES = (  # what a reader asks first: the claims of the README and of the short picture
    *("tail_crs", "tail_crs_lost", "prs_balances", "above_crs", "best", "crs_majority"),
    *("majority", "schedules_crs", "rho_ends"),
)
FLOOR = -30  # percent: of forgetting, which has no lower end


def cells(observations: pd.DataFrame, profile: str) -> pd.DataFrame:
    """Set the mean over seeds of our alike runs beside every published cell, in percent."""
    ours = observations[observations["varied"].map(_alike).astype(bool)]
    first = in_turn(ours).drop_duplicates("stands_for")["dataset"]
    ours = ours[ours["dataset"].isin(first)].drop_duplicates([*MATCH, "seed"])
    means = ours.groupby([*MATCH, "dataset", "data"], dropna=False, sort=False)["value"]
    means = means.agg(ours="mean", sd="std", seeds="count").reset_index()
    theirs = published_observations().rename(columns={"value": "theirs"})
    both = theirs.merge(means, how="left", on=MATCH)
    both = both.assign(
        seeds=both["seeds"].fillna(0).astype(int),
        difference=both["ours"] - both["theirs"],
        status=np.where(both["ours"].notna(), "run", "not run"),
        profile=profile,
        kind=both["metric"]
        .replace(dict.fromkeys(PRECISION_RECALL, "precision and recall"))
        .mask(both["measure"] == "forget", "forgetting"),
    )
    setting = [
        "method",
        "architecture",
        "memory_size",
        "schedule",
        "epochs",
        "test_set",
    ]
    cell = ["trained_tasks", "group", "measure", "metric", "kind"]
    values = ["theirs", "ours", "sd", "seeds", "difference", "status"]
    origin = ["dataset", "data", "profile", "note"]
    return both[["table", "stands_for", *setting, *cell, *values, *origin]]


def _alike(varied: str) -> bool:
    names = set(filter(None, varied.split(",")))
    return names - (OF_A_MODEL if names >= OF_A_MODEL else set()) <= VARIED


def in_turn(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a row a data set: the paper's own, then parts of these, then stand-ins."""
    rank = rows["data"].map(RELATIONS.index)
    rows = rows.assign(
        rank=rank.groupby(rows["dataset"]).transform("max")
    )  # the humblest
    rows = rows.drop_duplicates("dataset").sort_values("rank", kind="stable")
    data = [RELATIONS[number] for number in rows["rank"]]
    return rows.assign(data=data)[["stands_for", "dataset", "data"]]


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Sum up the tables of `cells`: how much was run, how far off, in which order."""
    table = []
    for name, cells in rows.groupby("table", sort=False):
        run = cells[cells["status"] == "run"]
        scores = run[run["measure"] == "score"]
        correlations = rank_correlations(scores)
        row = {"table": name, "cells": len(cells), "run": len(run)}
        row["stand_ins"] = int((run["data"] == RELATIONS[-1]).sum())
        row["mean_difference"] = scores["difference"].abs().mean()
        row["rank_correlation"] = np.mean(correlations) if correlations else np.nan
        table.append(row | {"columns": len(correlations)})
    return pd.DataFrame(table)


def rank_correlations(rows: pd.DataFrame) -> list[float]:
    """Return Spearman's correlation of the methods' order in columns with three or more."""
    by = ["table", "stands_for", "architecture", "epochs", "test_set", "trained_tasks"]
    by += ["group", "measure", "metric", "memory_size", "schedule"]
    correlations = []
    for _, column in rows.groupby(by, dropna=False, sort=False):
        steady = column["ours"].nunique() < 2 or column["theirs"].nunique() < 2
        if column["method"].nunique() > 2 and not steady:
            pair = column[["ours", "theirs"]]
            correlations.append(float(pair.corr("spearman").iloc[0, 1]))
    return correlations


@dataclass(frozen=True)
class Settings(notebook.Settings):
    """Parameters of the notebook, which explains them."""

    level: float = 0.95
    missing: str = "train"
    device: str = "cpu"

    def __post_init__(self) -> None:
        """Refuse an unknown word and a level that no interval has."""
        super().__post_init__()
        one_of("missing", self.missing, ["train", "leave"])
        if not 0 < self.level < 1:
            raise ValueError(f"level must be between 0 and 1, got {self.level:g}")


def runs(settings: Settings) -> list[RunConfig]:
    """List the runs of all topics of the profile, or none where they are not trained."""
    return topics.runs(settings.profile) if settings.missing == "train" else []


def gather(
    configs: Sequence[RunConfig],
    missing: str,
    store: Store | None = None,
    device: str = "cpu",
) -> pd.DataFrame:
    """Observe the stored runs; train the others if `missing` is "train"."""
    store = store or Store()
    if missing == "train":
        return observe(run_all(configs, store, device=device), configs)
    return observe(
        [run for run in map(store.load, configs) if run is not None], configs
    )


def decide(
    observations: pd.DataFrame, level: float = 0.95, claims: dict[str, Claim] = CLAIMS
) -> pd.DataFrame:
    """Decide every claim on every data set that it is about, alone and by Holm among all."""
    theirs = published_observations().drop_duplicates(
        MATCH
    )  # the main table comes first
    printed = {name: Scores(rows) for name, rows in theirs.groupby("stands_for")}
    ours = {name: Scores(rows) for name, rows in observations.groupby("dataset")}
    order, nothing, rows = in_turn(observations), Scores(observations.iloc[:0]), []
    for name, claim in claims.items():
        for paper in claim.on:
            head = {"claim": name, "statement": claim.statement, "source": claim.source}
            head |= {"test": claim.test, "unit": claim.unit, "over": claim.over}
            head |= {"stands_for": paper}
            theirs = claim.decide(printed[paper], level)["effect"]
            head["published"] = claim.printed.get(paper, theirs)
            datasets = order.loc[order["stands_for"] == paper, ["dataset", "data"]]
            decisions = [
                head
                | {"dataset": dataset, "data": data}
                | claim.decide(ours[dataset], level)
                for dataset, data in datasets.to_numpy()
            ]
            run = [row for row in decisions if row["alone"] != "not run"]
            nowhere = head | {"dataset": "", "data": ""} | claim.decide(nothing, level)
            rows += run or decisions[:1] or [nowhere]
    decided = pd.DataFrame(rows)
    return decided.assign(verdict=corrected(decided, level))


def corrected(decided: pd.DataFrame, level: float) -> pd.Series:
    """Return the verdicts after Holm's correction among all rows."""
    clear = decided["alone"].isin(list(WORDS))
    lost = clear & (holm(decided["p"]) >= 1 - level)
    return decided["alone"].mask(lost, "undecided")


def account(decided: pd.DataFrame) -> pd.DataFrame:
    """Lay the decided claims out as text, a row for each claim and data set."""
    rows = list(decided.itertuples())
    columns = {
        "claim": [row.statement for row in rows],
        "data": [_data(row) for row in rows],
        "after Holm": [_verdict(row, row.verdict) for row in rows],
        "uncorrected": [_verdict(row, row.alone) for row in rows],
        "effect": [_effect(row) for row in rows],
        "weakest cell": [_cells(row) for row in rows],
        **{metric: _by_itself(decided, metric) for metric in METRICS},
        "paper": [
            "" if np.isnan(row.published) else f"{row.published:+.1f}" for row in rows
        ],
        "seeds": [row.seeds or "" for row in rows],
        "where": [row.source for row in rows],
    }
    return pd.DataFrame(columns)


def disagreements(decided: pd.DataFrame) -> pd.DataFrame:
    """Lay out the claims that data sets for the same one of the paper decide differently."""
    run = decided[decided["alone"] != "not run"]
    several = run.groupby(["claim", "stands_for"])["alone"].transform("nunique") > 1
    return account(run[several])[
        ["claim", "data", "uncorrected", "effect", "paper", "seeds"]
    ]


def findings(runs: Sequence[Run], configs: Sequence[RunConfig], *names: str) -> str:
    """Lay out claims as Markdown, each decided by itself on a notebook's own runs."""
    claims = {name: CLAIMS[name] for name in names}
    decided = decide(observe(runs, configs), claims=claims)
    table = account(decided[decided["alone"] != "not run"])
    columns = [
        "claim",
        "data",
        "uncorrected",
        "effect",
        "weakest cell",
        *METRICS,
        "paper",
    ]
    return as_markdown(table[columns].rename(columns={"uncorrected": "verdict"}))


def as_markdown(table: pd.DataFrame) -> str:
    """Return a table of text as Markdown."""
    lines = [table.columns, ["---"] * len(table.columns), *table.astype(str).to_numpy()]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _data(row) -> str:
    if row.data in ("", RELATIONS[0]):
        return row.stands_for
    some = "part of " if row.data == RELATIONS[1] else ""
    return f"{row.dataset} [{some}{row.stands_for}]"


def _effect(row) -> str:
    if row.alone == "not run":
        return ""
    digits = 2 if row.unit == "rank correlation" else 1
    low, high = (f"{value:+.{digits}f}" for value in (row.low, row.high))
    interval = f" [{low}, {high}]" if row.seeds > 1 else ""
    return f"{row.effect:+.{digits}f}{interval} {row.unit}"


def _cells(row) -> str:
    """Say where a claim about several cells is weakest, and in how many it is clear."""
    if not row.weakest:
        return ""
    clear = f"clearly above in {row.above} of {row.cells}, below in {row.below}"
    return f"{row.weakest}; {clear}"


def _by_itself(decided: pd.DataFrame, metric: str) -> list[str]:
    names = [f"{metric} {name}" for name in ("effect", "low", "high")]
    return [
        "" if np.isnan(effect) else f"{effect:+.1f} [{low:+.1f}, {high:+.1f}]"
        for effect, low, high in decided[names].to_numpy(float)
    ]


def _verdict(row, verdict: str) -> str:
    """Say a verdict; of a narrow interval how large a difference it leaves open."""
    if verdict != "no difference":
        return verdict
    digits = 2 if row.unit == "rank correlation" else 1
    return f"no difference larger than {max(abs(row.low), abs(row.high)):.{digits}f}"


def counts(decided: pd.DataFrame) -> pd.DataFrame:
    """Count the rows by verdict, real images first and apart from stand-ins."""
    real = decided["data"].map(
        lambda data: "stand-ins" if data == RELATIONS[-1] else "real images"
    )
    run = decided[decided["verdict"] != "not run"]
    table = run.groupby([real.rename("images"), "verdict"]).size().unstack(fill_value=0)
    table = table.reindex(["real images", "stand-ins"]).dropna(how="all").astype(int)
    table = table.reindex(columns=list(VERDICTS[:-1]), fill_value=0)
    return table.assign(rows=table.sum(axis=1))


def plot_agreement(frame: pd.DataFrame, ax: Axes) -> Axes:
    """Draw `cells` that were run over the paper's; marks of stand-ins are open."""
    if below := int((frame["ours"] < FLOOR).sum()):
        ax.text(
            103,
            FLOOR,
            f"{below} lower",
            ha="right",
            va="center",
            color="0.35",
            fontsize=8,
        )
    frame = frame.assign(ours=frame["ours"].clip(FLOOR))
    looks = looks_of(frame["method"])
    for method, look in looks.items():
        for data, rows in frame[frame["method"] == method].groupby("data"):
            fill = "none" if data == RELATIONS[-1] else look["color"]
            style = {
                "edgecolors": look["color"],
                "facecolors": fill,
                "zorder": look["zorder"],
            }
            ax.scatter(
                rows["theirs"],
                rows["ours"],
                s=16,
                linewidths=0.9,
                marker=look["marker"],
                **style,
            )
    ax.plot([0, 100], [0, 100], color="0.35", linewidth=1, linestyle="--", zorder=0)
    lowest = min(0, frame[["theirs", "ours"]].min().min())  # forgetting may be below 0
    ticks = range(-25 if lowest < 0 else 0, 101, 25)
    ax.set(
        xlabel="paper (%)",
        ylabel="ours (%)",
        aspect="equal",
        xticks=ticks,
        yticks=ticks,
    )
    ax.set(xlim=(lowest - 3, 103), ylim=(lowest - 3, 103))
    marks = {
        name: (look["marker"], look["color"], "none") for name, look in looks.items()
    }
    marks |= {
        "paper's data, or a part": ("o", "0.4", "0.4"),
        "stand-in": ("o", "0.4", "none"),
    }
    handles = [
        Line2D(
            [],
            [],
            marker=marker,
            color=colour,
            markerfacecolor=fill,
            ls="",
            markersize=5,
        )
        for marker, colour, fill in marks.values()
    ]
    ax.legend(handles, list(marks))
    return ax


def plot_claims(frame: pd.DataFrame, ax: Axes) -> Axes:
    """Draw each effect of `decide`, its interval and verdict; a tick is the paper's."""
    for y, row in enumerate(frame.itertuples()):
        colour, marker = VERDICT_STYLES[row.verdict]
        ax.plot(
            row.published,
            y,
            marker="|",
            color="black",
            markersize=7,
            linestyle="",
            zorder=2,
        )
        if row.verdict != "not run":
            fill = colour if np.isfinite(row.low) else "white"  # of one seed
            ax.plot([row.low, row.high], [y, y], color=colour, linewidth=2, zorder=3)
            look = {"marker": marker, "markerfacecolor": fill, "ms": 5}
            ax.plot(row.effect, y, color=colour, zorder=4, **look)
    first = ~frame["claim"].duplicated()
    for begin in np.flatnonzero(first & (first.cumsum() % 2 == 1)):
        lines = (frame["claim"] == frame["claim"].iloc[begin]).sum()
        ax.axhspan(
            begin - 0.5, begin + lines - 0.5, color="0.95", zorder=0, linewidth=0
        )
    ax.axvline(0, color="black", linewidth=0.8, zorder=1)
    ax.set_xscale("symlog", linthresh=LINEAR, linscale=1.2)
    values = frame[["effect", "low", "high", "published"]].to_numpy(float)
    values = 1.4 * np.append(values[np.isfinite(values)], [-LINEAR, LINEAR])
    values = np.append(values, ax.get_xlim())  # axes may share their scale
    ax.set(xlim=(values.min(), values.max()), ylim=(len(frame) - 0.5, -0.5))
    ticks = [tick for tick in TICKS if values.min() < tick < values.max()]
    ax.set_xticks(ticks, [f"{tick:+d}" if tick else "0" for tick in ticks])
    ax.minorticks_off()
    names = frame["statement"].where(first, "") + "   " + frame.apply(_short, axis=1)
    ax.set_yticks(range(len(frame)), names)
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel(
        f"against the claim < 0 < for it\n(mostly points; logarithmic beyond {LINEAR})"
    )
    ax.grid(axis="x")
    ax.grid(axis="y", visible=False)
    _explain(frame, ax)
    return ax


def _short(row) -> str:
    """Shorten a data set's name: "cm" for cocoseq-mini, "d70" for digits70seq."""
    words = (row.dataset or row.stands_for.lower()).split("-")
    return "".join(word[0] + "".join(filter(str.isdigit, word)) for word in words)


def _explain(frame: pd.DataFrame, ax: Axes) -> None:
    handles = {}
    for name, (colour, marker) in VERDICT_STYLES.items():
        title = name if marker else f"no mark: {name}"
        handles[title] = Line2D(
            [], [], color=colour, marker=marker, ls="-" if marker else "", ms=5
        )
    open_mark = {
        "color": "#777777",
        "marker": "D",
        "markerfacecolor": "white",
        "linestyle": "",
    }
    handles["open: one seed"] = Line2D([], [], markersize=5, **open_mark)
    handles["paper's own numbers"] = Line2D(
        [], [], color="black", marker="|", linestyle=""
    )
    names = [f"{_short(row)} {_data(row)}" for row in frame.itertuples()]
    for name in dict.fromkeys(names):
        handles[name] = Line2D([], [], linestyle="")
    ax.legend(handles.values(), handles.keys())
