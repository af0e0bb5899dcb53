import numpy as np
import pytest
from fake_runs import fake_run

from prslib.cli import main
from prslib.report import verify
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
    tables = {TABLE: text(rows)}
    committed = {"figures/smoke": tables, "docs/report": {}}
    tables["ledger_versions"] = versions().to_csv(index=False)
    folder = tmp_path / "smoke"
    folder.mkdir()
    for name, content in tables.items():
        (folder / f"{name}.csv").write_text(content)
    monkeypatch.setenv("PRSLIB_FIGURES", str(tmp_path))
    monkeypatch.setattr(verify, "_committed", lambda folder, _: committed[folder])
    monkeypatch.setattr(verify, "runs_of", lambda *_: CONFIGS)
    monkeypatch.setattr(verify, "run_all", lambda asked, _: [made(c) for c in asked])
    return folder, tables


def test_the_same_is_said_in_one_sentence(profile, capsys):
    assert main(["verify", "--profile", "smoke"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("torch ") and "; processor " in said[0]
    assert said[-1] == "Of 2 runs trained anew and 2 tables: all as committed."


def faults():
    lines, well = verify.verify("smoke")
    assert not well and " faults." in lines[-1]
    return "\n".join(lines)


def test_one_other_byte_or_a_missing_file_is_a_fault(profile):
    folder, tables = profile
    path = folder / f"{TABLE}.csv"
    path.write_text(tables[TABLE].replace("50", "60", 1))
    assert f"{TABLE}: other bytes" in faults()
    path.unlink()
    assert f"{TABLE}: not drawn here" in faults()


def test_other_versions_may_round_otherwise_and_are_named(profile):
    folder, tables = profile
    name = versions()["package"].iloc[0]
    tables["ledger_versions"] = f"package,version\n{name},0\n"
    (folder / f"{TABLE}.csv").write_text(tables[TABLE] + "\n")
    lines, well = verify.verify("smoke")
    assert well
    assert lines[1] == f"committed with other versions: {name} 0"


def test_runs_that_differ_from_their_rows_are_a_fault(profile, monkeypatch):
    other = [made(config, 0.51) for config in CONFIGS]
    monkeypatch.setattr(verify, "run_all", lambda *_: other)
    said = faults()
    assert f"CRS on {DATASET}, trained anew: up to 1 points from {TABLE}" in said
    monkeypatch.setattr(verify, "TRAINED", ("single_label",))
    assert "no table has its scores" in faults()


def test_a_table_without_schedules_has_them_as_text():
    (schedule,) = verify._table("schedule,value\n,1.5\n")["schedule"]
    assert schedule == ""


def test_every_method_and_every_data_set_is_trained():
    chosen = verify.chosen("seeds")
    every = [c for name in verify.TRAINED for c in verify.runs_of("seeds", name)]
    assert {c.method for c in chosen} == {c.method for c in every}
    assert {c.dataset for c in chosen} == {c.dataset for c in every}
