"""The file of all scores, made of stored runs."""

import pandas as pd
import pytest

from prslib import RunConfig, cli, run
from prslib.paths import figures_dir
from prslib.report import all_scores
from prslib.runs import path_of, save

TINY = {"dataset": "cocoseq-tiny", "test_resamples": 0}
CONFIGS = [
    RunConfig(method="CRS", seed=1, tuned_threshold=True, **TINY),
    RunConfig(method="CRS", seed=1, epochs=2, **TINY),
    RunConfig(method="CRS", seed=1, features_per_class=1, **TINY),
    RunConfig(method="Multitask", loss="focal", loss_options={"gamma": 1.0}, **TINY),
]
KEYS = ["others", "test_set", "group", "measure", "metric"]


@pytest.fixture(scope="module")
def trained():
    return [run(config) for config in CONFIGS]


@pytest.fixture
def stored(trained, tmp_path, monkeypatch):
    """Runs that are stored, and two notebooks that ask for some of them each."""
    monkeypatch.setenv("PRSLIB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PRSLIB_FIGURES", str(tmp_path / "figures"))
    asked = {"rho_sweep": CONFIGS[:3], "main_results": CONFIGS[1:]}

    def list_runs(_profile, name):
        return {str(path_of(config)): ("cpu", config) for config in asked.get(name, [])}

    monkeypatch.setattr(all_scores, "list_runs", list_runs)
    for one in trained:
        save(one, path_of(one.config))
    return trained


def test_a_row_is_a_final_score_of_a_run_in_percent(stored, capsys):
    assert cli.main(["scores", "--profile", "smoke"]) == 0
    file = figures_dir("smoke") / "scores.csv.xz"
    assert capsys.readouterr().out.endswith("0 of 4 runs are missing\n")
    rows = pd.read_csv(file, keep_default_na=False)
    assert rows.duplicated(list(rows.columns.drop("value"))).sum() == 0
    focal = "loss=focal; loss_options={'gamma': 1.0}"
    assert set(rows["others"]) == {"", "epochs=2", focal}
    assert set(rows.loc[rows["others"] == focal, "measure"]) == {"score"}
    values = rows.set_index(KEYS)["value"]
    first = stored[0].scores.query("trained_tasks == 4 and task == 'seen'")
    first = first.set_index(["test_set", "group", "metric"])["value"]
    metrics = ["mAP", "O-P", "C-F1 (tuned threshold)"]
    for test_set in ("balanced", "imbalanced", "open"):
        for metric in metrics:
            ours = values["", test_set, "minority", "score", metric]
            theirs = 100 * first[test_set, "minority", metric]
            assert ours == pytest.approx(theirs, rel=6e-4)


def test_the_file_is_of_what_is_stored_and_the_same_each_time(stored, capsys):
    file = figures_dir("smoke") / "scores.csv.xz"
    cli.main(["scores", "--profile", "smoke"])
    before = file.read_bytes()
    cli.main(["scores", "--profile", "smoke"])
    assert file.read_bytes() == before
    path_of(CONFIGS[1]).unlink()
    capsys.readouterr()
    cli.main(["scores", "--profile", "smoke"])
    assert "1 of 4 runs are missing" in capsys.readouterr().out
    assert "epochs=2" not in set(pd.read_csv(file)["others"])
    for config in CONFIGS:
        path_of(config).unlink(missing_ok=True)
    assert cli.main(["scores", "--profile", "smoke"]) == 1
    assert "expected stored runs of profile smoke, got none" in capsys.readouterr().err
    assert file.is_file()
