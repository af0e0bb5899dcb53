"""Compare the scores of runs on a GPU with those of the same runs on a CPU.

Run ``python bench/agreement.py``: every method on features of photographs, some seeds,
on both devices. It writes figures/bench/agreement_<device>.csv: by method the mean of
the differences in overall mAP at the end, device minus CPU, the largest, the sample
standard deviation over seeds on the CPU, all in points, and the share of memory slots
that hold the same labels. A device that trains as a CPU does differs by less than seeds
do, and the samplers that look at labels alone keep the same samples.
"""

import math

import pandas as pd
import torch
from joblib import Parallel, cpu_count, delayed
from shared import device_name, parser, write

from prslib import DATASETS, METHODS, Run, RunConfig, run


def mean_precision(run: Run) -> float:
    """Return the overall mAP after the last task, in points."""
    recipe = DATASETS[run.config.dataset].recipe
    scores = run.scores[run.scores["test_set"] == recipe.test_set]
    last = scores["trained_tasks"] == scores["trained_tasks"].max()
    overall = (scores["group"] == "overall") & (scores["metric"] == "mAP")
    (value,) = scores.loc[last & overall & (scores["task"] == "seen"), "value"]
    return 100 * value


def same_memory(one: Run, other: Run) -> float:
    """Return the share of slots with the same labels; NaN without a memory."""
    if len(one.memory_labels) == 0:
        return math.nan
    return float((one.memory_labels == other.memory_labels).all(axis=1).mean())


def compare(dataset: str, seeds: int, device: str) -> pd.DataFrame:
    """Train every method on both devices and return a row for each."""
    configs = [
        RunConfig(dataset, name, seed=i) for name in METHODS for i in range(seeds)
    ]
    pool = Parallel(cpu_count())
    sides = [
        pool(delayed(run)(config, where) for config in configs)
        for where in ("cpu", device)
    ]
    rows = [
        {
            "method": config.method,
            "cpu": mean_precision(cpu),
            "difference": mean_precision(other) - mean_precision(cpu),
            "same_memory": same_memory(cpu, other),
        }
        for config, cpu, other in zip(configs, *sides, strict=True)
    ]
    by_method = pd.DataFrame(rows).groupby("method", sort=False)
    return pd.DataFrame(
        {
            "runs": by_method.size(),
            "mean_difference": by_method["difference"].mean(),
            "largest": by_method["difference"].agg(lambda column: column.abs().max()),
            "sd_of_seeds": by_method["cpu"].std(),
            "same_memory": by_method["same_memory"].mean(),
        }
    ).reset_index()


def main() -> None:
    """Train, print the table and write it."""
    line = parser(__doc__)
    default = "cuda" if torch.cuda.is_available() else "cpu"
    line.add_argument("--device", default=default)
    line.add_argument("--dataset", default="cocoseq-mini")
    line.add_argument("--seeds", type=int, default=5)
    options = line.parse_args()
    table = compare(options.dataset, options.seeds, options.device)
    name = device_name(torch.device(options.device))
    print(f"{options.dataset}, {name.upper()}, PyTorch {torch.__version__}")
    print(table.to_string(index=False, float_format="{:.3g}".format))
    write(
        table.assign(dataset=options.dataset), f"agreement_{name}", float_format="%.4g"
    )


if __name__ == "__main__":
    main()
