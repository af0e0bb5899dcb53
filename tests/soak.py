"""Kill all kinds of work at random moments, finish it, and compare its bytes.

``python tests/soak.py [KILLS] [SEED]``: each process of the work is a fork of this one,
which has imported all, so that a kill takes a second and not ten. A result that was
whole when the work was killed must not be made again. ``tests/test_soak.py`` seeds
faults, each of which fails it. A kill cannot show a missing fsync: that takes a file
system that drops what was not synced.
"""

import faulthandler
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from multiprocessing import get_context
from pathlib import Path

from joblib.externals import loky
from tqdm import tqdm

from prslib import cli, configs, run_all
from prslib.experiments import sweep

MOST, LEAST = 8, 30  # kills of one piece of work before it may finish; of each kind
LIMIT = 300  # seconds after which a piece of work hangs
OTHER = ("executed", "features.json", ".lock")  # they hold times, or nothing
METHODS = ("CRS", "PRS", "GSS", "ExStream", "EWC", "Multitask")
COCOSEQ = (
    "prepare cocoseq --images ../coco --annotations ../coco/annotations --ids ../ids"
)
WORK = {f"runs of {name}": f"{name} 1" for name in METHODS} | {
    "runs in two processes": "PRS 2",
    "two that ask for the same runs": "CRS 1 rival",
    "prepare": f"{COCOSEQ} --workers 1",
    "prepare in two processes": f"{COCOSEQ} --workers 2",
    "features": "prepare features cocoseq --workers 2",
    "figures": "figures --profile smoke rho_sweep",
}


class Fault(Exception):  # noqa: N818
    """A piece of work left something wrong."""


def begin(root):
    """Write the inputs and load what each fork would load again."""
    import papermill  # noqa: F401
    import torch
    from helpers.real_folders import write_coco, write_ids

    from prslib.datasets.features import DEFAULT, frozen_network
    from prslib.report import build, rho_sweep  # noqa: F401
    from prslib.samplers import make_sampler

    images = [(n, ["apple" if n % 2 else "bear"]) for n in range(1, 41)]
    images += [(41, ["person"])]  # in no split: left out of the prepared set
    ids = {"train": [[*range(2, 38, 2)], [*range(1, 38, 2)]], "test": [[38], [39]]}
    halves = {"train2014": images, "val2014": [(201, ["apple"]), (202, ["bear"])]}
    write_coco(root / "coco", halves, ("apple", "bear", "person"))
    write_ids(root / "ids", ids | {"teorg": [[202], [201]]}, "coco")
    torch.set_num_threads(1)  # a fork would lack the others
    frozen_network(DEFAULT, None)
    one_class = make_sampler("prs", size=1, num_classes=1, seed=0)
    one_class.place([[True], [True]])  # compiles it, once for all forks
    loky.backend.context.set_start_method("fork")


def runs(method, workers):
    """Train two runs of a method and note which were trained."""
    options = {"dataset": "imbal-digits-tiny", "seed": [0, 1], "batch_size": 40}
    options |= {"variance_points": [0, 3]} if method == "CRS" else {}
    train, cache = sweep.train_group, Path(os.environ["PRSLIB_CACHE"])

    def noted(group, **how):
        result = train(group, **how)
        lines = "".join(f"{name}\n" for name in how["hashes"])
        with open(cache.parent / "trained", "a") as notes:
            notes.write(lines)
        return result

    sweep.train_group = noted
    run_all(configs(method=method, **options), workers=workers, save_every=0.05)


def work(command, folder, output):
    """Do a piece of work in a process of its own."""
    os.setsid()  # a group, which a limit can end as a whole
    os.chdir(folder), os.dup2(output, 1), os.dup2(output, 2)
    faulthandler.dump_traceback_later(0.9 * LIMIT, exit=True)  # says where it hangs
    tqdm.set_lock(threading.RLock())  # the usual one, shared, a kill can leave locked
    for name in ("cache", "figures", "data"):
        os.environ[f"PRSLIB_{name.upper()}"] = f"{folder}/{name}"
    rival = os.fork() if command[-1] == "rival" else None
    if command[0] in METHODS:
        runs(command[0], int(command[1]))
    elif cli.main(command):
        sys.exit(1)
    if rival == 0:
        os._exit(0)
    if rival and os.waitstatus_to_exitcode(os.waitpid(rival, 0)[1]):
        sys.exit(1)
    if pool := loky.reusable_executor._executor:
        pool.shutdown()  # as a process that is no fork does at its end


def attempt(kind, folder, after=0, stop=None, limit=LIMIT, do=work):
    """Do a piece of work, or stop it; return whether it came to its end."""
    (folder / "data").mkdir(parents=True, exist_ok=True)
    if kind == "features":
        shutil.copytree(
            folder.parent / "prepare/data", folder / "data", dirs_exist_ok=True
        )
    reader, writer = os.pipe()
    arguments = WORK.get(kind, kind).split(), folder, writer
    process = get_context("fork").Process(target=do, args=arguments)
    process.start()
    os.close(writer)
    process.join(after)
    if stop and process.is_alive():
        getattr(process, stop)()

    def hangs(*_):
        os.killpg(process.pid, signal.SIGKILL)
        raise Fault(f"{kind}: a process of it still runs after {limit} s")

    signal.signal(signal.SIGALRM, hangs)
    signal.setitimer(signal.ITIMER_REAL, limit)
    try:
        with open(reader) as pipe:
            output = pipe.read()  # until its own processes have ended, too
        process.join()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    if process.exitcode > 0 or (process.exitcode and not stop):
        raise Fault(f"{kind}: exit {process.exitcode} in {folder}:\n{output}")
    return process.exitcode == 0


def contents(folder):
    """Return the bytes of all files that must be equal, by name."""
    files = {str(path.relative_to(folder)): path for path in folder.rglob("*")}
    return {
        name: path.read_bytes()
        for name, path in files.items()
        if path.is_file() and name != "trained" and not any(o in name for o in OTHER)
    }


def check(kind, folder, whole):
    """Raise Fault where finished work differs from undisturbed, or was done twice."""
    wrong = {name for name, _ in contents(folder).items() ^ whole.items()}
    runs = folder / "cache" / "runs"
    wrong |= {path.name for path in runs.glob("*") if path.suffix != ".zip"}
    if wrong:
        raise Fault(f"{kind}: {sorted(wrong)} differ or are left in {folder}")


def made_again(folder, before):
    """Count results that were whole when the work was killed and have changed since."""
    changed = [path for path, stamp in before.items() if stamp != _stamp(path)]
    if changed:
        names = sorted(path.name for path in changed)
        raise Fault(f"{names} were whole and made again in {folder}")


def trained_once(folder):
    """Raise Fault where undisturbed work trained a run more than once."""
    counts = Counter((folder / "trained").read_text().split())
    if twice := [name for name, count in counts.items() if count > 1]:
        raise Fault(f"{twice} trained more than once in {folder}")


def finished(folder):
    """Return when results were written: no one may write them again."""
    return {path: _stamp(path) for path in folder.glob("cache/runs/*.zip")}


def _stamp(path):
    return path.stat().st_mtime_ns if path.exists() else None


def main(kills=1000, seed=0):
    """Kill work ``kills`` times; a fault ends the soak."""
    rng, done, began, pieces = random.Random(seed), Counter(), time.monotonic(), 0
    root, whole, seconds = Path(tempfile.mkdtemp()), {}, {}
    begin(root)
    for kind in WORK:
        start = time.monotonic()
        attempt(kind, root / kind)
        seconds[kind], whole[kind] = time.monotonic() - start, contents(root / kind)
        if WORK[kind].split()[0] in METHODS:
            trained_once(root / kind)
    while done.total() < kills:
        kind = min(WORK, key=lambda k: (done[k] >= LEAST, done[k] * seconds[k]))
        folder, most, pieces = (
            root / "killed",
            min(MOST, kills - done.total()),
            pieces + 1,
        )
        for killed in range(most + 1):
            how = seconds[kind] * rng.uniform(0, 0.5), rng.choice(["kill", "terminate"])
            before = finished(folder)
            ended = attempt(kind, folder, *how[: 2 * (killed < most)])
            made_again(folder, before)
            if ended:
                break
            done[kind] += 1
        # moments of later kills: earlier in work that was never killed, later in other
        seconds[kind] *= 0.5 if killed < 2 else 1.25 if killed == most else 1
        check(kind, folder, whole[kind])
        shutil.rmtree(folder)
        print(
            f"{kind}: equal, {done.total()} kills so far", file=sys.stderr, flush=True
        )
    shutil.rmtree(root)
    print(f"kills of {dict(done)}")
    print(
        f"{done.total()} kills in {pieces} pieces of work: all bytes equal, nothing left"
    )
    print("nothing that was whole was made again")
    print(f"{time.monotonic() - began:.0f} s, {sum(os.times()[2:4]):.0f} s of CPU")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
