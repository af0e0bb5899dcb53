"""examples/check_your_prs.py finds implementations that depart."""

import sys

import numpy as np
import pytest
from plain_prs import PlainPRS

from prslib.paths import project_root
from prslib.samplers import CRS, PRS


class ByNumbers(PlainPRS):
    def place(self, labels, uniforms):
        return self.choose_batch(labels, uniforms)


class UniformVictim(PRS):
    """Overwrite a random slot."""

    def choose(self, y, u):
        is_full = len(self) == self.size
        slot = super().choose(y, u)
        return int(u[2] * self.size) if is_full and slot >= 0 else slot


class WrongByNumbers(UniformVictim):
    place = ByNumbers.place


@pytest.fixture
def check(monkeypatch, capsys):
    monkeypatch.syspath_prepend(project_root() / "examples")
    import check_your_prs

    monkeypatch.setattr(check_your_prs, "SEEDS", 12)
    monkeypatch.setattr(check_your_prs, "LENGTH", 200)

    def run(name):
        module = sys.modules[__name__]
        monkeypatch.setitem(sys.modules, "theirs", module)
        monkeypatch.setattr(sys, "argv", ["check_your_prs.py", f"theirs:{name}"])
        return check_your_prs.main(), capsys.readouterr().out

    return run


def test_the_same_slots_are_told(check):
    assert check("ByNumbers") == (0, "the same slots on 12 streams of 200 samples\n")


def test_the_first_step_that_differs_is_told_with_its_quantities(check):
    departs, text = check("WrongByNumbers")
    assert departs
    assert text.startswith("stream 0, sample ")
    assert "expected slot" in text and "class_probability=" in text


@pytest.mark.parametrize(("name", "departs"), [("PRS", 0), ("CRS", 1)])
def test_without_numbers_many_runs_are_compared(check, name, departs):
    assert {"PRS": PRS, "CRS": CRS}[name].draws
    code, text = check(name)
    assert code == departs
    lines = text.splitlines()
    assert [line.split()[0] for line in lines[:3]] == ["share", "accepted", "removed"]
    largest = float(lines[3].split()[-1])
    assert np.isfinite(largest) and (largest > 5) == bool(departs)
