import json

import pandas as pd
import pytest

from prslib.cli import main
from prslib.paths import project_root
from prslib.report import readme
from prslib.report.claims import CLAIMS
from prslib.report.tables import GROUPS, METRICS

BLOCKS = {name: f"<!-- {name}: begin -->\nstale\n<!-- {name}: end -->\n" for name in readme.WRITTEN}


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A checkout with a README, the main table of two methods, two claims and two speeds."""
    reported, bench = (tmp_path / "figures" / folder for folder in (readme.REPORTED, "bench"))
    for folder in (reported, bench):
        folder.mkdir(parents=True)
    columns = ["dataset", "stands_for", "measure", "method", "mean", "sd", "published"]
    of = ("digits70seq", "COCOseq", "score")
    methods = pd.DataFrame(
        [(*of, "CRS", 54.57, 0.61, 50.2), (*of, "OCDM", 56.04, None, None)], columns=columns
    )
    places = pd.DataFrame([(g, m) for g in GROUPS for m in METRICS], columns=["group", "metric"])
    methods.merge(places, "cross").to_csv(reported / "main_results_table.csv", index=False)
    claims = pd.DataFrame(
        [("best", "one", "holds"), ("best", "other", "holds"), ("lower_bound", "one", "undecided")],
        columns=["claim", "dataset", "verdict"],
    ).assign(statement="It leads", source="", stands_for="COCOseq", data="stand-in", unit="points")
    claims = claims.assign(effect=1.25, low=0.5, high=2.0, published=3.0, seeds=10, p=0.01)
    claims["alone"] = "holds"
    said = [("one", *cell, f"{cell[1]} rises.") for cell in readme.GAINS + readme.COSTS]
    gaps = pd.DataFrame(said, columns=["dataset", "group", "metric", "sentence"])
    gaps.to_csv(reported / "main_results_prs_minus_crs.csv", index=False)
    gaps = gaps.replace({"mAP rises.": "mAP is level."}).assign(than=readme.BESIDE)
    gaps.to_csv(reported / "main_results_prs_minus_others.csv", index=False)
    claims.to_csv(reported / "ledger_claims.csv", index=False)
    statuses = pd.DataFrame({"status": ["run", "run", "not run"]})
    statuses.to_csv(reported / "ledger_cells.csv", index=False)
    speeds = pd.DataFrame({"contestant": ["PRS", "PRS in plain numpy"], "stream": "cocoseq"})
    speeds["samples_per_s"] = [1143000.0, 1618.4]
    speeds.to_csv(bench / "samplers.csv", index=False)
    monkeypatch.setenv("PRSLIB_FIGURES", str(tmp_path / "figures"))
    monkeypatch.setattr(readme, "project_root", lambda: tmp_path)
    monkeypatch.setattr(readme, "known_notebooks", lambda profile: ["tail_forgetting"])
    monkeypatch.setattr(readme, "ORDER", ("tail_forgetting",))
    for folder in ("notebooks", "docs"):
        (tmp_path / folder).mkdir()
    title = {"cells": [{"source": ["# Who forgets?\n", "Some."]}]}
    (tmp_path / "notebooks" / "tail_forgetting.ipynb").write_text(json.dumps(title))
    (tmp_path / "notebooks" / "start.md").write_text(BLOCKS["start"])
    elsewhere = {"start", "all claims", "main table"}
    here = "".join(block for name, block in BLOCKS.items() if name not in elsewhere)
    (tmp_path / "README.md").write_text(f"before\n{here}after\n")
    (tmp_path / "docs" / "all.md").write_text(BLOCKS["all claims"] + BLOCKS["main table"])
    return tmp_path


def test_all_numbers_are_written_between_their_markers(checkout):
    readme.renew()
    text, page = (checkout / "README.md").read_text(), (checkout / "docs" / "all.md").read_text()
    assert "| digits70seq [COCOseq] | overall C-F1 |" in page
    assert "| CRS | 54.6 ± 0.6 [50.2] |" in page
    assert "| OCDM | 56.0 |" in page
    assert text.startswith("before\n<!-- small table: begin -->\n|  | majority mAP | ")
    assert "| OCDM | **56.0** | **56.0** | " in text
    assert "\nOf 3 rows, 2 claims on up to 2 data" in text
    assert "2 hold, 0 do not, 1 are undecided and" in text
    assert "0 are not run. Of the paper's 3 numbers 2 have one of ours" in text
    assert "| It leads | +1.2 [+0.5, +2.0] points | +3.0 | holds | holds |" in text
    assert "### Who has the best scores?\n\n| claim | data | ours [95 % interval] |" in page
    assert "| It leads | one [COCOseq] | +1.2 [+0.5, +2.0] points | +3.0 | holds |" in page
    assert "|  | other [COCOseq] | +1.2 [+0.5, +2.0] points | +3.0 | holds |" in page
    assert "| PRS | 1,100,000 | 1,600 |  |  |" in text
    assert "wants 15 runs: 0.05 million training steps of a ResNet-101 and 0.00 million of" in text
    assert "- **What it buys.** mAP rises. mAP rises.\n- **What it costs.** C-F1 rises.\n" in text
    assert "balances the memory.** mAP is level.\n<!--" in text
    assert "| [Who forgets?](notebooks/tail_forgetting.ipynb) | `tail_forgetting` |" in text
    assert text.endswith("-->\nafter\n")
    start = (checkout / "notebooks" / "start.md").read_text()
    assert "| [Who forgets?](tail_forgetting.ipynb) | `tail_forgetting` |" in start
    assert "stale" not in text + page + start
    readme.renew()
    assert (checkout / "README.md").read_text() == text


def test_without_all_markers_and_no_others_nothing_is_written(checkout):
    page = checkout / "docs" / "all.md"
    page.write_text(BLOCKS["all claims"])
    with pytest.raises(ValueError, match="expected the markers <!-- main table: begin --> and"):
        readme.renew()
    page.write_text(BLOCKS["all claims"] + BLOCKS["main table"].replace("main table", "a table"))
    with pytest.raises(ValueError, match="<!-- a table: end --> in README"):
        readme.renew()
    assert "stale" in (checkout / "README.md").read_text()


def test_without_figures_the_readme_is_left_alone(checkout, capsys):
    before = (checkout / "README.md").read_text()
    (checkout / "figures" / readme.REPORTED / "ledger_cells.csv").unlink()
    assert main(["readme"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("expected ")
    assert "ledger_cells.csv" in said
    assert "run `make figures PROFILE=seeds` first" in said
    assert (checkout / "README.md").read_text() == before


def test_the_readme_is_up_to_date(monkeypatch):
    monkeypatch.delenv("PRSLIB_DATA", raising=False)
    monkeypatch.delenv("PRSLIB_FIGURES", raising=False)
    text = "".join(file.read_text() for file in readme.files())
    for name, write in readme.WRITTEN.items():
        assert write() in text, f"{name}: run `python -m prslib readme`"


def test_the_headlines_are_claims_and_every_notebook_has_its_place():
    assert set(readme.HEADLINES) <= set(CLAIMS)
    notebooks = {file.stem for file in (project_root() / "notebooks").glob("*.ipynb")}
    assert sorted(readme.ORDER) == sorted(notebooks)


def test_the_readme_is_read_in_minutes():
    lines = (project_root() / "README.md").read_text().splitlines()
    assert len(lines) <= 130
