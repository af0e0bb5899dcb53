import numpy as np
import pandas as pd
import pytest
from fake_runs import fake_run

from prslib.cli import main
from prslib.paths import project_root
from prslib.report import verify
from prslib.report.claims import CLAIMS, METRICS, Scores
from prslib.report.ledger import corrected
from prslib.report.tables import final, scores_of
from prslib.training import versions
from prslib.training.grids import configs

DATASET = "digits70tiny"
METHODS = ["CRS", "PRS"]
CONFIGS = configs(dataset=DATASET, method=METHODS, seed=list(range(5)))
TABLE = f"main_results_groups_{DATASET}"


def made(config, level=0.5):
    lead = 0.05 * (config.method == "PRS")
    return fake_run(
        config, lambda rows: np.full(len(rows), level + lead + 0.01 * config.seed)
    )


def text(table):
    return table.to_csv(index=False, float_format="%.6g")


@pytest.fixture
def profile(tmp_path, monkeypatch):
    """A profile whose committed tables are the drawn ones, with runs that repeat them."""
    rows = final(scores_of([made(config) for config in CONFIGS]))
    rows = rows[rows["measure"] == "score"]
    claim = CLAIMS["above_crs"]
    row = {"claim": "above_crs", "dataset": DATASET, "level": 0.95}
    row |= claim.decide(Scores(verify._observed(rows)))
    claims = pd.DataFrame([row])
    claims["verdict"] = corrected(claims, 0.95)
    tables = {TABLE: text(rows), "ledger_claims": text(claims)}
    tables["ledger_versions"] = versions().to_csv(index=False)
    folder = tmp_path / "smoke"
    folder.mkdir()
    for name, content in tables.items():
        (folder / f"{name}.csv").write_text(content)
    monkeypatch.setenv("PRSLIB_FIGURES", str(tmp_path))
    monkeypatch.setattr(verify, "_committed_tables", lambda profile: tables)
    monkeypatch.setattr(verify, "runs_of", lambda *_: CONFIGS)
    monkeypatch.setattr(verify, "run_all", lambda asked, _: [made(c) for c in asked])
    return folder, tables


def test_the_same_is_said_in_one_sentence(profile, capsys):
    assert main(["verify", "--profile", "smoke"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("torch ") and "; processor " in said[0]
    assert said[-1] == "Of 2 runs trained anew and 3 tables: all as committed."


def faults(folder):
    lines, well = verify.verify(folder.name)
    assert not well and " faults." in lines[-1]
    return "\n".join(lines)


def test_one_other_byte_or_a_missing_file_is_a_fault(profile):
    folder, tables = profile
    path = folder / f"{TABLE}.csv"
    path.write_text(tables[TABLE].replace("50", "60", 1))
    assert f"{TABLE}: other bytes" in faults(folder)
    path.unlink()
    assert f"{TABLE}: not drawn here" in faults(folder)


def test_other_versions_may_round_otherwise_and_are_named(profile):
    folder, tables = profile
    name = versions()["name" if "name" in versions() else versions().columns[0]].iloc[0]
    other = versions().assign(version="0")
    tables["ledger_versions"] = other.to_csv(index=False)
    (folder / f"{TABLE}.csv").write_text(tables[TABLE] + "\n")
    lines, well = verify.verify("smoke")
    assert well and f"committed with other versions: {name} 0" in lines[1]


def test_runs_that_differ_from_their_rows_are_a_fault(profile, monkeypatch):
    folder, _ = profile
    monkeypatch.setattr(
        verify, "run_all", lambda asked, _: [made(c, 0.51) for c in asked]
    )
    said = faults(folder)
    assert f"CRS on {DATASET}, trained anew: up to 1 points from {TABLE}" in said
    monkeypatch.setattr(verify, "TRAINED", ("single_label",))
    monkeypatch.setattr(verify, "known_notebooks", lambda _: ["single_label"])
    assert "no table has its scores" in faults(folder)


def test_a_table_without_schedules_has_them_as_text():
    (schedule,) = verify._table("schedule,value\n,1.5\n")["schedule"]
    assert schedule == ""


def test_claims_are_decided_again_from_the_tables(profile):
    folder, tables = profile
    claims = pd.read_csv(folder / "ledger_claims.csv")
    tables["ledger_claims"] = text(claims.assign(verdict="undecided"))
    assert "claim above_crs on digits70tiny: undecided, decided again holds" in faults(
        folder
    )
    tables["ledger_claims"] = text(claims.assign(effect=15.0))
    assert "15.000, from its scores 5.000" in faults(folder)


def test_every_method_and_every_data_set_is_trained(monkeypatch):
    chosen = verify.chosen("seeds")
    wanted = [c for name in verify.TRAINED for c in verify.runs_of("seeds", name)]
    assert {c.method for c in chosen} == {c.method for c in wanted}
    assert {c.dataset for c in chosen} == {c.dataset for c in wanted}
    assert set(METRICS) == {"C-F1", "O-F1", "mAP"}


def test_the_committed_claims_of_the_readme_come_out_as_committed():
    folder = project_root() / "figures" / "seeds"
    tables = {
        file.stem: verify._table(file.read_text()) for file in folder.glob("*.csv")
    }
    assert "ledger_claims" in tables
    assert verify.claim_faults(tables) == []
