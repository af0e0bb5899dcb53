"""Which findings survive other settings."""

import pandas as pd
from cells import functions_of

from prslib import DATASETS

topic = functions_of("sensitivity")


def test_a_setting_changes_one_field_of_the_data_sets_own():
    recipe = DATASETS["reutersseq"].recipe
    assert topic.changed("reutersseq", "standard") == {}
    assert topic.changed("reutersseq", "step size x 3") == {
        "learning_rate": 3 * recipe.learning_rate
    }
    quarter = topic.changed("reutersseq", "memory x 1/4")
    assert quarter == {"memory_size": round(recipe.memory_size / 4)}
    assert topic.changed("reutersseq", "3 epochs") == {"epochs": 3}


def test_a_finding_survives_where_its_mean_keeps_its_sign():
    rows = pd.DataFrame(
        {
            "setting": ["standard", "3 epochs", "memory x 4", "memory x 1/4"],
            "difference": [1.0, 2.0, -0.5, -3.0],
            "low": [0.5, 1.0, -1.0, -4.0],
            "high": [1.5, 3.0, 0.1, -2.0],
            "clearly": ["above", "above", "", "below"],
        }
    )
    rows = rows.assign(dataset="a", test_set="balanced", metric="mAP", method="CBRS")
    (row,) = topic.survivors(rows).to_dict("records")
    assert (row["settings"], row["survives"]) == (3, 1)
    assert row["turns"] == "memory x 4; MEMORY X 1/4"
