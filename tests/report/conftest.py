"""Fixtures of the tests that draw and of those that run notebooks."""

import shutil

import matplotlib as mpl
import pytest
from registered import forgetting

mpl.use("Agg")
BROWSER, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")


@pytest.fixture(scope="module", autouse=True)
def forget_deviations():
    """Forget the methods that a list of runs has registered."""
    with forgetting():
        yield


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    webdriver = pytest.importorskip("selenium.webdriver")
    if not (BROWSER and DRIVER):
        pytest.skip("no chromium and chromium-driver (Debian's packages) here")
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    me = tmp_path_factory.mktemp("browser")
    for argument in ("headless=new", "no-sandbox", f"user-data-dir={me}"):
        options.add_argument(f"--{argument}")
    driver = webdriver.Chrome(options, webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()
