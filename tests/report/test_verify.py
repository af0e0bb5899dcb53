import pandas as pd
import pytest

from prslib.rounding import versions


@pytest.fixture
def verify(program):
    return program("verify")


@pytest.fixture
def tables():
    """The tables of a profile, as committed."""
    scores = pd.DataFrame({"method": ["CRS", "PRS"], "mAP": [47.21, 49.33]})
    verdict = "PRS is 2.12 points above CRS."
    return {
        "scores.csv": scores.to_csv(index=False),
        "words.csv": pd.DataFrame({"verdict": [verdict]}).to_csv(index=False),
        "ledger_versions.csv": versions().to_csv(index=False),
    }


@pytest.fixture
def compare(verify, tables, monkeypatch):
    """Verify as if these tables had been committed, and those drawn."""

    def run(then=tables, now=tables):
        monkeypatch.setattr(verify, "read_commit", lambda *_: dict(then))
        monkeypatch.setattr(verify, "draw", lambda *_: dict(now))
        return verify.verify("smoke")

    return run


def change(tables, name, old, new):
    assert old in tables[name]
    return tables | {name: tables[name].replace(old, new)}


def test_the_same_bytes_are_no_difference(compare, capsys):
    assert compare() == []
    assert "Of 3 tables, compared byte by byte, none differ." in capsys.readouterr().out


def test_the_last_digit_is_compared(compare, tables, capsys):
    drawn = change(tables, "scores.csv", "49.33", "49.34")
    assert compare(now=drawn) == ["scores.csv"]
    largest = "scores.csv, row 1, mAP: 49.33 is 49.34 now"
    assert f"largest difference of numbers: {largest}" in capsys.readouterr().out


def test_other_versions_are_named(compare, tables, capsys):
    table = versions()
    table.loc[table["package"] == "numpy", "version"] = "0"
    then = tables | {"ledger_versions.csv": table.to_csv(index=False)}
    assert compare(then) == ["ledger_versions.csv"]
    assert "committed with other versions: numpy 0" in capsys.readouterr().out


def test_words_and_missing_tables_differ(compare, tables):
    drawn = change(tables, "words.csv", "above", "below")
    del drawn["scores.csv"]
    assert compare(now=drawn) == ["scores.csv", "words.csv"]
