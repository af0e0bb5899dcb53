"""Shared by all tests: caches and figures of their own, and what must be undone."""

import importlib

import pytest
from registered import call_in_turn, forgetting

from prslib.paths import project_root

collect_ignore = ["helpers"]
LONGEST = ["test_notebooks.py", "test_runs.py", "test_cluster.py", "test_lab.py"]
LONGEST += ["test_card.py", "test_readme_code.py", "test_browser.py"]


def pytest_collection_modifyitems(items):
    """Begin with the files that take longest, so that no worker ends with one."""
    order = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: order.get(item.path.name, len(order)))


@pytest.fixture(scope="session", autouse=True)
def own_folders(tmp_path_factory):
    """Keep the checkout's cache and figures out of the tests and the tests out of them."""
    with pytest.MonkeyPatch.context() as environment:
        folder = tmp_path_factory.mktemp("prslib")
        environment.setenv("PRSLIB_CACHE", str(folder / "cache"))
        environment.setenv("PRSLIB_FIGURES", str(folder / "figures"))
        yield folder


@pytest.fixture
def one_thread():
    """Train as a run does; small nets are no faster on more."""
    import torch

    from prslib.device import run_settings

    with run_settings(torch.device("cpu")):
        yield


@pytest.fixture
def trains_here(monkeypatch):
    """Train in this process: others would have to start, and import torch."""
    monkeypatch.setattr("prslib.processes.Parallel", call_in_turn)


@pytest.fixture
def program(monkeypatch):
    """Import a program of docs/, bench/ or studies/ by its name."""
    for name in ("docs", "bench", "studies"):
        monkeypatch.syspath_prepend(project_root() / name)
    return importlib.import_module


@pytest.fixture
def registers():
    """Forget after a test what it has registered."""
    with forgetting():
        yield
