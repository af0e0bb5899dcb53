"""The notebooks as files, and executed under the smoke profile."""

import ast
import re

import jupytext
import matplotlib as mpl
import nbformat
import pytest
import yaml
from in_process import InProcess
from papermill import inspect_notebook
from papermill.engines import papermill_engines
from registered import forgetting

from prslib.paths import project_root
from prslib.report import build, style
from prslib.report.notebook import Settings, assigned, declared

ROOT = project_root()
NAMES = sorted(file.stem for file in (ROOT / "notebooks").glob("*.ipynb"))
PROFILE_FILES = sorted((ROOT / "params").glob("*/*.yaml"))


def cells_of(name):
    return nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", as_version=4).cells


def code_of(name):
    return [cell for cell in cells_of(name) if cell.cell_type == "code"]


@pytest.mark.parametrize("name", NAMES)
def test_pairs_are_in_sync_without_outputs_and_read_as_articles(name):
    def contents(cells):
        return [(c.cell_type, c.source, c.metadata.get("tags", [])) for c in cells]

    cells = cells_of(name)
    script = jupytext.read(ROOT / "notebooks" / f"{name}.py")
    assert contents(script.cells) == contents(cells), "run `make lint`"
    assert cells[0].source.startswith("# ")
    for cell in code_of(name):
        assert not (cell.outputs or cell.execution_count)


@pytest.mark.parametrize("name", NAMES)
def test_parameters_are_typed_and_explained(name):
    (cell,) = [c for c in code_of(name) if "parameters" in c.metadata.get("tags", [])]
    for line in cell.source.splitlines():
        assert "=" not in line.partition("  # ")[2]
    rows = declared(name)
    read = inspect_notebook(ROOT / "notebooks" / f"{name}.ipynb")  # as papermill does
    assert {key: (row.comment, row.default) for key, row in rows.items()} == {
        key: (row["help"], ast.literal_eval(row["default"]))
        for key, row in read.items()
    }
    for key, row in rows.items():
        kind = row.kind.__name__
        kind = f"list[{kind}]" if row.is_list else kind
        kind = f"dict[str, {kind}]" if row.is_dict else kind
        assert kind == read[key]["inferred_type_name"]
    assert len(rows) == len(cell.source.splitlines())
    usual = Settings.of("quick", name).values
    assert usual == {key: row.default for key, row in rows.items()}


@pytest.mark.parametrize("name", NAMES)
def test_no_cell_assigns_a_parameter_or_a_name_that_a_cell_defines(name):
    """Running any cell twice then gives the same."""
    functions = set()
    for cell in code_of(name):
        if {"runs", "functions"} & set(cell.metadata.get("tags", [])):
            nodes = ast.parse(cell.source).body
            functions |= {n.name for n in nodes if isinstance(n, ast.FunctionDef)}
    for cell in code_of(name):
        if cell.metadata.get("tags") == ["parameters"] or "%timeit" in cell.source:
            continue
        tree = ast.parse(cell.source)
        top = [node for node in tree.body if not isinstance(node, ast.FunctionDef)]
        names = {name for node in top for name in assigned(ast.unparse(node))}
        assert not names & (functions | declared(name).keys())


@pytest.mark.parametrize(
    "file", PROFILE_FILES, ids=lambda file: f"{file.parent.name}-{file.stem}"
)
def test_profiles_list_what_differs_from_the_notebook(file):
    values = yaml.safe_load(file.read_text())
    assert values.pop("profile") == file.parent.name
    usual = {name: row.default for name, row in declared(file.stem).items()}
    profile = Settings.of(file.parent.name, file.stem).values
    assert all(profile[name] != usual[name] for name in values)


@pytest.fixture(scope="module")
def smoke(own_folders):
    """The folder of the smoke profile's runs, executed notebooks and figures."""
    with pytest.MonkeyPatch.context() as patch, mpl.rc_context(), forgetting():
        patch.setattr(build, "DRAWN_AT_ONCE", 1)
        patch.setattr(style, "METHOD_STYLES", dict(style.METHOD_STYLES))
        patch.setitem(papermill_engines._engines, None, InProcess)
        assert build.execute("smoke", NAMES) == {}
    return own_folders


@pytest.mark.parametrize("name", NAMES)
def test_notebooks_run_under_smoke_and_train_nothing_themselves(smoke, name):
    file = smoke / "cache" / "executed" / "smoke" / f"{name}.ipynb"
    executed = nbformat.read(file, as_version=4)
    outputs = [o for cell in executed.cells for o in cell.get("outputs", [])]
    assert not [o for o in outputs if re.search(r"training \d", o.get("text", ""))]
    assert any("image/png" in o.get("data", {}) for o in outputs)


def test_every_picture_has_its_numbers(smoke):
    folder = smoke / "figures" / "smoke"
    pictures = {file.stem.removesuffix("_narrow") for file in folder.glob("*.png")}
    assert pictures
    assert pictures <= {file.stem for file in folder.glob("*.csv")}
    assert not (smoke / "figures" / "custom").exists()


def test_an_executed_notebook_becomes_an_article_with_its_pictures(smoke, program):
    file = program("articles").write("smoke", "datasets")
    text = file.read_text()
    assert "<details><summary>Parameters</summary>\n\n| parameter | value |" in text
    links = re.findall(r"[\w./-]+\.png", text)
    assert any(link.endswith("_narrow.png") for link in links)
    assert all((file.parent / link).is_file() for link in links)


def test_jupyterlab_gives_the_same_numbers_and_trains_nothing_again(
    smoke, python, tmp_path
):
    """JupyterLab starts a notebook in notebooks/, make in the checkout's root."""

    def runs():
        files = (smoke / "cache" / "runs").iterdir()
        return {file: file.stat().st_mtime_ns for file in files}

    before = runs()
    options = ["-f", "params/smoke/rho_sweep.yaml", "--cwd", str(ROOT / "notebooks")]
    files = ["notebooks/rho_sweep.ipynb", str(tmp_path / "out.ipynb")]
    done = python("-m", "papermill", *files, *options, PRSLIB_FIGURES=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert runs() == before
    for file in (tmp_path / "smoke").iterdir():
        drawn = smoke / "figures" / "smoke" / file.name
        assert file.read_bytes() == drawn.read_bytes()
    assert list((tmp_path / "smoke").glob("*.png"))


def test_only_what_changed_is_executed_again(smoke, python):
    assert not any(build.stale("smoke", name) for name in NAMES)
    done = python("-m", "prslib", "figures", "--profile", "smoke")
    assert "nothing to draw" in done.stdout
    build.digest_file("smoke", "rho_sweep").write_text("of other sources")
    assert [name for name in NAMES if build.stale("smoke", name)] == ["rho_sweep"]
