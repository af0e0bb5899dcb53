"""Compiling ahead, executing notebooks that stop, and web pages whose links lead somewhere."""

import contextlib
import re

import numba
import pytest
from nbformat import write
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from prslib.cli import main
from prslib.paths import known_notebooks, project_root
from prslib.report import build, notebook
from prslib.report.build import (
    FIRST,
    compile_sampler,
    compiling,
    executed_file,
    report_dir,
    write_report,
)
from prslib.samplers import SAMPLERS

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
TEXTS = {
    "ledger": "# What came out\n\nSee [`main`](main_results.ipynb) and [streams](datasets.ipynb).",
    "main_results": "# Does it?\n\nOn [one](https://example.org/a.ipynb), [two](#rare), $\\rho$.",
}


class Page:
    """What a reader meets on a page: its title, links, pictures and folded code."""

    def __init__(self, text):
        self.title = re.search("<title>(.*?)</title>", text)[1]
        self.links = re.findall(r'<a\b[^>]*\bhref="([^"]*)"', text)
        self.pictures = re.findall(r'<img\b[^>]*\bsrc="([^"]*)"', text)
        folded = re.findall("<details>(.*?)</details>", text, re.DOTALL)
        self.folded = re.sub("<.*?>", "", "".join(folded))


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Write pages of two notebooks of the smoke profile, as if executed; those left out."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PRSLIB_CACHE", str(tmp_path_factory.mktemp("pages")))
        _pretend_executed()
        yield write_report("smoke", known_notebooks("smoke"))


def _pretend_executed():
    for name, text in TEXTS.items():
        file = executed_file("smoke", name)
        file.parent.mkdir(parents=True, exist_ok=True)
        metadata = {"image/png": {"alt": name}}
        shown = new_output("display_data", {"image/png": PNG}, metadata=metadata)
        code = new_code_cell("draw(everything)", outputs=[shown], execution_count=1)
        write(new_notebook(cells=[new_markdown_cell(text), code]), file)


def read(name):
    return Page((report_dir("smoke") / f"{name}.html").read_text(encoding="utf-8"))


def test_every_executed_notebook_has_a_page_and_the_readme_is_the_first(pages):
    assert sorted(pages) == sorted(set(known_notebooks("smoke")) - set(TEXTS))
    assert {file.stem for file in report_dir("smoke").iterdir()} == {FIRST, *TEXTS}
    for name in (FIRST, *TEXTS):
        page = read(name)
        others = {f"{other}.html" for other in (FIRST, *TEXTS)} - {f"{name}.html"}
        assert others <= set(page.links)
        assert all(source.startswith("data:image/png;base64,") for source in page.pictures)
        if name != FIRST:
            assert len(page.pictures) == 1
            assert "draw(everything)" in page.folded
    assert [read(name).title for name in TEXTS] == ["What came out", "Does it?"]
    assert len(read(FIRST).pictures) > 3
    assert "make figures" not in read(FIRST).folded


def test_links_lead_to_pages_where_there_are_some_and_to_files_where_not(pages):
    folder, links = report_dir("smoke"), {name: read(name).links for name in (FIRST, *TEXTS)}
    assert links["ledger"].count("main_results.html") == 2  # above the page, and in its text
    assert [link for link in links["ledger"] if link.endswith("notebooks/datasets.ipynb")]
    assert {"https://example.org/a.ipynb", "#rare"} <= set(links["main_results"])
    for link in {link for found in links.values() for link in found}:
        if not link.startswith(("https://", "#")):
            assert (folder / link).resolve().is_file(), link


def test_the_command_says_where_the_pages_are_and_what_has_none(pages, capsys):
    assert main(["report", "--profile", "smoke"]) == 0
    printed = capsys.readouterr()
    assert printed.out == f"{report_dir('smoke') / 'index.html'}\n"
    assert "not executed yet, and so without a page: architectures, " in printed.err
    assert main(["report", "--profile", "quick"]) == 1
    assert "run `make figures PROFILE=quick` first" in capsys.readouterr().err
    assert not report_dir("quick").exists()


def test_what_is_compiled_ahead_is_there_for_other_processes(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    with compiling(["crs"]):
        pass
    assert any("crs" in file.name for file in tmp_path.rglob("*.nbi"))


@pytest.mark.parametrize("name", [name for name, row in SAMPLERS.items() if not row.needs])
def test_one_placing_compiles_all_that_a_stream_needs(name):
    compile_sampler(name)
    with numba.core.event.install_recorder("numba:compile") as recorded:
        compile_sampler(name)
    assert not recorded.buffer


GOOD = {
    name: (project_root() / "params" / "smoke" / f"{name}.yaml").read_text()
    for name in ("datasets", "rho_sweep")
}


@pytest.fixture
def params(tmp_path, monkeypatch):
    """Write parameters of notebooks, under whatever profile."""

    def write(**texts):
        for name, text in texts.items():
            (tmp_path / f"{name}.yaml").write_text(text)

    monkeypatch.setattr(notebook, "params_file", lambda profile, name: tmp_path / f"{name}.yaml")
    return write


def test_one_notebook_that_stops_leaves_the_others(params):
    broken = {
        "rho_sweep": "{profile: smoke, rhos: ['.nan']}",
        "single_label": "a: b: c",
        "tail_forgetting": "",
    }
    params(datasets=GOOD["datasets"], **broken)
    errors = build.execute("smoke", ["datasets", *broken])
    assert sorted(errors) == sorted(broken)
    assert "rhos must be a number" in errors["rho_sweep"]
    assert "as far as it came: " in errors["rho_sweep"]
    assert "single_label.yaml cannot be read as YAML: " in errors["single_label"]
    assert "expected parameters and their values in " in errors["tail_forgetting"]
    assert executed_file("smoke", "datasets").is_file()


def test_a_cache_that_cannot_be_written_is_named_with_what_to_do(params, tmp_path, monkeypatch):
    params(datasets=GOOD["datasets"])
    monkeypatch.setenv("PRSLIB_CACHE", str(tmp_path / "datasets.yaml"))
    monkeypatch.setattr(build, "_train", lambda *_: {})
    (error,) = build.execute("smoke", ["datasets"]).values()
    assert re.search(r"got .*datasets\.yaml.*; set PRSLIB_CACHE to a folder that can be", error)


def test_a_sweep_that_stops_is_no_notebook(params, monkeypatch, capsys):
    def stop(_configs, device):
        raise ConnectionError(f"no {device}")

    def draw(_profile, name):
        if name == "rho_sweep":
            raise RuntimeError("Kernel died")
        return 0.0

    params(**GOOD)
    monkeypatch.setattr("prslib.experiments.sweep.run_all", stop)
    monkeypatch.setattr(build, "_draw", draw)
    monkeypatch.setattr("prslib.cli.compiling", contextlib.nullcontext)
    assert main(["figures", "--profile", "smoke", *GOOD]) == 1
    said = capsys.readouterr().err
    assert "training on cpu stopped: ConnectionError: no cpu" in said
    assert "rho_sweep stopped: RuntimeError: Kernel died" in said
    assert said.endswith("1 notebooks stopped: rho_sweep\n")


def test_an_unknown_profile_or_notebook_names_the_known_ones(capsys):
    for profile in ("nope", "paper/", ""):
        for command in ("figures", "plan", "report"):
            assert main([command, "--profile", profile]) == 1
            said = (
                f"unknown profile {profile!r}; known profiles: laptop, paper, quick, seeds, smoke\n"
            )
            assert capsys.readouterr().err == said
    assert main(["figures", "--profile", "smoke", "main_result"]) == 1
    assert ", main_results, memory_distribution, " in capsys.readouterr().err
