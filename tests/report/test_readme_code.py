"""Every python block of all pages runs by itself as it stands; commands are understood."""

import re
import shlex
import warnings
from importlib.util import find_spec

import papermill.cli
import pytest

from prslib.cli import _parser
from prslib.paths import project_root
from prslib.report.notebook import Settings

# a block, and what it prints where that stands below it
FENCED = re.compile(
    r"^```python\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?", re.DOTALL | re.MULTILINE
)
PAGES = [
    *(project_root() / name for name in ("README.md", "CONTRIBUTING.md")),
    project_root() / "prslib" / "README.md",  # of the wheel
    *sorted(project_root().glob("docs/**/*.md")),
]
# what renew.py copies from files, which run elsewhere
COPIED = re.compile(r"<!-- code .*?: begin -->.*?<!-- code: end -->", re.DOTALL)
SHELL = re.compile(r"^```sh\n(.*?)^```$", re.DOTALL | re.MULTILINE)
INLINE = re.compile(r"`((?:python -m )?prslib [^`]+|make [^`]+)`")
BLOCKS = [
    pytest.param(*block, id=f"{file.parent.name}-{file.stem}{k}")
    for file in PAGES
    for k, block in enumerate(FENCED.findall(file.read_text()))
]


@pytest.mark.usefixtures("registers", "trains_here")
@pytest.mark.parametrize(("code", "printed"), BLOCKS)
def test_a_block_runs(code, printed, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for package, project in (
        ("avalanche", "avalanche-lib"),
        ("imblearn", "imbalanced-learn"),
        ("capymoa", "capymoa"),
        ("river", "river"),
    ):
        if f"from {package}" in code and find_spec(package) is None:
            pytest.skip(f"{project} is not installed")
    if "avalanche" in code or "capymoa" in code:
        warnings.simplefilter("ignore")  # their own
    file = tmp_path / "block.py"  # what is registered has its source there
    file.write_text(code)
    exec(compile(code, file, "exec"), {"__name__": "__main__"})
    assert not printed or capsys.readouterr().out == printed


@pytest.mark.parametrize(
    "file", PAGES, ids=lambda file: f"{file.parent.name}-{file.stem}"
)
def test_no_block_escapes_and_commands_are_understood(file, capsys):
    text = COPIED.sub("", file.read_text())
    shells = SHELL.findall(text)
    fences = re.findall(r"^\s*(?:```|~~~) *\{?(?:code|py|python|ipython)", text, re.M)
    assert len(fences) == len(FENCED.findall(text))
    assert len(re.findall(r"```(?:sh|bash|shell|console)", text)) == len(shells)
    lines = [line for block in shells for line in block.splitlines()]
    makefile = (project_root() / "Makefile").read_text()
    for line in [*lines, *INLINE.findall(text)]:
        line = line.replace("$SLURM_ARRAY_TASK_ID", "1")
        words = shlex.split(line.removeprefix("python -m "), comments=True) or [""]
        if words[0] == "make":
            targets = [word for word in words[1:] if "=" not in word]
            assert all(re.search(rf"^{word}:", makefile, re.M) for word in targets)
        if words[0] == "python":
            assert (project_root() / words[1]).is_file()
        if words[0] == "prslib":
            words = [word.replace("NAME", "cocoseq") for word in words[1:]]
            try:
                assert _parser().parse_args(words).command
            except SystemExit:  # a sentence names a part of a command
                assert line not in lines and "are required" in capsys.readouterr().err


# in a comment or a sentence it may go on in the next line
PAPERMILL = re.compile(r"papermill(?:\n#)? notebooks/(?:\\\n#? *|\n# |[^`\n])*")
TELLING = [*PAGES, *sorted(project_root().glob("notebooks/*.py"))]
TELLING += sorted(project_root().glob("params/*/*.yaml"))


@pytest.mark.parametrize(
    "file", TELLING, ids=lambda file: f"{file.parent.name}-{file.stem}"
)
def test_papermill_commands_name_parameters_that_exist(file, monkeypatch):
    monkeypatch.chdir(project_root())
    asked = []
    monkeypatch.setattr(
        papermill.cli, "execute_notebook", lambda **it: asked.append(it)
    )
    commands = PAPERMILL.findall(file.read_text())
    for command in commands:
        command = re.sub(r"\\?\n#? *", " ", command)
        words = shlex.split(command, comments=True)[1:]
        papermill.cli.papermill(words, standalone_mode=False)
    for request in asked:
        name = request["input_path"].removeprefix("notebooks/").removesuffix(".ipynb")
        values = request["parameters"]
        Settings.of(values.pop("profile", "quick"), name, **values)
    assert len(asked) == len(commands)
    assert commands or file.suffix != ".yaml"
