"""Check the rule of `prslib.trial`: does another sampler score higher than the named one?

Run ``python studies/trial_rule.py``, some minutes on two cores. Each real stream is tried
with five seeds and, to check the answer, with twenty others. An answer is wrong if, with
the twenty seeds, the 95 % interval of another sampler minus the named one, over seeds
only, is above 0. The script writes figures/studies/trial_rule.csv, a row per stream,
metric and test.

The rule was fixed before any stream was tried (docs/own_data.md).
"""

import argparse

import pandas as pd
from choosing import save

from prslib import load_dataset, trial
from prslib.statistics import interval
from prslib.trials import Trial

STREAMS = ["cocoseq-mini", "reutersseq", "mdiseq", "clipartseq"]
FEW, MANY = range(5), range(5, 25)


def try_stream(name: str, seeds: range) -> Trial:
    """Try the samplers on the training samples of a stream, in its tasks."""
    data = load_dataset(name)
    train = data.train
    columns = {"task": train.task, "class_names": data.class_names}
    return trial(train.inputs, train.labels, seeds=seeds, **columns)


def find_better(scores: pd.DataFrame, named: str) -> list[str]:
    """Return the samplers that are significantly above a named one."""
    values = scores.pivot(index="seed", columns="method", values="value")
    better = []
    for method in values:
        gaps = (values[method] - values[named]).to_numpy()
        if method != named and interval(gaps[:, None, None]).low > 0:
            better.append(method)
    return better


def check_stream(name: str) -> pd.DataFrame:
    """Compare the samplers named with few seeds with the results of many seeds."""
    few, many = try_stream(name, FEW), try_stream(name, MANY)
    rows = []
    keys = ["metric", "test_set"]
    both = few.answers.merge(many.answers, on=keys, suffixes=("_few", "_many"))
    overall = many.scores[many.scores["group"] == "overall"]
    for row in both.to_dict("records"):
        at = (overall["metric"] == row["metric"]) & (
            overall["test_set"] == row["test_set"]
        )
        named = row["take_few"]
        better = find_better(overall[at], named) if named else []
        rows.append(
            {
                "dataset": name,
                **{key: row[key] for key in keys},
                "named": named,
                "alike": row["alike_few"],
                "with_20_seeds": row["take_many"],
                "alike_with_20_seeds": row["alike_many"],
                "better": ", ".join(better),
            }
        )
    return pd.DataFrame(rows)


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    for name in STREAMS:
        save(check_stream(name), "trial_rule")


if __name__ == "__main__":
    main()
