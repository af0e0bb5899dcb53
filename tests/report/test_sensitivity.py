"""Which findings survive other settings."""

import pandas as pd
from cells import functions_of

topic = functions_of("sensitivity")


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
