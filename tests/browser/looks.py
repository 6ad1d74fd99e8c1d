"""Widths and colours in which pages are looked at."""

from selenium import webdriver

WIDTHS, SCHEMES = (375, 768, 1440), ("light", "dark")
"""Telephone, tablet, desk."""
SIDEWAYS = """
const wide = [...document.querySelectorAll("body *")].filter((element) => element.scrollWidth > element.clientWidth + 1
  && ["auto", "scroll"].includes(getComputedStyle(element).overflowX)).map((element) => element.outerHTML.slice(0, 80));
return document.documentElement.scrollWidth > innerWidth ? ["the page", ...wide] : wide;
"""
"""What of a page is scrolled sideways."""


def resize(browser: webdriver.Chrome, width: int, height: int) -> None:
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def prefer(browser: webdriver.Chrome, scheme: str) -> None:
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
