"""Samplers that are compiled before anyone asks them."""

import numba
import pytest

from prslib.report.build import compile_sampler, compiling
from prslib.samplers import SAMPLERS


def test_what_is_compiled_ahead_is_there_for_other_processes(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    with compiling(["crs"]):
        pass
    assert any("crs" in file.name for file in tmp_path.rglob("*.nbi"))


@pytest.mark.parametrize("name", [name for name, row in SAMPLERS.items() if not row.needs])
def test_one_placing_compiles_all_that_a_stream_needs(name, counted_compilations):
    compile_sampler(name)
    before = counted_compilations()
    compile_sampler(name)
    assert counted_compilations() == before


@pytest.fixture
def counted_compilations():
    class Count(numba.core.event.Listener):
        compiled = 0

        def on_start(self, event):
            self.compiled += 1

        def on_end(self, event):
            pass

    listener = Count()
    with numba.core.event.install_listener("numba:compile", listener):
        yield lambda: listener.compiled
