"""Check the rule of `prslib.trial`: does another sampler score higher than the named one?

Run ``python studies/trial_rule.py``, which takes some minutes on two cores. Each real
stream is tried with five seeds and, to check the answer, with twenty others. An answer is
wrong if, with the twenty seeds, the 95 % interval of another sampler minus the named one,
over seeds only, is above 0. The script writes figures/studies/trial_rule.csv, with a row
per stream, metric and test.

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
PLACE = ["metric", "test_set"]
ANSWERS = {
    "take_few": "named",
    "alike_few": "alike",
    "take_many": "with_20_seeds",
    "alike_many": "alike_with_20_seeds",
}


def try_stream(name: str, seeds: range) -> Trial:
    """Try the samplers on the training samples of a stream, in its tasks."""
    data = load_dataset(name)
    train = data.train
    columns = {"task": train.task, "groups": train.unit}
    columns["class_names"] = data.class_names
    return trial(train.inputs, train.labels, seeds=seeds, **columns)


def find_better(scores: pd.DataFrame, named: str) -> list[str]:
    """Return the samplers that are significantly above a named one."""
    values = scores.pivot(index="seed", columns="method", values="value")
    better = []
    for method in values.columns.drop(named):
        gaps = (values[method] - values[named]).to_numpy()
        if interval(gaps[:, None, None]).low > 0:
            better.append(method)
    return better


def check_stream(name: str) -> pd.DataFrame:
    """Compare the samplers that few seeds name with the results of many seeds."""
    few, many = try_stream(name, FEW), try_stream(name, MANY)
    table = few.answers.merge(many.answers, on=PLACE, suffixes=("_few", "_many"))
    table = table.rename(columns=ANSWERS)
    overall = many.scores[many.scores["group"] == "overall"]
    scores = dict(list(overall.groupby(PLACE)))
    table["better"] = [
        ", ".join(find_better(scores[metric, test_set], named)) if named else ""
        for metric, test_set, named in table[[*PLACE, "named"]].to_numpy()
    ]
    columns = ["dataset", *PLACE, *ANSWERS.values(), "better"]
    return table.assign(dataset=name)[columns]


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    for name in STREAMS:
        save(check_stream(name), "trial_rule")


if __name__ == "__main__":
    main()
