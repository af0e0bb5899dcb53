"""The documentation as a reader meets it, in a browser where there is one."""

import re
import shutil
from pathlib import Path

import pytest
from nbformat import write
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

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
TEXT = "# How?\n\n[That](ledger.ipynb): $s = n^\\rho$."


@pytest.fixture(scope="module")
def site(tmp_path_factory, python):
    """The pages of one notebook, as if executed; Sphinx checks their links."""
    pytest.importorskip("myst_nb")
    cache = tmp_path_factory.mktemp("site")
    outputs = [new_output("display_data", data) for data in DATA]
    about = {"alt": "mAP (%) over tasks", "width": 990, "file": "curve.png"}
    outputs[0].metadata = {"image/png": about}
    cells = [
        new_markdown_cell(TEXT),
        new_code_cell("draw(everything)", outputs=outputs),
    ]
    file = cache / "executed" / "smoke" / "walkthrough.ipynb"
    file.parent.mkdir(parents=True)
    language = {"language_info": {"name": "python"}}
    write(new_notebook(cells=cells, metadata=language), file)
    environment = {"PRSLIB_CACHE": str(cache), "PRSLIB_FIGURES": "figures"}
    built = python("docs/build.py", "--profile", "smoke", **environment)
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
