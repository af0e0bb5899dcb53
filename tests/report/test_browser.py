"""The documentation as a reader meets it, in a browser where there is one."""

import re
import shutil
from base64 import b64decode
from pathlib import Path
from shutil import copyfile

import pytest
from nbformat import write
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from prslib.paths import notebook_file, project_root
from prslib.previews import preview
from prslib.report.measures import imbalanced_stream

BROWSER, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")

# what a page gets wrong: it is wider, or a picture is lost
FAULTS = """
const wide = document.documentElement.scrollWidth > window.innerWidth ? ['too wide'] : [];
const lost = [...document.images].filter(i => !(i.complete && i.naturalWidth && i.alt));
return [...wide, ...lost.map(i => i.src)];
"""
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
WIDE = f"<table class='dataframe'><tr>{'<td>55.5 ± 2.3</td>' * 40}</tr></table>"
DATA = [
    {"image/png": PNG},
    {"text/markdown": "| $n_i$ | mAP |\n|---|---|\n| CRS | 55.5 ± 2.3 |"},
    {"text/html": WIDE},
    {"application/vnd.jupyter.widget-view+json": {}, "text/plain": "VBox()"},
]
SEARCHED_ARTICLES = [
    "precision_recall",
    "rho_sweep",
    "schedules_and_memory",
    "tail_forgetting",
    "when_it_pays",
]
PUBLIC = {  # as GitHub and .github/workflows/pages.yml set them
    "GITHUB_SERVER_URL": "https://github.com",
    "GITHUB_REPOSITORY": "someone/prs",
    "SITE_URL": "https://someone.github.io/prs",
}
TEXT = "# How?\n\n[That](ledger.ipynb): $s = n^\\rho$."


@pytest.fixture(scope="module")
def site(tmp_path_factory, python):
    """The pages of notebooks, one of them as if executed; Sphinx checks their links."""
    pytest.importorskip("myst_parser")
    cache = tmp_path_factory.mktemp("site")
    outputs = [new_output("display_data", data) for data in DATA]
    about = {"alt": "mAP (%) over tasks", "width": 990, "file": "curve.png"}
    outputs[0].metadata = {"image/png": about}
    about = {"alt": "by rho", "width": 990, "file": "rho.png", "narrow": "thin.png"}
    outputs.append(new_output("display_data", DATA[0]))
    outputs[-1].metadata = {"image/png": about}
    figures = cache / "figures"
    (figures / "smoke").mkdir(parents=True)
    (figures / "smoke" / "thin.png").write_bytes(b64decode(PNG))
    for name in ("bench", "paper", "seeds"):  # of which other pages have pictures
        (figures / name).symlink_to(project_root() / "figures" / name)
    cells = [
        new_markdown_cell(TEXT),
        new_code_cell("draw(everything)", outputs=outputs),
    ]
    file = cache / "executed" / "smoke" / "walkthrough.ipynb"
    file.parent.mkdir(parents=True)
    language = {"language_info": {"name": "python"}}
    write(new_notebook(cells=cells, metadata=language), file)
    for name in SEARCHED_ARTICLES:
        copyfile(notebook_file(name), file.with_stem(name))
    environment = {"PRSLIB_CACHE": str(cache), "PRSLIB_FIGURES": str(figures)}
    built = python("docs/build.py", "--profile", "smoke", **environment, **PUBLIC)
    assert built.returncode == 0, built.stderr
    return Path(built.stdout.strip()).parent


def test_an_article_folds_its_code_and_shows_what_needs_no_kernel(site):
    assert (site / "api" / "prslib.make_sampler.html").is_file()
    text = (site / "articles" / "walkthrough.html").read_text(encoding="utf-8")
    assert 'alt="mAP (%) over tasks"' in text
    assert "VBox()" not in text
    assert "draw" in re.search("<details(.*?)</details>", text, re.DOTALL)[1]
    assert text.count("<math") == 2  # in the text, in a table that was printed
    assert "<p>That: " in text  # the ledger has no article
    assert re.search(r'href="\.\./_downloads/\w+/walkthrough\.ipynb"', text)


BINDER = "https://mybinder.org/v2/gh/someone/prs/HEAD?labpath=notebooks/{}.ipynb"


def test_a_public_site_leads_to_binder_and_to_its_repository(site):
    for name in ("walkthrough", *SEARCHED_ARTICLES):
        text = (site / "articles" / f"{name}.html").read_text(encoding="utf-8")
        assert f'href="{BINDER.format(name)}"' in text
        assert 'href="https://github.com/someone/prs"' in text
        page = f"https://someone.github.io/prs/articles/{name}.html"
        assert f'rel="canonical" href="{page}"' in text


def test_only_a_repository_on_github_leads_to_binder(program, monkeypatch):
    on_binder = program("build").on_binder
    for name, value in PUBLIC.items():
        monkeypatch.setenv(name, value)
    assert f"]({BINDER.format('ledger')})" in on_binder("ledger")
    monkeypatch.setenv("GITHUB_SERVER_URL", "https://git.example.org")
    assert on_binder("ledger") == ""
    monkeypatch.delenv("GITHUB_REPOSITORY")
    assert on_binder("ledger") == ""


def test_the_memories_behind_the_sliders_are_the_samplers_own(program):
    memories = program("memories")
    table = memories.memories(imbalances=(30,), sizes=(40,), rhos=(0.5,))
    stream = imbalanced_stream(30, memories.SAMPLES, memories.CLASSES)
    counts = preview(stream, 40, ["PRS", "CRS"], rho=0.5).class_counts
    assert table["memory"]["PRS 30 40 0.5"] == counts["PRS"].tolist()
    assert table["memory"]["CRS 30 40"] == counts["CRS"].tolist()
    assert table["stream"][30] == stream.sum(axis=0).tolist()


@pytest.fixture
def browser(tmp_path):
    webdriver = pytest.importorskip("selenium.webdriver")
    if not (BROWSER and DRIVER):
        pytest.skip("no chromium and chromium-driver (Debian's packages) here")
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for argument in ("headless=new", "no-sandbox", f"user-data-dir={tmp_path / 'me'}"):
        options.add_argument(f"--{argument}")
    driver = webdriver.Chrome(options, webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


def test_pages_fit_a_phone_and_show_their_pictures(site, browser):
    screen = {"width": 400, "height": 900, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    files = [*site.glob("*.html"), *site.glob("articles/*.html")]
    for file in files:
        if file.stem not in ("genindex", "search"):
            browser.get(file.as_uri())
            assert browser.execute_script(FAULTS) == [], file


SHOWN = "return document.querySelector('picture img').currentSrc.split('/').at(-1)"


@pytest.mark.parametrize(("width", "picture"), [(358, "thin.png"), (800, "rho.png")])
def test_a_phone_shows_the_narrow_form_of_a_picture(site, browser, width, picture):
    screen = {"width": width, "height": 900, "deviceScaleFactor": 2, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    browser.get((site / "articles" / "walkthrough.html").as_uri())
    assert browser.execute_script(SHOWN) == picture
    browser.get((site / "index.html").as_uri())
    of_front = "in_short.png" if width < 600 else "imbalance.png"
    assert browser.execute_script(SHOWN) == f"when_it_pays_{of_front}"


# the shares of the table of memories.md, by row
SHARES = """
const rows = [...document.querySelectorAll('.shares tbody tr')];
return Object.fromEntries(rows.map(
  (row) => [row.cells[0].innerText, [...row.cells].slice(1, 4).map(c => parseInt(c.innerText))]
));
"""
MOVE = """
const slider = document.querySelector(`input[name=${arguments[0]}]`);
slider.value = arguments[1];
slider.dispatchEvent(new Event('input'));
"""


def test_sliders_start_where_the_text_says_and_move_the_memories(site, browser):
    browser.get((site / "memories.html").as_uri())
    outputs = "return [...document.querySelectorAll('output')].map(o => o.value)"
    assert browser.execute_script(outputs) == ["100", "0", "200"]
    balanced = browser.execute_script(SHARES)
    assert balanced["CRS"][2] < 10 < 20 < balanced["PRS"][2]
    browser.execute_script(MOVE, "rho", 5)
    as_stream = browser.execute_script(SHARES)
    assert browser.execute_script(outputs) == ["100", "1", "200"]
    assert as_stream["PRS"][2] < 10
    assert as_stream["CRS"] == balanced["CRS"]  # it has no rho
    browser.execute_script(MOVE, "imbalance", 0)
    alike = browser.execute_script(SHARES)
    assert all(abs(shares[2] - 35) <= 8 for shares in alike.values())


FIRST = """
const links = [...document.querySelectorAll('#search-results li > a')];
const said = document.querySelector('#search-results').innerText;
return said.includes('finished') ? links[0].getAttribute('href') : null;
"""


ARTICLES = [f"articles/{name}" for name in SEARCHED_ARTICLES]
PAGES = [
    "extending",
    "gpu_and_cluster",
    "losses/index",
    "own_data",
    "samplers/index",
    *ARTICLES,
]


def test_every_page_that_the_search_lifts_is_searched_below(program):
    assert set(program("build").SEARCHED) == set(PAGES)


@pytest.mark.parametrize("page", PAGES)
def test_the_search_lists_the_page_that_answers_first(site, browser, program, page):
    wait = pytest.importorskip("selenium.webdriver.support.ui").WebDriverWait
    for words in program("build").SEARCHED[page]:
        browser.get(f"{(site / 'search.html').as_uri()}?q={words}")
        first = wait(browser, 20).until(lambda it: it.execute_script(FIRST))
        assert first.startswith(f"{page}.html#index"), words
