"""One browser for all pages: Chromium, headless."""

import shutil
from collections.abc import Iterator

import pytest
from selenium import webdriver


@pytest.fixture(scope="session")
def browser() -> Iterator[webdriver.Chrome]:
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1200,1000"):
        options.add_argument(argument)
    options.binary_location = shutil.which("chromium") or "chromium"
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    service = webdriver.ChromeService(shutil.which("chromedriver") or "chromedriver")
    driver = webdriver.Chrome(options=options, service=service)
    yield driver
    driver.quit()


@pytest.fixture(autouse=True)
def _a_quiet_console(browser: webdriver.Chrome) -> Iterator[None]:
    browser.get_log("browser")
    yield
    assert browser.get_log("browser") == []


@pytest.fixture(autouse=True, scope="module")
def _no_page_of_a_stopped_server(browser: webdriver.Chrome) -> Iterator[None]:
    """Otherwise such a page would ask for its events while the next module's tests run."""
    yield
    browser.get("about:blank")
