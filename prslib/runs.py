"""Load the runs that are stored, and train the missing ones.

A run is one file, which is written completely or not at all. Its name is the run's key:
a hash of the run's settings, of the inputs and labels of its data set, and of the code
that it executes.
"""

import json
import logging
import os
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import asdict
from functools import cache, partial
from hashlib import sha256
from itertools import product
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np
import pandas as pd
from joblib import cpu_count, delayed

from prslib.checks import check_int, expected, naming_extra, readable
from prslib.datasets import DATASETS, Entry, fingerprint, load_dataset
from prslib.device import check_device
from prslib.losses import LOSSES, Loss
from prslib.models import MODELS, Architecture
from prslib.paths import cache_dir, replacing
from prslib.processes import spread
from prslib.progress import show_progress
from prslib.samplers import SAMPLERS
from prslib.sources import hash_modules, hash_user_code, list_modules, stamp_package
from prslib.train import METHODS, Method, Run, RunConfig, check, run

FRAMES = ("scores", "gradient_variance", "prequential")
PARTS = (*FRAMES, "features", "predictions")  # parts of a run that have columns
TABLES: dict[type, dict[str, Any]] = {
    type: SAMPLERS,
    Method: METHODS,
    Entry: DATASETS,
    Architecture: MODELS,
    Loss: LOSSES,
}
# what a user has registered, by kind and name, with the hash of its code
REGISTERED: dict[tuple[type, str], tuple[Any, str]] = {}


def configs(**fields: Any) -> list[RunConfig]:
    """Make the configurations of a grid, one for each combination of listed values.

    Parameters
    ----------
    **fields
        Values for fields of `RunConfig`. A list or range is expanded into one
        configuration per value, as in scikit-learn's `ParameterGrid`.

    Returns
    -------
    list of RunConfig
        One configuration per combination, without duplicates; the last field changes
        fastest.

    Raises
    ------
    TypeError, ValueError
        As in `RunConfig`; ValueError if a list is empty.

    Examples
    --------
    >>> [(c.method, c.seed) for c in configs(method=["CRS", "PRS"], seed=range(2))]
    [('CRS', 0), ('CRS', 1), ('PRS', 0), ('PRS', 1)]
    """
    values = []
    for name, value in fields.items():
        listed = list(value) if isinstance(value, list | range) else [value]
        if not listed:
            raise ValueError(expected(f"at least one of {name}", "none"))
        values.append(listed)
    made = [
        RunConfig(**dict(zip(fields, row, strict=True))) for row in product(*values)
    ]
    first: dict[str, RunConfig] = {}
    for config in made:
        first.setdefault(repr(config.identity), config)
    return list(first.values())


def key_of(config: RunConfig) -> str:
    """Return the key of a run: 16 hexadecimal digits."""
    identity = config.identity
    names = config.method, identity["loss"], identity["model"]
    parts = {
        "settings": identity,
        "data": fingerprint(config.dataset),
        "code": code_of(*names, stamp_package()),
    }
    # an option may be a numpy number
    text = json.dumps(parts, sort_keys=True, default=lambda number: number.item())
    return sha256(text.encode()).hexdigest()[:16]


@cache
def code_of(method: str, loss: str, model: str, stamp: str) -> str:
    """Hash the code that a method executes with a loss and a network."""
    row, network = METHODS[method], MODELS[model]
    modules = ["prslib.train", *list_modules(LOSSES[loss].function)]
    if row.sampler:
        modules += list_modules(SAMPLERS[row.sampler])
    for maker in (network.made_by, network.backbone):
        if isinstance(maker, str):
            modules.append(f"prslib.models.{maker.partition(':')[0]}")
    used = {(type, row.sampler), (Loss, loss), (Architecture, model)}
    codes = [code for key, (_, code) in REGISTERED.items() if key in used]
    settings = asdict(row), LOSSES[loss].one_label  # both may be registered
    rows = hash_modules(modules, stamp), sorted(codes), settings
    return sha256(repr(rows).encode()).hexdigest()


def register(name: str, thing: Any) -> None:
    """Register a custom sampler, loss, method, data set or network under a name.

    Parameters
    ----------
    name : str
        Name that `RunConfig` accepts and figures show.
    thing : class, function, Loss, Method, Entry or Architecture
        A subclass of `prslib.Sampler`; a row of `METHODS`, `DATASETS`, `MODELS` or
        `LOSSES`; or the function of a loss. A sampler also becomes a method of the same
        name. Its keyword-only parameters are options: ``rho`` is set by the field of
        that name in `RunConfig`, and all other options by the field ``options``.

    Raises
    ------
    TypeError
        If ``thing`` has another type.
    ValueError
        If ``name`` is the name of a built-in sampler, loss, method, data set or network
        of the same kind.

    Notes
    -----
    What a script or notebook registers is also known to worker processes and to the
    machines of a cluster. The key of a run covers the file or cell that defines
    ``thing``, but not helpers and constants in other files and cells.

    Examples
    --------
    >>> register("CRS, frozen", Method(sampler="crs", frozen="vector_stages"))
    >>> METHODS.pop("CRS, frozen").sampler
    'crs'
    """
    if isinstance(thing, type) and hasattr(thing, "place"):
        rows = {type: thing, Method: Method(sampler=name)}
    elif not isinstance(thing, type) and type(thing) in TABLES:
        rows = {type(thing): thing}
    elif callable(thing) and not isinstance(getattr(thing, "func", thing), type):
        rows = {Loss: Loss(thing)}
    else:
        what = f"a sampler's class, a loss, Method, Entry or Architecture as {name}"
        raise TypeError(expected(what, thing))
    for kind in rows:
        if name in TABLES[kind] and (kind, name) not in REGISTERED:
            raise ValueError(expected("another name than prslib's own", name))
    for kind, row in rows.items():
        parts = [row] if kind is type else vars(row).values()
        code = [] if kind is Entry else [part for part in parts if callable(part)]
        REGISTERED[kind, name] = row, repr([hash_user_code(part) for part in code])
        TABLES[kind][name] = row
    fingerprint.cache_clear()
    code_of.cache_clear()


def path_of(config: RunConfig) -> Path:
    """Return the file of a run, in ``runs/`` of the cache."""
    return cache_dir() / "runs" / f"{key_of(config)}.npz"


def save(run: Run, path: Path) -> None:
    """Write a run's file completely or not at all; equal runs give equal bytes."""
    arrays: dict[str, Any] = {"memory_labels": run.memory_labels}
    about = {"config": asdict(run.config), "record": run.record}
    arrays["about"] = np.array(json.dumps(about, sort_keys=True, default=repr))
    for part in PARTS:
        columns = getattr(run, part)
        for name in [] if columns is None else columns:
            values = np.asarray(columns[name])
            is_text = values.dtype == object
            arrays[f"{part}.{name}"] = values.astype(str) if is_text else values
    if run.resampled is not None:
        arrays["resampled"] = run.resampled.to_numpy()
        arrays["resampled_rows"] = run.resampled.index.to_numpy()
    with replacing(path) as file:
        np.savez_compressed(file, **arrays)


def load(config: RunConfig, path: Path) -> Run:
    """Read a run from its file."""
    with readable(f"the run in {path}"), np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    parts: dict[str, dict[str, np.ndarray]] = {part: {} for part in PARTS}
    for name, values in arrays.items():
        part, _, column = name.partition(".")
        if column:
            is_text = values.dtype.kind == "U"
            parts[part][column] = values.astype(object) if is_text else values
    frames = {name: pd.DataFrame(parts[name]) for name in FRAMES if parts[name]}
    resampled = None
    if "resampled" in arrays:
        resampled = pd.DataFrame(arrays["resampled"], arrays["resampled_rows"])
    return Run(
        config,
        memory_labels=arrays["memory_labels"],
        resampled=resampled,
        features=parts["features"],
        predictions=parts["predictions"],
        record=json.loads(arrays["about"].item())["record"],
        **frames,
    )


def run_all(
    configs: Iterable[RunConfig], workers: int | None = None, device: str = "cpu"
) -> list[Run]:
    """Return the runs of all configurations; train only those that are not stored.

    Parameters
    ----------
    configs : iterable of RunConfig
        Configurations in any order.
    workers : int, optional
        Number of parallel processes with one thread each. The default is one process
        per core or, on a GPU, as many processes as the GPU can hold
        (`Architecture.gpu_share`).
    device : str
        "cpu", "cuda", "cuda:1" for the second GPU, "mps", or "auto" for a GPU if there
        is one.

    Returns
    -------
    list of Run
        In the order of the configurations.

    Raises
    ------
    ValueError
        Before any training, if a configuration does not fit its data set or the device
        is not available.
    RuntimeError
        If a run failed. All other runs have been stored before this error is raised.

    Warns
    -----
    UserWarning
        If the runs were computed on different devices, or with different versions of
        PyTorch and NumPy.

    See Also
    --------
    run : Trains one configuration and stores nothing.
    configs : Makes the configurations of a grid.

    Notes
    -----
    Runs are stored in the folder that the environment variable PRSLIB_CACHE names. The
    default is ``cache/`` in the checkout or, without a checkout, the user's cache
    folder. If RAY_ADDRESS names a Ray cluster, the machines of the cluster train the
    runs.

    Examples
    --------
    >>> grid = configs(dataset="digits70tiny", method=["CRS", "PRS"], seed=range(5))
    >>> runs = run_all(grid, workers=2)  # doctest: +SKIP
    >>> len(grid)
    10
    """
    configs = list(configs)  # it may be a generator
    paths = train(configs, workers, device)
    runs = [load(*pair) for pair in zip(configs, paths, strict=True)]
    records = {json.dumps(run.record, sort_keys=True): run.record for run in runs}
    if len(records) > 1:
        ways = "; ".join(" ".join(record.values()) for record in records.values())
        warnings.warn(f"runs computed in {len(records)} ways: {ways}", stacklevel=2)
    return runs


def train(
    configs: Collection[RunConfig], workers: int | None = None, device: str = "cpu"
) -> list[Path]:
    """Train the runs that are not stored, as `run_all` does; return all runs' files."""
    paths = [path_of(config) for config in configs]  # before anybody edits the code
    # a process that switches between data sets loads them again each time
    pairs = sorted(zip(paths, configs, strict=True), key=lambda pair: pair[1].dataset)
    missing = {path: config for path, config in pairs if not path.is_file()}
    if not missing:
        return paths
    address = os.environ.get("RAY_ADDRESS")
    if not address:
        device = check_device(str(device))
    for config in missing.values():
        check(config, load_dataset(config.dataset, images=False))
    if address:
        gather(train_on_ray(missing, address, device), missing)
    else:
        read: dict[str, str] = {}
        for config in missing.values():
            read |= rows_of(config)
        gather(train_here(missing, workers, device, partial(train_one, read)), missing)
    return paths


def gather(results: Iterator[str | None], paths: Collection[Path]) -> None:
    """Wait for runs, which yield None or an error's text; raise if any failed."""
    count = len(paths)
    try:
        errors = [error for error in show_progress(results, count) if error]
    except KeyboardInterrupt:
        stored = sum(path.is_file() for path in paths)
        text = f"{stored} of {count} runs are stored and kept; the others start again"
        raise Interrupted(f"stopped: {text}") from None
    if errors:
        what = f"{len(errors)} of {count} runs failed, the others are stored:"
        raise RuntimeError("\n".join([what, *errors]))


class Interrupted(KeyboardInterrupt):
    """Training was stopped by the user; IPython shows only the message."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


def train_here(
    missing: dict[Path, RunConfig],
    workers: int | None,
    device: str,
    train: Callable[[str, Path, RunConfig], str | None],
) -> Iterator[str | None]:
    """Train runs in processes of this machine; yield an error's text, or None."""
    for folder in {path.parent for path in missing}:
        folder.mkdir(parents=True, exist_ok=True)
        TemporaryFile(dir=folder).close()  # fails before the training, not after it
    most = cpu_count()
    if device != "cpu":
        models = [config.resolved["model"] for config in missing.values()]
        share = max(MODELS[name].gpu_share for name in models)
        most = min(most, int(1 / share))
    if workers is not None:
        most = check_int("workers", workers, least=1)
    count = min(most, len(missing))
    task = delayed(partial(train, device))
    return spread(
        (task(path, config) for path, config in missing.items()),
        max(count, 2),  # with 1, joblib would use this process and its older code
        add_registered,
        dict(REGISTERED),
        stamp_package(),  # so that edited code starts new processes
        return_as="generator_unordered",
        batch_size=1,
        pre_dispatch=count,
    )


def add_registered(registered: dict[tuple[type, str], Any], _stamp: str = "") -> None:
    """Add what another process has registered."""
    REGISTERED.update(registered)
    for (kind, name), (row, _) in registered.items():
        TABLES[kind][name] = row


def rows_of(config: RunConfig) -> dict[str, str]:
    """Return a run's data set (with its recipe) and method as text, by their names."""
    data = f"{fingerprint(config.dataset)} {DATASETS[config.dataset].recipe}"
    return {config.dataset: data, config.method: repr(METHODS[config.method])}


def train_one(
    read: dict[str, str], device: str, path: Path, config: RunConfig
) -> str | None:
    """Train and store a run in a worker process; return the text of its error, if any.

    The process reads the data set and the method again, which must be the same as in
    the run's key.
    """
    try:
        if not rows_of(config).items() <= read.items():
            what = f"{config.dataset} and {config.method} as this Python has read them"
            advice = "register them again, or restart Python"
            raise ValueError(expected(what, "others", advice))
        save(run(config, device), path)
    except Exception as error:
        return f"{config}: {type(error).__name__}: {error}"
    return None


def train_on_ray(
    missing: dict[Path, RunConfig], address: str, device: str
) -> Iterator[str | None]:
    """Train runs on a Ray cluster, whose machines share no folder with this one."""
    # Ray's ports execute anybody's code, so the network must be trusted
    with naming_extra("cluster"):
        import ray

    ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    try:
        if device != "cpu" and not ray.cluster_resources().get("GPU"):
            raise ConnectionError(expected(f"a GPU in the cluster {address}", "none"))
        tasks = {}
        for path, config in missing.items():
            share = MODELS[config.resolved["model"]].gpu_share if device != "cpu" else 0
            remote = ray.remote(num_cpus=1, num_gpus=share)(train_there)
            task = remote.remote(dict(REGISTERED), device, path.stem, config)
            tasks[task] = path, config
        while tasks:
            (task,), _ = ray.wait(list(tasks))
            path, config = tasks.pop(task)
            try:
                save(ray.get(task), path)
                yield None
            except Exception as error:
                yield f"{config}: {type(error).__name__}: {error}"
    finally:
        ray.shutdown()  # also ends submitted tasks


def train_there(
    registered: dict[tuple[type, str], Any], device: str, key: str, config: RunConfig
) -> Run:
    """Train a run on another machine, if it has the same data and code."""
    add_registered(registered)
    if key_of(config) != key:
        what = f"{config.dataset} and prslib as on the machine that asked"
        raise ValueError(expected(what, "others", "install them there"))
    return run(config, device)
