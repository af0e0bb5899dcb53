import shutil

import numpy as np
import pandas as pd
import pytest

from prslib.cli import main
from prslib.paths import project_root
from prslib.report import answers, readme
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


CLAIMS_TABLE = project_root() / "figures" / "seeds" / "ledger_claims.csv"


@pytest.mark.skipif(
    "weakest" not in CLAIMS_TABLE.read_text().partition("\n")[0],
    reason="figures/seeds is from before claims had cells; draw it anew",
)
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


def test_the_best_of_the_small_table_is_bold(monkeypatch):
    cells = [("CRS", 54.57, 0.61, 50.2), ("OCDM", 56.04, np.nan, np.nan)]
    cells = pd.DataFrame(
        [*cells, ("Multitask", 80.0, np.nan, np.nan)],
        columns=["method", "mean", "sd", "published"],
    ).merge(pd.DataFrame({"group": GROUPS, "metric": "mAP"}), "cross")
    cells = cells.assign(dataset="digits70seq", measure="score")
    monkeypatch.setattr(readme, "numbers", lambda *_: cells)
    table = readme.small_table()
    assert "| CRS | 54.6 ± 0.6 [50.2] |" in table
    assert "| OCDM | **56.0** | **56.0** |" in table
    assert "| Multitask | 80.0 |" in table


def rows_of(differences, **columns):
    """Rows of `contrasts`: a difference with an interval of 2 points to both sides."""
    found = pd.DataFrame({"metric": ["C-F1", "O-F1", "mAP"], "difference": differences})
    found["low"], found["high"] = found["difference"] - 2, found["difference"] + 2
    found["clearly"] = np.where(found["low"] > 0, "above", "below")
    found["clearly"] = found["clearly"].where(found["difference"].abs() > 2)
    return found.assign(**{"dataset": "real", "group": "overall"} | columns)


def test_findings_are_three_sentences_and_every_difference_in_a_table(monkeypatch):
    groups = {"minority": [1, 1, 9], "moderate": [5, 5, 5], "majority": [-12, -8, -1]}
    of_crs = [rows_of(d, group=g) for g, d in groups.items()]
    of_crs += [rows_of([0, 0, 3]), rows_of([7, 4, 3], dataset="stand-in")]
    others = [rows_of([1, 1, -3 * (n == "ExStream")], than=n) for n in readme.BESIDE]
    tables = {
        "main_results_prs_minus_crs": of_crs,
        "main_results_prs_minus_others": others,
    }
    monkeypatch.setattr(readme, "numbers", lambda _, name: pd.concat(tables[name]))
    buys, costs, beside, _, *table = readme.findings().splitlines()
    assert buys.startswith(
        "- **What PRS buys.** PRS gains 9.0 points of mAP on the minority classes over "
        "CRS (95 % interval 7.0 to 11.0). PRS and CRS do not differ clearly in C-F1 "
        "and O-F1 on the minority classes. PRS gains 3.0 points of overall mAP over CRS"
    )
    assert "PRS loses 12.0 points of C-F1 on the majority classes against CRS" in costs
    assert "PRS loses 8.0 points of O-F1" in costs
    assert "differ clearly in mAP on the majority classes." in costs
    assert "PRS loses 3.0 points of overall mAP against ExStream (95" in beside
    assert "PRS scores about the same as CBRS and OCDM" in beside
    assert table[0] == "| PRS minus | classes | C-F1 | O-F1 | mAP |"
    minority = "+1.0 [-1.0, +3.0] | +1.0 [-1.0, +3.0] | **+9.0 [+7.0, +11.0]**"
    assert f"| CRS | minority | {minority} |" in table
    assert len(table) == 2 + 4 + 3


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
