import numpy as np
import pandas as pd
import pytest
from fake_runs import fake_run

from prslib.cli import main
from prslib.report import verify
from prslib.report.tables import final, scores_of
from prslib.training.config import configs

WANTED = configs(dataset="digits70tiny", method=list(verify.METHODS), seed=[0, 1, 2])


def made(config):
    return fake_run(config, lambda rows: np.full(len(rows), 0.5 + 0.01 * config.seed))


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A profile with the table of runs and a table of means; git has the same, if any."""
    folder, texts = tmp_path / "smoke", {}
    folder.mkdir()
    rows = final(scores_of([made(config) for config in WANTED]))
    tables = {verify.TABLE.format("digits70tiny"): rows[rows["measure"] == "score"]}
    tables["other"] = pd.DataFrame({"place": ["a", "b"], "mean": [1.0, 2.0], "sd": [0.5, 0.5]})
    for name, table in tables.items():
        texts[name] = table.to_csv(index=False, float_format="%.6g")
        (folder / f"{name}.csv").write_text(texts[name])
    monkeypatch.setenv("PRSLIB_FIGURES", str(tmp_path))
    monkeypatch.setattr(verify, "_committed", lambda profile: texts.items())
    monkeypatch.setattr(verify, "wanted", lambda *_: WANTED)
    monkeypatch.setattr(verify, "run_all", lambda asked, store: [made(c) for c in asked])
    return folder, texts


def test_the_same_is_said_to_be_so(checkout, capsys):
    assert main(["verify", "--profile", "smoke"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("torch ") and "; processor " in said
    assert "same bytes: 3 of 3\n" in said
    assert [config.seed for config in verify.chosen("smoke")] == [0] * len(verify.METHODS)


def test_tables_and_runs_are_measured_by_the_seeds(checkout, monkeypatch):
    folder, texts = checkout
    (folder / "other.csv").write_text("place,mean,sd\na,1.3,0.5\nb,2.4,0.5\n")
    lines, within = verify.verify("smoke")
    assert within and "same bytes: 2 of 3" in lines
    assert "other: 0.71 s.d. over seeds apart" in lines  # of 0.3 and 0.4 in units of 0.5
    monkeypatch.setattr(verify, "run_all", lambda a, s: [made(c) for c in WANTED if c.seed == 2])
    monkeypatch.setattr(verify, "final", lambda rows: final(rows.assign(seed=0)))
    lines, within = verify.verify("smoke")
    assert not within  # two s.d. from the committed runs of seed 0
    assert "trained anew: 2.00 s.d. over seeds apart" in "\n".join(lines)
    assert verify._apart(texts["other"], "place,mean,sd\na,1.3,0.5\n") == np.inf
    assert verify._apart("a\n1\n", "a\n2\n") == -1


def test_without_git_or_figures_it_says_so(checkout, monkeypatch, capsys):
    monkeypatch.setattr(verify, "_committed", lambda profile: [])
    lines, within = verify.verify("smoke")
    assert within and "no commit to ask (git): the runs" in "\n".join(lines)
    (checkout[0] / f"{verify.TABLE.format('digits70tiny')}.csv").unlink()
    assert main(["verify", "--profile", "smoke"]) == 1
    assert "run `make figures PROFILE=smoke` first" in capsys.readouterr().err
