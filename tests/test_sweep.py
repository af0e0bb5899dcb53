import pytest

from prslib import sweep
from prslib.config import RunConfig, configs
from prslib.store import Store

TINY = {"dataset": "digits49tiny", "batch_size": 50}


def test_runs_are_trained_once_and_come_in_order(tmp_path, capfd):
    store = Store(tmp_path)
    wanted = configs(**TINY, method=["CRS", "PRS"], seed=[0])
    runs = sweep.run_all(wanted, store, workers=2)
    assert [run.config for run in runs] == wanted
    assert [set(run.scores["method"]) for run in runs] == [{"CRS"}, {"PRS"}]
    bar = capfd.readouterr().err
    assert "2/2" in bar
    assert "on digits49tiny, seed 0" in bar
    written = {file: file.stat().st_mtime_ns for file in tmp_path.iterdir()}
    again = sweep.run_all([*wanted, wanted[0]], store)
    assert len(again) == 3
    assert written == {file: file.stat().st_mtime_ns for file in tmp_path.iterdir()}
    assert "training" not in capfd.readouterr().err


def test_nothing_is_trained_when_one_configuration_does_not_fit(tmp_path):
    fits = RunConfig(**TINY, method="Finetune")
    too_large = RunConfig(**TINY, method="CRS", memory_size=100_000)
    with pytest.raises(ValueError, match="choose a smaller memory"):
        sweep.run_all([fits, too_large], Store(tmp_path))
    assert not list(tmp_path.iterdir())


def test_what_is_finished_stays_when_the_work_is_interrupted(tmp_path, monkeypatch):
    store = Store(tmp_path)
    wanted = configs(**TINY, method="Finetune", seed=[0, 1, 2])

    def interrupt(*_args):
        raise KeyboardInterrupt

    monkeypatch.setattr(sweep, "describe", interrupt)  # called when the first run has ended
    with pytest.raises(KeyboardInterrupt):
        sweep.run_all(wanted, store, workers=1)
    finished = [config for config in wanted if store.load(config) is not None]
    assert finished == wanted[: len(finished)]
    assert 1 <= len(finished) < 3
