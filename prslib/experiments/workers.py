"""Train the missing runs of a sweep in worker processes, and store each when it ends."""

import time
from collections.abc import Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, closing
from functools import partial
from os import PathLike
from typing import NamedTuple

from filelock import Timeout
from joblib import Parallel, cpu_count, delayed
from tqdm import tqdm

from prslib.datasets import load_dataset
from prslib.experiments.store import CHECKPOINT, FAILURE, LOCK, Store, describe
from prslib.models import MODELS
from prslib.paths import ending_with_us
from prslib.training.config import SAVE_EVERY, Run, RunConfig
from prslib.training.device import check_device
from prslib.training.methods import registered, with_registered
from prslib.training.run import run_at_once

AT_ONCE = 64  # runs in a group, the largest stack that bench/many.py measures
KILLED = "its process was killed, most likely as the memory did not suffice"


class Outcome(NamedTuple):
    """Say how a run ended: stored, busy or failed."""

    config: RunConfig
    seconds: float = 0.0
    busy: bool = False  # another process trains it
    error: str | None = None


def train_missing(
    configs: Sequence[RunConfig],
    store: Store,
    workers: int | None,
    device: str,
    save_every: float,
    address: str | None,
) -> None:
    """Train and store runs that are missing; raise RuntimeError at the end if some failed."""
    from prslib.experiments.cluster import train_on_cluster  # it imports this module

    if not address:  # else the GPUs are the cluster's
        check_device(device)
    outcomes = {}
    with tqdm(total=len(configs), desc="training", unit="run", smoothing=0) as bar:
        for wait in (False, True):  # at first runs of other processes are left out
            if not (left := [config for config in configs if config.hash not in outcomes]):
                break
            # processes that wait take single runs in one order, so that none waits in a circle
            in_order = [(config,) for config in sorted(left, key=lambda config: config.hash)]
            groups = in_order if wait else group_runs(left, device)
            arriving = (
                train_on_cluster(address, groups, store, device, wait)
                if address
                else _train_here(groups, store, workers, device, save_every, wait)
            )
            with closing(arriving):
                for outcome in arriving:
                    if not outcome.busy:
                        outcomes[outcome.config.hash] = outcome
                        done = f"{describe(outcome.config.identity)}: {outcome.seconds:.0f} s"
                        bar.set_postfix_str(done, refresh=False)
                        bar.update()
    if failed := [outcome for outcome in outcomes.values() if outcome.error is not None]:
        lines = [f"{describe(o.config.identity)} ({o.config.hash}): {o.error}" for o in failed]
        raise RuntimeError(
            f"{len(failed)} of {len(outcomes)} runs failed, the others are stored; "
            "`python -m prslib runs` shows them, and asking again begins at their last "
            "checkpoint:\n" + "\n".join(lines)
        )


def group_runs(configs: Sequence[RunConfig], device: str) -> list[tuple[RunConfig, ...]]:
    """Group runs that one process trains as one: of one training, on a GPU of one shape."""
    groups = {}
    for config in configs:
        groups.setdefault(config.training, []).append(config)
    return [
        tuple(group[start : start + AT_ONCE])
        for group in groups.values()
        for start in range(0, len(group), AT_ONCE)
    ]


def _train_here(groups, store, workers, device, save_every, wait) -> Iterator[Outcome]:
    """Train groups in processes of this machine, and yield each run's outcome when it ends."""
    configs = [config for group in groups for config in group]
    for name in dict.fromkeys(config.dataset for config in configs):
        load_dataset(name)  # made once here, not once in each process
    workers = workers or process_count(gpu_share(configs, device))
    left, workers = {group[0].hash: group for group in groups}, min(workers, len(groups))
    options = store, device, save_every, wait
    task = partial(delayed(with_registered), registered(), train_and_store)
    while left:
        tasks = [task(group, *options) for group in left.values()]
        try:
            how = {"return_as": "generator_unordered"} | ending_with_us()
            with Parallel(workers, **how) as pool:
                for outcomes in pool(tasks):
                    for outcome in outcomes:
                        left.pop(outcome.config.hash, None)
                        yield outcome
        except BrokenProcessPool:  # a process was killed, which ends the others too
            locked = {path.stem for path in store.folder.glob(f"*{LOCK}")}
            begun = [k for k, group in left.items() if locked & {config.hash for config in group}]
            for key in begun or list(left):
                yield from _train_apart(left.pop(key), *options)


def _train_apart(group: Sequence[RunConfig], store: Store, *options) -> list[Outcome]:
    """Train a group in a process of its own, so that a kill ends no other run."""
    try:
        with Parallel(2, **ending_with_us()) as pool:  # with 1 it would be this process
            task = delayed(with_registered)(registered(), train_and_store, group, store, *options)
            return pool([task])[0]
    except BrokenProcessPool as error:
        for config in group:
            store.record_failure(config, error)
        return [Outcome(config, error=KILLED) for config in group]


def train_and_store(
    group: Sequence[RunConfig],
    store: Store,
    device: str = "cpu",
    save_every: float = SAVE_EVERY,
    wait: bool = True,
) -> list[Outcome]:
    """Train and store the runs of a group that are not stored yet; errors go into the outcomes."""
    start = time.perf_counter()
    missing, outcomes, options = list(group), [], (store, device, save_every, wait)
    try:
        with ExitStack() as locks:
            missing, outcomes = lock_missing(group, store, wait, locks)
            if missing:
                checkpoint = min(store.path(config, CHECKPOINT) for config in missing)
                runs = train_group(missing, device, checkpoint, save_every)
                outcomes += store_runs(runs, store, time.perf_counter() - start)
    except Exception as error:
        if len(missing) > 1:  # each is trained again for itself
            return outcomes + [train_and_store((config,), *options)[0] for config in missing]
        return [*outcomes, failure(missing[0], store, error, time.perf_counter() - start)]
    return outcomes


def lock_missing(
    group: Sequence[RunConfig], store: Store, wait: bool, locks: ExitStack
) -> tuple[list[RunConfig], list[Outcome]]:
    """Lock runs; return those that are not stored yet, and the outcomes of all others."""
    missing, outcomes = [], []
    for config in group:
        try:
            locks.enter_context(store.lock(config, wait))
        except Timeout:
            outcomes.append(Outcome(config, busy=True))
            continue
        if store.load(config) is None:
            store.check_writable()
            store.remove_files(config)
            missing.append(config)
        else:
            _remove_leftovers(config, store)
            outcomes.append(Outcome(config))
    return missing, outcomes


def train_group(
    group: Sequence[RunConfig],
    device: str,
    checkpoint: str | PathLike | None = None,
    save_every: float = SAVE_EVERY,
) -> list[Run]:
    """Train the runs of a group as one."""
    return run_at_once(group, device, checkpoint, save_every)


def store_runs(runs: Sequence[Run], store: Store, seconds: float) -> list[Outcome]:
    """Store runs whose locks this process holds; one that cannot be written fails alone."""
    outcomes, each = [], seconds / len(runs)
    for run in runs:
        try:
            store.save(run)
        except Exception as error:
            outcomes.append(failure(run.config, store, error, each))
        else:
            outcomes.append(Outcome(run.config, each))
    for outcome in outcomes:  # after all are stored, as they share a checkpoint
        if outcome.error is None:
            _remove_leftovers(outcome.config, store)
    return outcomes


def _remove_leftovers(config: RunConfig, store: Store) -> None:
    # the lock goes last: whoever still waits for it finds the result
    store.remove_files(config, CHECKPOINT, FAILURE, LOCK)


def failure(config: RunConfig, store: Store, error: Exception, seconds: float = 0.0) -> Outcome:
    """Record the error that ended a run in the store, and return it as the run's outcome."""
    store.record_failure(config, error)
    return Outcome(config, seconds, error=f"{type(error).__name__}: {error}")


def process_count(share: float) -> int:
    """Return how many processes run side by side if each takes this share of the GPU."""
    return min(cpu_count(), int(1 / share)) if share else cpu_count()


def gpu_share(configs: Sequence[RunConfig], device: str) -> float:
    """Return the largest share of a GPU that one of the runs takes, 0.0 on a CPU."""
    if device == "cpu":
        return 0.0
    return max(MODELS[config.resolved["model"]].gpu_share for config in configs)
