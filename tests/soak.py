"""Disturb all kinds of work at random moments, finish it, compare its bytes.

``python tests/soak.py [KILLS] [SEED] [KIND ...]``: each process of the work is a fork of
this one, which has imported all, so that a kill takes a second and not ten. Its process
or one of its workers is killed, or all are interrupted as Ctrl-C does. A run that was
stored must not be made again, no process may stay, and in the end the bytes are those of
work that nobody disturbed. A kill cannot show a missing fsync: that takes a file system
that drops what was not synced.
"""

import faulthandler
import math
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from contextlib import suppress
from multiprocessing import active_children, get_context
from pathlib import Path

import psutil
from joblib.externals import loky
from tqdm import tqdm

from prslib import cli, configs, run_all

MOST = 8  # kills of one piece of work before it may finish
LIMIT = 300  # seconds after which a piece of work hangs
HARMS = ("kill", "kill a worker", "interrupt")
# files that hold times, or what a kill may leave: the next writing has another name
OTHER = ("executed", ".txt", ".json", ".part")
COCOSEQ = "prepare cocoseq --images ../coco --annotations ../coco/annotations"
WORK = {
    "runs": "CRS 1",
    "runs in two processes": "PRS 2",
    "two that ask for the same runs": "CRS 1 rival",
    "prepare": f"{COCOSEQ} --workers 1",
    "prepare in two processes": f"{COCOSEQ} --workers 2",
    "features": "prepare features cocoseq --workers 2",
    "figures": "figures --profile smoke rho_sweep",
}


def begin(root, kinds):
    """Write the inputs and load what each fork would load again."""
    import sklearn.datasets  # noqa: F401
    import torch._dynamo  # as an optimizer does at its first step
    from helpers.real_folders import write_coco, write_ids

    if "figures" in kinds:
        import papermill  # noqa: F401

        from prslib.report import build  # noqa: F401
    if "features" in kinds:
        from prslib.datasets.features import frozen_network

        frozen_network()
    images = [(n, ["apple" if n % 2 else "bear"]) for n in range(1, 41)]
    images += [(41, ["person"])]  # in no split: left out of the prepared set
    ids = {"train": [[*range(2, 38, 2)], [*range(1, 38, 2)]], "test": [[38], [39]]}
    halves = {"train2014": images, "val2014": [(201, ["apple"]), (202, ["bear"])]}
    write_coco(root / "coco", halves, ("apple", "bear", "person"))
    write_ids(root / "cocoseq_ids", ids | {"teorg": [[202], [201]]}, "coco")
    torch.set_num_threads(1)  # a fork would lack the others
    loky.backend.context.set_start_method("fork")


def work(command, folder, output):
    """Do a piece of work in a process of its own."""
    os.setsid()  # Ctrl-C reaches the processes of a group
    os.chdir(folder)
    os.dup2(output, 1)
    os.dup2(output, 2)
    sys.stdout = os.fdopen(1, "w")  # that of a file cannot become that of a pipe
    faulthandler.dump_traceback_later(LIMIT, exit=True)  # says where it hangs
    tqdm.set_lock(threading.RLock())  # the usual one, shared, a kill can leave locked
    for name in ("cache", "figures", "data"):
        os.environ[f"PRSLIB_{name.upper()}"] = f"{folder}/{name}"
    if command[-1] == "rival":
        os.fork()
    try:
        if command[0] in ("CRS", "PRS"):
            fields = {"dataset": "imbal-digits-tiny", "batch_size": 40}
            runs = configs(method=command[0], seed=[0, 1, 2], **fields)
            run_all(runs, workers=int(command[1]))
        elif cli.main(command):
            sys.exit(1)
    finally:
        for worker in active_children():  # forks of threads may hang, unlike others
            worker.kill()


def disturb(process, harm):
    """Kill a process or one of its workers, or interrupt all."""
    with suppress(psutil.NoSuchProcess, ProcessLookupError):
        if harm == "interrupt":
            os.killpg(process.pid, signal.SIGINT)
            return
        victims = [process.pid]
        if harm == "kill a worker":
            children = psutil.Process(process.pid).children(recursive=True)
            victims = [child.pid for child in children] or victims
        os.kill(victims[-1], signal.SIGKILL)


def attempt(command, folder, after=None, harm="kill"):
    """Do a piece of work, or disturb it after some seconds; return whether it ended."""
    is_prepared = (folder / "data/cocoseq/images.npy").is_file()
    if command.startswith(COCOSEQ) and is_prepared:
        return True  # it was killed after the images, which are written last
    ids = folder / "data/cocoseq_ids"
    shutil.copytree(folder.parent / ids.name, ids, dirs_exist_ok=True)
    if command == WORK["features"]:
        prepared = folder.parent / "prepare" / "data"
        shutil.copytree(prepared, folder / "data", dirs_exist_ok=True)
    reader, writer = os.pipe()
    arguments = command.split(), folder, writer
    process = get_context("fork").Process(target=work, args=arguments)
    process.start()
    os.close(writer)
    faulthandler.dump_traceback_later(2 * LIMIT, exit=True)  # a process has stayed
    with open(reader) as pipe:
        if after is not None:
            process.join(after)
            disturb(process, harm)
        output = pipe.read()  # until its own processes have ended, too
    faulthandler.cancel_dump_traceback_later()
    process.join()
    assert "Timeout" not in output, f"{command} in {folder}:{output}"
    assert process.exitcode == 0 or after is not None, f"{command} in {folder}:{output}"
    return process.exitcode == 0


def contents(folder):
    """Return the bytes of all files that must be equal, by name."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not any(name in str(path) for name in OTHER)
    }


def stored(folder):
    """Return when runs were written: no one may write them again."""
    return {path: path.stat().st_mtime_ns for path in folder.glob("cache/runs/*.npz")}


def disturbed(command, folder, seconds, times, rng):
    """Disturb a piece of work so often, or until it ends; then let it end."""
    for count in range(times + 1):
        before = stored(folder)
        after = seconds * rng.uniform(0, 1) if count < times else None
        ended = attempt(command, folder, after, rng.choice(HARMS))
        again = before.items() - stored(folder).items()
        assert not again, f"{again} were whole and made again"
        if ended:
            return count
    return times


def soak(kind, root, kills, rng):
    """Disturb one kind of work so often, in rounds that each end with it done."""
    command = WORK[kind]
    whole, folder = root / kind, root / "disturbed"
    start = time.monotonic()
    attempt(command, whole)
    seconds, count = time.monotonic() - start, 0
    while count < kills:
        some = disturbed(command, folder, seconds, min(MOST, kills), rng)
        different = contents(folder).items() ^ contents(whole).items()
        assert not different, f"{kind}: {sorted(name for name, _ in different)}"
        shutil.rmtree(folder)
        count += some
        seconds *= 0.5 if some < 2 else 1.25 if some == MOST else 1
    print(f"{kind}: all bytes equal after {count} kills", flush=True)


def main(kills=1000, seed=0, *kinds):
    """Disturb every kind of work, ``kills`` times in all; a fault ends the soak."""
    rng, root = random.Random(int(seed)), Path(tempfile.mkdtemp())
    kinds = kinds or tuple(WORK)
    begin(root, kinds)
    for kind in kinds:
        soak(kind, root, math.ceil(int(kills) / len(kinds)), rng)
    shutil.rmtree(root)


if __name__ == "__main__":
    main(*sys.argv[1:])
