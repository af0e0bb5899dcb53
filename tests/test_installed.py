"""prslib as it is installed: with numpy alone, its command, and the locked packages."""

import os
import re
import shutil
import subprocess
import sys

import pandas as pd

from prslib.cli import main
from prslib.paths import PACKAGE, project_root
from prslib.rounding import CHOICES, CPU_INFO

BARE = """import sys
names = "pandas", "scipy", "sklearn", "torch", "joblib", "tqdm", "PIL"
names += "torchvision", "threadpoolctl", "matplotlib", "numba"
sys.modules |= dict.fromkeys(names)  # their import fails, as where they are missing
import numpy as np
import prslib, prslib.cli, prslib.label_files, prslib.labels
labels = np.eye(3, dtype=bool)
for name in prslib.SAMPLERS:
    prslib.make_sampler(name, 2, 3, seed=0)
prslib.Memory(2).write(np.arange(2), index=np.arange(2))
buffer = prslib.Buffer(prslib.make_sampler("prs", 2, 3, seed=0))
buffer.add(labels, index=np.arange(3))
prslib.check_sampler(prslib.SAMPLERS["crs"])
print(len(buffer.sample(2)["index"]), len(prslib.preview(labels, 2).class_counts))
prslib.MODELS, prslib.load_dataset("digits70tiny", images=False)
print(prslib.load_dataset("cocoseq-mini").train.labels.shape)
asks = [lambda name=name: getattr(prslib, name) for name in prslib.__all__]
for ask in (*asks, lambda: prslib.load_dataset("digits70tiny")):
    try:
        ask()
    except ModuleNotFoundError as error:
        print(error)
print(prslib.cli.main(["run", "digits70tiny", "CRS"]))
"""
NEED_MORE = "LOSSES METHODS Run RunConfig compare configs evaluate make_model register"


def test_what_is_missing_is_named_with_its_extra_and_labels_need_neither_it_nor_a_cache(
    tmp_path,
):
    environment = os.environ | {"PRSLIB_CACHE": str(tmp_path / "cache")}
    command = [sys.executable, "-c", BARE]
    done = subprocess.run(command, env=environment, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    first, second, *errors, status = done.stdout.splitlines()
    assert (first, second, status) == ("2 4", "(2072, 70)", "1")
    extras = [
        re.search(r"pip install -e '\.\[(\w+)\]' in the", one)[1] for one in errors
    ]
    names = sorted([*NEED_MORE.split(), "run", "run_all", "scores", "trial"])
    without_torch = ("compare", "evaluate", "scores")
    expected = ["data" if n in without_torch else "training" for n in names]
    assert extras == [*expected, "data"]
    assert "pip install -e '.[training]' in the checkout" in done.stderr
    assert not (tmp_path / "cache").exists()


def test_the_report_is_missed_in_a_sentence(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "prslib.report.build", None)  # as in the wheel
    assert main(["figures", "rho_sweep"]) == 1
    assert capsys.readouterr().err.count("pip install -e '.[report]' in the check") == 1


LACKS = """import numpy as np
import os, sys
import prslib, prslib.cli
buffer = prslib.Buffer(prslib.make_sampler("prs", 2, 3, seed=0))
buffer.add(np.eye(3, dtype=bool), index=np.arange(3))
prslib.preview(np.eye(3, dtype=bool), 2)
prslib.cli._parser()
slow = {"torch", "pandas", "scipy", "sklearn", "matplotlib"}
print(sorted(slow & sys.modules.keys()), "MKL_CBWR" in os.environ)
prslib.run_all  # who trains rounds alike
import torch
print(os.environ.get("MKL_CBWR"), torch.backends.cpu.get_cpu_capability())
prslib.cli.main(["figures"])
"""
HAS_AVX2 = CPU_INFO.is_file() and " avx2 " in CPU_INFO.read_text()


def test_the_wheel_loads_numpy_alone_and_has_no_notebooks(tmp_path):
    left_out = shutil.ignore_patterns("report", "__pycache__")
    shutil.copytree(PACKAGE, tmp_path / "prslib", ignore=left_out)
    done = subprocess.run(
        [sys.executable, "-c", LACKS],
        env={k: v for k, v in os.environ.items() if k not in CHOICES}
        | {"PYTHONPATH": str(tmp_path)},
        cwd=tmp_path,
        text=True,
        capture_output=True,
    )
    light, rounding = done.stdout.splitlines()
    assert light == "[] False"
    assert rounding == "COMPATIBLE AVX2" or not HAS_AVX2
    assert "notebooks need a checkout of prslib" in done.stderr


def test_workers_of_a_command_import_nothing_of_the_current_folder(tmp_path):
    (tmp_path / "threading.py").write_text("raise SystemExit('imported')")
    code = "import joblib; from prslib.cli import main; main(['figures', 'none']);"
    code += "print(joblib.Parallel(2)(joblib.delayed(abs)(k) for k in (1, -1)))"
    command = [sys.executable, "-P", "-c", code]  # as the console script
    done = subprocess.run(command, cwd=tmp_path, text=True, capture_output=True)
    assert done.stdout == "[1, 1]\n", done.stderr


def test_the_locked_packages_are_those_of_the_committed_figures():
    locked = (project_root() / "locked.txt").read_text()
    pinned = r"^([a-z0-9-]+)==(\S+) .*\\\n    --hash=sha256:"
    pins = dict(re.findall(pinned, locked, re.MULTILINE))
    assert len(pins) == len(re.findall("^[a-z]", locked, re.MULTILINE))
    table = project_root() / "figures" / "quick" / "ledger_versions.csv"
    used = pd.read_csv(table, index_col=0)["version"]
    assert used.to_dict().items() <= pins.items()
