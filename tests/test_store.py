import dataclasses

import numpy as np
import pandas as pd
import pytest

from prslib.config import RunConfig
from prslib.experiment import Run
from prslib.store import Store


@pytest.fixture
def finished():
    scores = pd.DataFrame(
        {
            "dataset": "digits70tiny",
            "method": ["PRS", "CRS", "Multitask"],
            "rho": [0.1, np.nan, np.nan],
            "memory_size": [50, 50, 0],
            "schedule": ["0,3,1,2", "0,3,1,2", ""],
            "seed": 0,
            "trained_tasks": [1, 4, 4],
            "task": ["seen", "0", "3"],
            "group": ["overall", "minority", "red 3"],
            "metric": "mAP",
            "value": [1 / 3, np.nan, 1e-17],
        }
    )
    labels = np.eye(5, 70, dtype=bool)
    return Run(RunConfig(dataset="digits70tiny", rho=0.1), scores, labels)


def test_a_run_comes_back_bit_for_bit(tmp_path, finished):
    store = Store(tmp_path / "deep" / "runs")
    assert store.load(finished.config) is None
    store.save(finished)
    loaded = store.load(finished.config)
    pd.testing.assert_frame_equal(loaded.scores, finished.scores, check_exact=True)
    np.testing.assert_array_equal(loaded.memory_labels, finished.memory_labels)
    assert loaded.memory_labels.dtype == bool
    assert store.load(dataclasses.replace(finished.config, rho=0.2)) is None


@pytest.fixture
def with_extras(finished):
    columns = ["dataset", "method", "rho", "memory_size", "schedule", "seed"]
    rows = finished.scores[columns].assign(images=[10, 20, 30], samples=5, value=[0.1, 1e-17, 3.0])
    config = dataclasses.replace(finished.config, features_per_class=2, variance_points=3)
    features = np.linspace(0, 1, 12, dtype=np.float32).reshape(4, 3)
    extras = {"features": features, "gradient_variance": rows}
    return dataclasses.replace(finished, config=config, **extras)


def test_what_a_run_leaves_on_top_comes_back_bit_for_bit(tmp_path, finished, with_extras):
    store = Store(tmp_path)
    store.save(with_extras)
    loaded = store.load(with_extras.config)
    np.testing.assert_array_equal(loaded.features, with_extras.features)
    assert loaded.features.dtype == np.float32
    expected = with_extras.gradient_variance
    pd.testing.assert_frame_equal(loaded.gradient_variance, expected, check_exact=True)
    assert store.load(finished.config) is None  # another configuration
    store.save(finished)
    assert store.load(finished.config).features is None
    assert store.load(finished.config).gradient_variance is None


def test_a_run_without_what_was_asked_for_counts_as_absent(tmp_path, with_extras):
    store = Store(tmp_path)
    store.save(dataclasses.replace(with_extras, features=None))
    with pytest.warns(UserWarning, match=r"features\.npy.* it will be trained again"):
        assert store.load(with_extras.config) is None


def test_equal_runs_are_equal_bytes(tmp_path, finished):
    first, second = Store(tmp_path / "a").save(finished), Store(tmp_path / "b").save(finished)
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize("kept", [0, 0.2, 0.5, 0.99])
def test_a_file_cut_short_warns_and_counts_as_absent(tmp_path, finished, kept):
    store = Store(tmp_path)
    path = store.save(finished)
    path.write_bytes(path.read_bytes()[: int(kept * path.stat().st_size)])
    with pytest.warns(UserWarning, match="cannot be read .* it will be trained again"):
        assert store.load(finished.config) is None
    store.save(finished)
    assert store.load(finished.config) is not None


def test_a_flipped_byte_is_noticed(tmp_path, finished):
    store = Store(tmp_path)
    path = store.save(finished)
    content = bytearray(path.read_bytes())
    content[content.index(b"scores.csv") + 40] ^= 0xFF
    path.write_bytes(content)
    with pytest.warns(UserWarning, match="cannot be read"):
        assert store.load(finished.config) is None


def test_a_failed_write_leaves_the_old_file_and_no_rest(tmp_path, finished, monkeypatch):
    store = Store(tmp_path)
    before = store.save(finished).read_bytes()

    def full(*_args, **_kwargs):
        raise OSError("No space left on device")

    monkeypatch.setattr("zipfile.ZipFile.writestr", full)
    with pytest.raises(OSError, match="No space"):
        store.save(finished)
    assert [file.read_bytes() for file in tmp_path.iterdir()] == [before]
