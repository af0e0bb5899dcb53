import shutil

import numpy as np
import pandas as pd
import pytest

from prslib.cli import main
from prslib.paths import project_root
from prslib.report import readme
from prslib.report.claims import CLAIMS
from prslib.report.tables import GROUPS


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A copy of README, notebooks and docs beside the committed figures."""
    for name in ("PRSLIB_DATA", "PRSLIB_FIGURES"):
        monkeypatch.delenv(name, raising=False)
    for folder in ("notebooks", "docs"):
        shutil.copytree(project_root() / folder, tmp_path / folder)
    shutil.copy(project_root() / "README.md", tmp_path)
    monkeypatch.setattr(readme, "project_root", lambda: tmp_path)
    return tmp_path


def test_all_numbers_are_up_to_date_and_written_between_their_markers(checkout):
    committed = {file: file.read_text() for file in readme.files()}
    for file, text in committed.items():
        file.write_text(readme.BLOCK.sub(r"\1stale\n\3", text))
    assert "stale" in (checkout / "README.md").read_text()
    readme.renew()
    for file, text in committed.items():
        assert file.read_text() == text, "run `python -m prslib readme`"


def test_without_all_markers_and_no_others_nothing_is_written(checkout):
    page = checkout / "README.md"
    stale = readme.BLOCK.sub(r"\1stale\n\3", page.read_text())
    page.write_text(stale.replace("small table", "a table"))
    with pytest.raises(ValueError, match="expected the markers <!-- a table: begin --> and"):
        readme.renew()
    page.write_text(stale + stale.replace("small table", "a table"))
    with pytest.raises(ValueError, match="<!-- a table: end --> in README"):
        readme.renew()
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
    monkeypatch.setattr(readme, "_numbers", lambda *_: cells)
    table = readme.small_table()
    assert "| CRS | 54.6 ± 0.6 [50.2] |" in table
    assert "| OCDM | **56.0** | **56.0** |" in table
    assert "| Multitask | 80.0 |" in table


def test_the_headlines_are_claims_and_every_notebook_has_its_place():
    assert set(readme.HEADLINES) <= set(CLAIMS)
    notebooks = {file.stem for file in (project_root() / "notebooks").glob("*.ipynb")}
    assert sorted(readme.ORDER) == sorted(notebooks)
