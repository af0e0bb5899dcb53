"""Grids of configurations, and how captions count their seeds."""

import pytest

from prslib.training.grids import configs, configs_of, paired, seeds_told

TINY = "digits70tiny"


def test_costly_methods_take_their_own_seeds_and_come_first():
    made = configs_of(["CRS", "GSS"], [0, 1, 2], ["GSS", "EWC"], [4], dataset=TINY)
    assert [(c.method, c.seed) for c in made] == [
        ("GSS", 4),
        ("CRS", 0),
        ("CRS", 1),
        ("CRS", 2),
    ]
    plain = configs_of(["CRS", "PRS"], [0], dataset=[TINY, "digits49tiny"])
    assert plain == configs(
        dataset=[TINY, "digits49tiny"], method=["CRS", "PRS"], seed=0
    )
    both = configs_of(
        ["CRS"], [0, 1], ["digits49tiny"], [5], dataset=["digits70tiny", "digits49tiny"]
    )
    assert [config.seed for config in both] == [0, 1, 5]
    with pytest.raises(ValueError, match="costly_seeds of GSS, got none"):
        configs_of(["GSS"], [0], ["GSS"], [])


def test_pairs_need_one_length():
    assert paired(dataset=["a"], rho=[0.5]) == [{"dataset": "a", "rho": 0.5}]
    with pytest.raises(ValueError, match="got 2 of dataset, 1 of rho"):
        paired(dataset=["a", "b"], rho=[0.0])


def test_captions_count_the_seeds():
    assert seeds_told([0, 1], ["GSS"], [0]) == "2 seeds (GSS: 1)"
    assert seeds_told([0, 1], ["GSS"], [2, 3]) == "2 seeds"
