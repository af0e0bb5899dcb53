import shutil

import numpy as np
import pytest

from prslib.cli import main
from prslib.paths import project_root
from prslib.report import answers, readme
from prslib.report.claims import CLAIMS


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
    texts = {file: file.read_text() for file in readme.files()}
    for file, text in texts.items():
        file.write_text(readme.BLOCK.sub(r"\1stale\n\3", text))
    assert "stale" in (checkout / "README.md").read_text()
    readme.renew()
    for file, text in texts.items():
        assert file.read_text() == text, "run `python -m prslib readme`"


def test_without_all_markers_and_no_others_nothing_is_written(checkout):
    page = checkout / "README.md"
    stale = readme.BLOCK.sub(r"\1stale\n\3", page.read_text())
    page.write_text(stale.replace("small table", "a table"))
    with pytest.raises(
        ValueError, match="expected the markers <!-- a table: begin --> and"
    ):
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


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ((-11.6, -15.8, -7.3), "PRS loses 11.6 points of mAP against CRS (95 % "
         "interval 7.3 to 15.8)."),
        ((2.0, 1.0, 3.0), "PRS gains 2.0 points of mAP over CRS (95 % interval 1.0 "
         "to 3.0)."),
        ((0.3, -1.2, 1.9), "PRS and CRS do not differ clearly in mAP: +0.3 points "
         "(95 % interval -1.2 to +1.9)."),
        ((4.0, np.nan, np.nan), "PRS and CRS do not differ clearly in mAP: +4.0 "
         "points (one seed)."),
    ],
)  # fmt: skip
def test_a_difference_is_said_as_people_say_it(row, said):
    row = dict(zip(("difference", "low", "high"), row, strict=True))
    assert answers.in_words(row, "mAP") == said


def test_the_headlines_are_claims_and_every_notebook_has_its_place():
    assert set(readme.HEADLINES) <= set(CLAIMS)
    notebooks = {file.stem for file in (project_root() / "notebooks").glob("*.ipynb")}
    assert sorted(answers.ORDER) == sorted(notebooks)
