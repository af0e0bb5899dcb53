import shutil

import numpy as np
import pandas as pd
import pytest
from fake_runs import fake_run

from prslib.cli import main
from prslib.paths import project_root
from prslib.report import committed
from prslib.report.claims import CLAIMS
from prslib.report.tables import GROUPS, final, scores_of
from prslib.training.config import configs


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A copy of README, notebooks and docs beside the committed figures."""
    for name in ("PRSLIB_DATA", "PRSLIB_FIGURES"):
        monkeypatch.delenv(name, raising=False)
    for folder in ("notebooks", "docs"):
        shutil.copytree(project_root() / folder, tmp_path / folder)
    shutil.copy(project_root() / "README.md", tmp_path)
    monkeypatch.setattr(committed, "project_root", lambda: tmp_path)
    return tmp_path


def test_all_numbers_are_up_to_date_and_written_between_their_markers(checkout):
    texts = {file: file.read_text() for file in committed.files()}
    for file, text in texts.items():
        file.write_text(committed.BLOCK.sub(r"\1stale\n\3", text))
    assert "stale" in (checkout / "README.md").read_text()
    committed.renew()
    for file, text in texts.items():
        assert file.read_text() == text, "run `python -m prslib readme`"


def test_without_all_markers_and_no_others_nothing_is_written(checkout):
    page = checkout / "README.md"
    stale = committed.BLOCK.sub(r"\1stale\n\3", page.read_text())
    page.write_text(stale.replace("small table", "a table"))
    with pytest.raises(ValueError, match="expected the markers <!-- a table: begin --> and"):
        committed.renew()
    page.write_text(stale + stale.replace("small table", "a table"))
    with pytest.raises(ValueError, match="<!-- a table: end --> in README"):
        committed.renew()
    assert page.read_text().count("\nstale\n") > 1


def test_without_figures_the_readme_is_left_alone(checkout, capsys, monkeypatch):
    monkeypatch.setenv("PRSLIB_FIGURES", str(checkout))
    before = (checkout / "README.md").read_text()
    assert main(["readme"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("expected ")
    assert "main_results_table.csv" in said
    assert "run `make figures PROFILE=seeds` first" in said
    assert (checkout / "README.md").read_text() == before


def test_the_best_of_the_small_table_is_bold(monkeypatch):
    cells = [("CRS", 54.57, 0.61, 50.2), ("OCDM", 56.04, np.nan, np.nan)]
    cells = pd.DataFrame(
        [*cells, ("Multitask", 80.0, np.nan, np.nan)], columns=["method", "mean", "sd", "published"]
    ).merge(pd.DataFrame({"group": GROUPS, "metric": "mAP"}), "cross")
    cells = cells.assign(dataset="digits70seq", measure="score")
    monkeypatch.setattr(committed, "_numbers", lambda *_: cells)
    table = committed.small_table()
    assert "| CRS | 54.6 ± 0.6 [50.2] |" in table
    assert "| OCDM | **56.0** | **56.0** |" in table
    assert "| Multitask | 80.0 |" in table


def test_the_headlines_are_claims_and_every_notebook_has_its_place():
    assert set(committed.HEADLINES) <= set(CLAIMS)
    notebooks = {file.stem for file in (project_root() / "notebooks").glob("*.ipynb")}
    assert sorted(committed.ORDER) == sorted(notebooks)


WANTED = configs(dataset="digits70tiny", method=list(committed.TRAINED), seed=[0, 1, 2])


def made(config):
    return fake_run(config, lambda rows: np.full(len(rows), 0.5 + 0.01 * config.seed))


@pytest.fixture
def tables(tmp_path, monkeypatch):
    """A profile with the table of runs and a table of means; git has the same, if any."""
    folder, texts = tmp_path / "smoke", {}
    folder.mkdir()
    rows = final(scores_of([made(config) for config in WANTED]))
    frames = {committed.TABLE.format("digits70tiny"): rows[rows["measure"] == "score"]}
    frames["other"] = pd.DataFrame({"place": ["a", "b"], "mean": [1.0, 2.0], "sd": [0.5, 0.5]})
    for name, table in frames.items():
        texts[name] = table.to_csv(index=False, float_format="%.6g")
        (folder / f"{name}.csv").write_text(texts[name])
    monkeypatch.setenv("PRSLIB_FIGURES", str(tmp_path))
    monkeypatch.setattr(committed, "_committed_tables", lambda profile: texts)
    monkeypatch.setattr(committed, "wanted", lambda *_: WANTED)
    monkeypatch.setattr(committed, "run_all", lambda asked, store: [made(c) for c in asked])
    return folder, texts


def test_the_same_is_said_to_be_so(tables, capsys):
    assert main(["verify", "--profile", "smoke"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("torch ") and "; processor " in said
    assert "same bytes: 3 of 3\n" in said
    assert [config.seed for config in committed.chosen("smoke")] == [0] * len(committed.TRAINED)


def test_tables_and_runs_are_measured_by_the_seeds(tables, monkeypatch):
    folder, texts = tables
    (folder / "other.csv").write_text("place,mean,sd\na,1.3,0.5\nb,2.4,0.5\n")
    lines, within = committed.verify("smoke")
    assert within and "same bytes: 2 of 3" in lines
    assert "other: 0.71 s.d. over seeds apart" in lines  # of 0.3 and 0.4 in units of 0.5
    monkeypatch.setattr(committed, "run_all", lambda a, s: [made(c) for c in WANTED if c.seed == 2])
    monkeypatch.setattr(committed, "final", lambda rows: final(rows.assign(seed=0)))
    lines, within = committed.verify("smoke")
    assert not within  # two s.d. from the committed runs of seed 0
    assert "trained anew: 2.00 s.d. over seeds apart" in "\n".join(lines)
    assert committed._apart(texts["other"], "place,mean,sd\na,1.3,0.5\n") == np.inf
    assert committed._apart("a\n1\n", "a\n2\n") == -1


def test_without_git_or_figures_it_says_so(tables, monkeypatch, capsys):
    monkeypatch.setattr(committed, "_committed_tables", lambda profile: {})
    lines, within = committed.verify("smoke")
    assert within and "no commit to ask (git): the runs" in "\n".join(lines)
    (tables[0] / f"{committed.TABLE.format('digits70tiny')}.csv").unlink()
    assert main(["verify", "--profile", "smoke"]) == 1
    assert "run `make figures PROFILE=smoke` first" in capsys.readouterr().err
