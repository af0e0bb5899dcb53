import numpy as np
import pytest
from fake_runs import fake_run

from prslib.report.tables import final, scores_of
from prslib.training import versions
from prslib.training.grids import configs

DATASET = "digits70tiny"
CONFIGS = configs(dataset=DATASET, method=["CRS", "PRS"], seed=list(range(5)))


def made(config, level=0.5):
    return fake_run(config, lambda rows: np.full(len(rows), level + 0.01 * config.seed))


@pytest.fixture
def verify(program):
    return program("verify")


@pytest.fixture
def table(verify, tmp_path, monkeypatch):
    """A table and the versions of a profile, committed; its runs repeat the table."""
    monkeypatch.setattr(verify, "project_root", lambda: tmp_path)
    monkeypatch.setattr(verify, "runs_of", lambda *_: CONFIGS)
    monkeypatch.setattr(verify, "run_all", lambda asked, _: [made(c) for c in asked])
    folder = tmp_path / "figures" / "smoke"
    folder.mkdir(parents=True)
    (tmp_path / "docs" / "report").mkdir(parents=True)
    (tmp_path / "docs" / "report" / "README.md").touch()
    rows = final(scores_of([made(config) for config in CONFIGS]))
    file = folder / f"main_results_groups_{DATASET}.csv"
    rows[rows["measure"] == "score"].to_csv(file, index=False, float_format="%.6g")
    versions().to_csv(folder / "ledger_versions.csv", index=False)
    verify.git("init", "--quiet")
    commit(verify)
    return file


def commit(verify, what="."):
    verify.git("add", what)
    who = ["-c", "user.name=test", "-c", "user.email=test@example.org"]
    verify.git(*who, "commit", "--quiet", "--message", "figures")


def test_another_byte_is_a_fault_unless_other_versions_round_otherwise(verify, table):
    said, well = verify.verify("smoke")
    assert well and said[0].startswith("torch ") and "; processor " in said[0]
    assert said[-1] == "Of 2 runs trained anew and 2 tables: all as committed."
    table.write_text(table.read_text().replace("50", "60", 1))
    lines, well = verify.verify("smoke")
    assert not well
    assert f"- figures/smoke/{table.name}: other bytes" in lines
    name = versions()["package"].iloc[0]
    file = table.with_name("ledger_versions.csv")
    file.write_text(f"package,version\n{name},0\n")
    commit(verify, file)
    lines, well = verify.verify("smoke")
    assert well
    assert lines[1] == f"committed with other versions: {name} 0"


def test_runs_that_differ_from_their_rows_are_a_fault(verify, table, monkeypatch):
    other = [made(config, 0.51) for config in CONFIGS[:1]]
    monkeypatch.setattr(verify, "run_all", lambda *_: other)
    lines, well = verify.verify("smoke")
    assert not well
    assert f"- CRS on {DATASET}, trained anew: up to 1 points from its rows" in lines
    table.unlink()
    commit(verify)
    with pytest.raises(RuntimeError, match="a checkout with committed figures"):
        verify.verify("smoke")


def test_every_method_and_every_data_set_is_trained(verify):
    chosen = verify.chosen("seeds")
    every = verify.runs_of("seeds", verify.TOPIC)
    assert {config.method for config in chosen} == {config.method for config in every}
    assert {config.dataset for config in chosen} == {config.dataset for config in every}
