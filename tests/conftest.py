"""Shared by all tests: caches and figures of their own, and the tiny data sets."""

import pytest

collect_ignore = ["helpers"]


@pytest.fixture(scope="session", autouse=True)
def own_folders(tmp_path_factory):
    """Keep the checkout's cache and figures out of the tests and the tests out of them."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("prslib")
        patch.setenv("PRSLIB_CACHE", str(folder / "cache"))
        patch.setenv("PRSLIB_FIGURES", str(folder / "figures"))
        yield folder


@pytest.fixture
def one_thread():
    """Train as a run does; small nets are no faster on more."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
