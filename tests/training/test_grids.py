import pytest

from prslib.training.config import configs_of, paired, seeds_told


def test_costly_methods_take_their_own_seeds_and_come_first():
    made = configs_of(["CRS", "GSS"], [0, 1, 2], ["GSS", "EWC"], [4], dataset="digits70tiny")
    assert [(c.method, c.seed) for c in made] == [("GSS", 4), ("CRS", 0), ("CRS", 1), ("CRS", 2)]


def test_nothing_costly_is_the_whole_grid():
    made = configs_of(["CRS", "PRS"], [0], dataset=["digits70tiny", "digits49tiny"])
    assert [(c.dataset, c.method) for c in made] == [
        ("digits70tiny", "CRS"),
        ("digits70tiny", "PRS"),
        ("digits49tiny", "CRS"),
        ("digits49tiny", "PRS"),
    ]


def test_costly_methods_need_a_seed():
    with pytest.raises(ValueError, match="at least one seed for GSS, got none; give costly_seeds"):
        configs_of(["GSS"], [0], ["GSS"], [])


def test_pairs_need_one_length():
    assert paired(dataset=["a"], rho=[0.5]) == [{"dataset": "a", "rho": 0.5}]
    with pytest.raises(ValueError, match="got 2 of dataset, 1 of rho"):
        paired(dataset=["a", "b"], rho=[0.0])


def test_captions_count_the_seeds():
    assert seeds_told([0]) == "1 seed"
    assert seeds_told([0, 1], ["GSS"], [0]) == "2 seeds (GSS: 1)"
