"""prslib as it is installed: with numpy and numba alone, its command, types and locked packages."""

import os
import re
import subprocess
import sys

import pandas as pd

import prslib
from prslib.cli import _parser, main
from prslib.paths import project_root

BARE = """import sys
names = "pandas", "scipy", "sklearn", "torch", "joblib", "tqdm", "filelock", "PIL"
sys.modules |= dict.fromkeys(names)  # their import fails, as where they are missing
import prslib, prslib.cli
prslib.make_sampler("crs", 2, 3, seed=0), prslib.Memory(2), prslib.MODELS
prslib.load_dataset("digits70tiny", images=False)
print(prslib.load_dataset("cocoseq-mini").train.labels.shape, prslib.cli.main(["train"]))
for ask in (lambda: prslib.run, lambda: prslib.load_dataset("digits70tiny")):
    try:
        ask()
    except ModuleNotFoundError as error:
        print(error)
"""


def test_what_is_missing_is_named_with_its_extra_and_labels_need_neither_it_nor_a_cache(
    tmp_path,
):
    environment = os.environ | {"PRSLIB_CACHE": str(tmp_path / "cache")}
    command = [sys.executable, "-c", BARE]
    done = subprocess.run(command, env=environment, text=True, capture_output=True)
    said = r"\(2072, 70\) 1\nexp.* '\.\[training\]' in .*\nexp.* '\.\[data\]' in .*\n$"
    assert re.match(said, done.stdout), done
    assert "pip install '.[report]' in the checkout" in done.stderr
    assert not (tmp_path / "cache").exists()


def test_the_report_is_missed_in_a_sentence(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "prslib.report.build", None)  # as in the wheel
    assert main(["figures", "rho_sweep"]) == 1
    assert capsys.readouterr().err.count("pip install -e '.[report]' in the check") == 1


def test_numba_is_not_loaded_for_help():
    code = "import sys, prslib.cli; prslib.cli._parser(); print('numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True)
    assert done.stdout == "False\n"


def test_commands_work_without_docstrings(tmp_path):
    environment = os.environ | {"PYTHONOPTIMIZE": "2", "PRSLIB_CACHE": str(tmp_path)}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    for command in ("--version", "--help", "prepare --help"):
        arguments = [sys.executable, "-m", "prslib", *command.split()]
        done = subprocess.run(
            arguments, env=environment, text=True, capture_output=True
        )
        assert done.returncode == 0, done.stderr


def test_every_help_text_has_an_example_that_is_understood():
    commands = _parser()._subparsers._group_actions[0].choices
    prepared = commands["prepare"]._subparsers._group_actions[0].choices
    for parser in (*commands.values(), *prepared.values()):
        _, words = parser.format_help().split("example: prslib ")
        assert _parser().parse_args(words.split()).command


def test_one_version_and_the_locked_packages_of_the_committed_figures():
    files = ("CITATION.cff", "CHANGELOG.md", "locked.txt")
    citation, changes, locked = ((project_root() / file).read_text() for file in files)
    assert f"\nversion: {prslib.__version__}\n" in citation
    assert f"\n## {prslib.__version__}\n" in changes
    pinned = r"^([a-z0-9-]+)==(\S+) .*\\\n    --hash=sha256:"
    pins = dict(re.findall(pinned, locked, re.MULTILINE))
    assert len(pins) == len(re.findall("^[a-z]", locked, re.MULTILINE))
    table = project_root() / "figures" / "quick" / "ledger_versions.csv"
    used = pd.read_csv(table, index_col=0)["version"]
    assert used.to_dict().items() <= pins.items()
