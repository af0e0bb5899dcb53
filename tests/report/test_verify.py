import platform
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from fake_runs import fake_run

from prslib.paths import cache_dir
from prslib.report.asked import configs
from prslib.report.tables import final, scores_of
from prslib.rounding import versions
from prslib.train import run

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
    monkeypatch.setattr(verify, "train_anew", lambda asked: [made(c) for c in asked])
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


@pytest.fixture
def drawn(verify, table, tmp_path, monkeypatch):
    """The tables of the profile, drawn again as they were committed."""

    def draw_again(profile, folder):
        copy = folder / "figures" / profile
        shutil.copytree(tmp_path / "drawn", copy)
        return []

    said = ["PRS is 3.1 points above CRS.", None]  # a cell may be empty
    sentences = pd.DataFrame({"sentence": said, "p": [1.0, 0.5]})
    sentences.to_csv(table.with_name("words.csv"), index=False)
    commit(verify)
    shutil.copytree(table.parent, tmp_path / "drawn")
    monkeypatch.setattr(verify, "draw_again", draw_again)
    return tmp_path / "drawn"


def with_versions(verify, table, name):
    """Commit the tables as if a package had another version."""
    other = versions()
    assert name in set(other["package"])
    other.loc[other["package"] == name, "version"] = "0"
    other.to_csv(table.with_name("ledger_versions.csv"), index=False)
    commit(verify)


def test_the_short_form_says_that_tables_were_not_drawn_again(verify, table):
    said, well = verify.verify("smoke")
    assert well and said[0].startswith("torch ") and platform.machine() in said[0]
    assert said[2].startswith("The 2 tables were NOT drawn again")
    assert said[-1] == "Of 2 runs trained anew: all as committed."


def test_a_number_changed_in_a_commit_is_found_in_every_table(verify, table, drawn):
    said, well = verify.verify("smoke", long=True)
    assert well
    assert (
        said[-1] == "Of 2 runs trained anew and 3 tables drawn again: all as committed."
    )
    for file in (table, table.with_name("words.csv")):
        text = file.read_text()
        last = max(text.rfind(digit) for digit in "0123456789")
        changed = str((int(text[last]) + 1) % 10)
        file.write_text(text[:last] + changed + text[last + 1 :])
        commit(verify)
        lines, well = verify.verify("smoke", long=True)
        assert not well
        assert any(f"- figures/smoke/{file.name}: other bytes" in x for x in lines)
        file.write_text(text)
        commit(verify)


@pytest.mark.parametrize(
    ("package", "factor", "fault"),
    [
        ("numpy", 1.0005, ""),
        ("numpy", 1.01, "value in row 1, 50 is 50.5 now"),
        ("torch", 1.01, ""),
        ("torch", 1.1, "value moved by 5.2, root mean square"),
    ],
)
def test_other_versions_may_move_numbers_so_far(
    verify, table, drawn, package, factor, fault
):
    with_versions(verify, table, package)
    rows = pd.read_csv(drawn / table.name)
    rows["value"] *= factor
    rows.to_csv(drawn / table.name, index=False)
    lines, well = verify.verify("smoke", long=True)
    assert lines[1] == f"committed with other versions: {package} 0"
    assert well == (not fault) and fault in "".join(lines)


def test_words_are_the_same_with_other_versions_and_their_numbers_close(
    verify, table, drawn
):
    with_versions(verify, table, "numpy")
    file = drawn / "words.csv"
    text = file.read_text()
    for old, new, expected in (("3.1", "3.2", True), ("3.1", "3.3", False)):
        file.write_text(text.replace(old, new))
        assert verify.verify("smoke", long=True)[1] == expected
    file.write_text(text.replace("above", "below"))
    assert not verify.verify("smoke", long=True)[1]


def test_tables_that_miss_on_one_side_are_faults(verify, table, drawn):
    (drawn / "words.csv").rename(drawn / "new.csv")
    lines, well = verify.verify("smoke", long=True)
    assert not well
    assert "- new.csv: drawn again, but not committed" in lines
    assert "- figures/smoke/words.csv: not drawn again" in lines


def test_tables_are_drawn_from_the_usual_runs_into_another_folder(
    verify, tmp_path, monkeypatch
):
    calls = []

    def call(command, cwd, env):
        calls.append((command[1:], env["PRSLIB_FIGURES"]))
        cache = Path(env["PRSLIB_CACHE"])
        assert (cache / "runs").resolve() == (cache_dir() / "runs").resolve()
        assert not (cache / "executed").exists()
        return subprocess.CompletedProcess(command, returncode=1)

    (cache_dir() / "executed").mkdir(parents=True, exist_ok=True)
    monkeypatch.setattr(verify.subprocess, "run", call)
    assert verify.draw_again("smoke", tmp_path) == ["a notebook failed, see above"]
    command = ["-m", "prslib", "figures", "--profile", "smoke"]
    assert calls == [(command, str(tmp_path / "figures"))]


def test_runs_that_differ_from_their_rows_are_a_fault(verify, table, monkeypatch):
    other = [made(config, 0.51) for config in CONFIGS[:1]]
    monkeypatch.setattr(verify, "train_anew", lambda _: other)
    lines, well = verify.verify("smoke")
    assert not well
    assert f"- CRS on {DATASET}, trained anew: up to 1 points from its rows" in lines
    table.unlink()
    commit(verify)
    with pytest.raises(RuntimeError, match="a checkout with committed figures"):
        verify.verify("smoke")


def test_runs_are_trained_anew_in_other_processes(verify):
    (trained,) = verify.train_anew([CONFIGS[0]])
    assert trained.config == CONFIGS[0]
    assert trained.scores.equals(run(CONFIGS[0]).scores)


def test_every_method_and_every_data_set_is_trained(verify):
    chosen = verify.chosen("seeds")
    every = verify.runs_of("seeds", verify.TOPIC)
    assert {config.method for config in chosen} == {config.method for config in every}
    assert {config.dataset for config in chosen} == {config.dataset for config in every}
