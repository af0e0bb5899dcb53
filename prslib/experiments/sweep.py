"""Load the runs that are stored and train the missing ones; torch loads for the latter alone."""

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
    """Return the runs of all configurations; train only those that are not stored yet.

    Parameters
    ----------
    configs : sequence of RunConfig
        The runs, in any number and order.
    store : Store, optional
        Holds finished runs, by default that of the cache.
    workers : int, optional
        Processes side by side, one thread each. The default is one for each core that this process
        may use, on a GPU at most as many as share it (`Architecture.gpu_share`). A cluster has as
        many as its machines have cores and GPUs.
    device : str
        "cpu" or "cuda".
    save_every : float
        Seconds between two checkpoints of a run. There are none on a cluster.
    address : str, optional
        Address of a Ray cluster that trains the runs: "host:port", or "auto" for that of this
        machine. The default is the environment variable RAY_ADDRESS; without it this machine
        trains.

    Returns
    -------
    list of Run
        In the order of the configurations.

    Raises
    ------
    TypeError
        If ``workers`` is no whole number or ``save_every`` no number.
    ValueError
        If a configuration does not fit its data set, ``workers`` is below 1, ``save_every`` is not
        above 0, or runs are missing and the device is not there.
    NewerStoreError
        If a newer version of prslib stored one of the runs.
    OSError
        If runs are missing and the store cannot be written or its disk is full, or if there is a
        folder in the place of a result.
    ModuleNotFoundError, ConnectionError, ClusterError
        If there is an address and no Ray, no cluster, or one that lacks a data set or a GPU.
    RuntimeError
        If runs failed, when all others are stored; or if a run was removed after its training.

    Notes
    -----
    All errors but RuntimeError are raised before any training.

    Each run is stored when it ends and saves checkpoints on the way, so that an interruption loses
    a few minutes. Runs that differ only in what they look at, such as the test set, are trained as
    one. On a GPU so are small runs of one shape (`prslib.experiments.stacked`).

    Processes that ask for the same runs share the work: each trains first what no other one trains,
    then loads what the others have stored. Worker processes are spawned, not forked, so that each
    may use a GPU.
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
    store.settle()
    found = {config.hash: store.load(config) for config in configs}
    if missing := list({c.hash: c for c in configs if found[c.hash] is None}.values()):
        from prslib.experiments.workers import train_missing  # loads torch

        store.check_writable()
        train_missing(missing, store, workers, device, save_every, address)
        found |= {config.hash: store.load(config) for config in missing}
        if gone := [config.hash for config in missing if found[config.hash] is None]:
            raise RuntimeError(
                f"expected {', '.join(gone)} in {store.folder}, where they were stored, and they "
                "can no longer be read: someone has removed or changed the files; ask again to "
                "train them again"
            )
    return [found[config.hash] for config in configs]  # ty: ignore
