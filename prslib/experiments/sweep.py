"""Many runs at once: what is stored is loaded, what is missing is trained side by side."""

import os
from collections.abc import Sequence
from numbers import Real

from prslib.checks import whole
from prslib.experiments.store import Store
from prslib.training.config import SAVE_EVERY, Run, RunConfig, check_all


def run_all(
    configs: Sequence[RunConfig],
    store: Store | None = None,
    workers: int | None = None,
    device: str = "cpu",
    save_every: float = SAVE_EVERY,
    address: str | None = None,
) -> list[Run]:
    """Return the runs of all configurations, training only those that no one has trained yet.

    Parameters
    ----------
    configs : sequence of RunConfig
        What is wanted.
    store : Store, optional
        Where finished runs are kept, by default the cache.
    workers : int, optional
        Processes side by side, one thread each; by default one for each core that this process may
        use, and on a GPU no more than its memory is meant for (`Architecture.gpu_share`). A cluster
        has as many as its machines have cores and GPUs.
    device : str
        Where to compute, "cpu" or "cuda".
    save_every : float
        Seconds after which a run under way saves its state again; on a cluster none does.
    address : str, optional
        Of a Ray cluster that trains the runs: "host:port", or "auto" for that of this machine. By
        default the environment variable RAY_ADDRESS; where that is not set, this machine trains.

    Returns
    -------
    list of Run
        In the order of the configurations.

    Raises
    ------
    TypeError
        If ``workers`` is no whole number or ``save_every`` no number; raised before any training.
    ValueError
        If a configuration does not fit its data set, ``workers`` is below 1, ``save_every`` is not
        above 0, or runs are missing and the device is not there; likewise.
    NewerStoreError
        If a newer version of prslib stored one of the runs; raised before any training.
    OSError
        If runs are missing and the store cannot be written or its disk is full; likewise.
    RuntimeError
        If runs failed, or someone removed one that was trained; raised when all others are stored.
    ModuleNotFoundError, ConnectionError, ClusterError
        If there is an address and no Ray, no cluster, or one that lacks a data set or a GPU; before
        any training.

    Notes
    -----
    A run is stored the moment it ends, and saves its state on the way, so that an interruption
    loses a few minutes of the runs under way. Runs that differ only in what they look at, such as
    the test set, are trained as one. Processes that ask for the same runs share the work:
    what another one is at comes last, and is loaded when that one has stored it. On a GPU small
    runs of one shape are too (`prslib.experiments.stacked`).

    Processes are started anew, not forked, so that each may use a GPU whatever the caller did with
    it. On one GPU every process has its own copy of the images where they fit beside what the
    others took, and fetches them from the host where they do not.
    """
    if workers is not None:
        workers = whole("workers", workers, least=1)
    if isinstance(save_every, bool) or not isinstance(save_every, Real):
        raise TypeError(f"save_every must be a number of seconds, got {save_every!r}")
    if not save_every > 0:
        raise ValueError(
            f"save_every must be above 0 seconds, got {save_every}; choose for example 300"
        )
    store, address = store or Store(), address or os.environ.get("RAY_ADDRESS")
    check_all(configs)
    found = {config.hash: store.load(config) for config in configs}
    missing = list({c.hash: c for c in configs if found[c.hash] is None}.values())
    if missing:
        from prslib.experiments.workers import (
            train_missing,  # with torch; what is stored needs none
        )

        store.check_writable()
        train_missing(missing, store, workers, device, save_every, address)
        found |= {config.hash: store.load(config) for config in missing}
        gone = [config.hash for config in missing if found[config.hash] is None]
        if gone:
            raise RuntimeError(
                f"expected {', '.join(gone)} in {store.folder}, where they were stored, and they "
                "can no longer be read: someone has removed or changed the files; ask again to "
                "train them again"
            )
    return [found[config.hash] for config in configs]
