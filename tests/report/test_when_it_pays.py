"""How streams and classes are measured where a balanced memory may pay."""

import pandas as pd
import pytest
from cells import functions_of
from fake_runs import fake_run

from prslib.datasets import load_dataset
from prslib.report.measures import class_test
from prslib.train import RunConfig

topic = functions_of("when_it_pays")


@pytest.mark.parametrize("dataset", ["cocoseq-tiny", "reutersseq-tiny"])
def test_the_change_of_a_class_is_that_of_its_ap_at_the_end(dataset):
    data = load_dataset(dataset, images=False)
    runs = []
    for method, ap in {"CRS": 0.2, "CBRS": 0.5}.items():
        for seed in (0, 1):

            def value(cells, best=ap + 0.1 * seed):
                return best * (cells["trained_tasks"] == data.num_tasks)

            config = RunConfig(dataset, method, seed)
            tests = [class_test(dataset)]
            runs.append(fake_run(config, value, tests, with_classes=True))
    table = topic.class_changes(runs).set_index("class")
    assert sorted(table.index) == sorted(data.class_names)
    assert table["change"].to_numpy() == pytest.approx(30)
    assert (table["share"] == 1).all()
    ratio = data.class_freq / data.class_freq.mean()
    assert table.loc[[*data.class_names], "ratio"].tolist() == ratio.tolist()


def test_bins_weigh_streams_alike():
    classes = pd.DataFrame(
        {
            "share": 1.0,
            "bin": ["below 1/4"] * 4,
            "dataset": ["a", "a", "a", "b"],
            "change": [1.0, 2.0, 3.0, 6.0],
        }
    )
    row = topic.by_bin(classes, "bin").iloc[0]
    assert (row["change"], row["streams"]) == (4.0, 2)
    assert row["low"] < 4 < row["high"]


def test_a_forecast_leaves_out_the_stream_that_suggested_it():
    rows = pd.DataFrame(
        {
            "dataset": ["reutersseq", *"abcdefgh"],
            "difference": [9.0, *range(8)],
            "max:min": [1.0, 1, 0, *range(2, 8)],
            "small": [0.0, 6, 7, *reversed(range(6))],
            "method": "CBRS",
            "group": "overall",
            "metric": "mAP",
            "test_set": "balanced",
        }
    )
    constant, rising, falling = topic.forecasts(rows).to_dict("records")
    assert constant["right"] == "8 of 9"
    assert rising["correlation"] > 0.9 and rising["predicts"]
    assert falling["correlation"] < -0.9 and not falling["predicts"]
