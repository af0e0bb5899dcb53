"""Conclude from a trial's scores which sampler to use for which score, and what it costs."""

from itertools import product
from typing import cast

import numpy as np
import pandas as pd
from scipy import special

from prslib.metrics import values_and_draws
from prslib.statistics import DECIDING, LEVEL, TEST_WORDS, Interval, interval
from prslib.trial_streams import Stream

BASE = "CRS"
TESTS = ("balanced", "imbalanced")
# tests and metrics for which a sampler is named; the second list is for streams with
# one label per sample
QUESTIONS = [*product(TESTS, ("mAP", "C-F1")), ("imbalanced", "O-F1")]
ONE_LABEL = [*product(TESTS, ("mAP", "accuracy"))]
MANY_SEEDS = 20  # seeds for which the necessary size of a test is estimated
MOST_SAMPLES = 1_000_000  # larger tests are not proposed


def compare_all(scores: pd.DataFrame) -> pd.DataFrame:
    """Return each sampler minus CRS over seeds, a row per memory, test, group and metric."""
    table = []
    keys = ["memory_size", "test_set", "group", "metric"]
    for key, rows in scores.groupby(keys, sort=False):
        values = values_by_method(rows)
        for method in [name for name in values if name != BASE]:
            gap = gap_of(values, method, BASE)
            numbers = gap.effect, gap.low, gap.high, gap.seeds
            table.append((*cast(tuple, key), method, *numbers))
    columns = [*keys, "method", "difference", "low", "high", "seeds"]
    return pd.DataFrame(table, columns=columns)


def values_by_method(rows: pd.DataFrame) -> dict[str, np.ndarray]:
    """Return each method's values and their resamples, (S, 1 + draws), sorted by seed."""
    methods = rows.sort_values("seed").groupby("method", sort=False)
    return {str(name): values_and_draws(part).to_numpy() for name, part in methods}


def answer(made: Stream, scores: pd.DataFrame, size: int, question: tuple) -> dict:
    """Name the sampler to use for one score, or what a conclusive trial would need."""
    test_set, metric = question
    rows = scores[(scores["group"] == "overall") & (scores["memory_size"] == size)]
    rows = rows[(rows["metric"] == metric) & (rows["test_set"] == test_set)]
    values = values_by_method(rows)
    ranked = sorted(values, key=lambda name: -values[name][:, 0].mean())
    rivals = [name for name in ranked if name != BASE]
    level = 1 - (1 - LEVEL) / len(rivals)  # Bonferroni's correction
    above = [name for name in rivals if gap_of(values, name, BASE, level).low > 0]
    below = [name for name in rivals if gap_of(values, name, BASE).high < 0]
    row = {"memory_size": size, "metric": metric, "test_set": test_set}
    row |= {"take": "", "alike": ""}
    gap = gap_of(values, rivals[0], BASE)
    difference = f"{say_sampler(rivals[0])} minus {BASE} is {gap}."
    if gap.seeds < DECIDING:
        text = f"no recommendation with fewer than {DECIDING} seeds. {difference}"
    elif ranked[0] in above:
        alike = [name for name in above[1:] if gap_of(values, ranked[0], name).low <= 0]
        *others, last = map(say_sampler, [ranked[0], *alike])
        text = f"use {', '.join(others)} or {last}" if alike else f"use {last}"
        text += ", which do not differ significantly" if alike else ""
        text += f". {difference}"
        row |= {"take": ranked[0], "alike": "; ".join(alike)}
    elif ranked[0] == BASE and len(below) == len(rivals):
        text = f"use {BASE}. {difference}"
        row["take"] = BASE
    else:
        samples = len(made.data.tests[test_set])
        needed = estimate_needed(values[rivals[0]] - values[BASE], samples, level)
        if gap.low > 0:
            why = f"not significant if corrected for {len(rivals)} comparisons"
            difference = f"{difference[:-1]}, which is {why}."
        text = f"the data do not suffice for a recommendation. {difference} {needed}"
    return row | {"sentence": f"{metric}, {TEST_WORDS[test_set]}: {text}"}


def say_sampler(method: str) -> str:
    """Return the name of a sampler for a sentence, such as "PRS with rho 0.5"."""
    return method.replace(", rho", " with rho")


def gap_of(
    values: dict[str, np.ndarray], method: str, than: str, level: float = LEVEL
) -> Interval:
    """Return the interval of one method minus another."""
    return interval((values[method] - values[than])[:, None], level=level)


def estimate_needed(gaps: np.ndarray, samples: int, level: float) -> str:
    """Return in words how many test samples would make a difference significant.

    `gaps` (S, 1 + draws) are the differences by seed; `samples` is the present number.
    """
    of_seeds = gaps[:, 0].var(ddof=1) / MANY_SEEDS
    of_samples = gaps[:, 1:].mean(axis=0).var(ddof=1)
    quantile = special.stdtrit(MANY_SEEDS - 1, (1 + level) / 2)
    # the largest variance over samples with which the difference is significant
    margin = (gaps[:, 0].mean() / quantile) ** 2 - of_seeds
    needed = samples * of_samples / margin if margin > 0 else np.inf
    if needed > MOST_SAMPLES:
        return f"With {MANY_SEEDS} seeds, no test would be large enough for so small a difference."
    if needed <= samples:
        return f"If this is the true difference, {MANY_SEEDS} seeds would suffice."
    digits = 1 - int(np.floor(np.log10(needed)))
    count = max(round(needed, digits), samples + 1)
    return (
        f"If this is the true difference, {MANY_SEEDS} seeds and about {count:,.0f} test "
        f"samples (instead of {samples:,}) would suffice."
    )


def say_costs(answers: pd.DataFrame, differences: pd.DataFrame) -> list[str]:
    """Return in words by how much each named sampler is significantly below CRS."""
    asked = answers[["memory_size", "metric", "test_set"]]
    overall = differences[differences["group"] == "overall"].merge(asked)
    majority = differences[differences["group"] == "majority"].merge(asked)
    lost = pd.concat([overall, majority[majority["metric"] == "C-F1"]])
    lost = lost[lost["high"] < 0]
    sentences = []
    named = dict.fromkeys(
        (size, method)
        for size, take, alike in answers[["memory_size", "take", "alike"]].to_numpy()
        for method in [take, *alike.split("; ")]
        if method not in ("", BASE)
    )
    for size, method in named:
        rows = lost[(lost["method"] == method) & (lost["memory_size"] == size)]
        costs = [
            f"{row.metric}{' of the majority classes' if row.group == 'majority' else ''}, "
            f"{TEST_WORDS[row.test_set]} ({row.difference:+.1f} points)"
            for row in rows.itertuples()
        ]
        text = f"{say_sampler(method)} is significantly below {BASE} in "
        text += "; ".join(costs) or "no score"
        sentences.append(f"With a memory of {size} samples, {text}.")
    return sentences
