"""The pages in a real browser: Chromium, headless, driven by Selenium. Run by `make test-site`, which needs Debian's
chromium and chromium-driver; SCREENSHOTS=FOLDER keeps pictures of the pages to look at."""

import json
import os
import re
import shutil
import time
from itertools import combinations
from pathlib import Path

import pytest
from axe_core_python.selenium import Axe
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

from grader.report.leaderboard import number
from grader.site import build_site, report_page
from tests.browser.looks import SCHEMES, SIDEWAYS, WIDTHS, prefer, resize
from tests.site.made_class import made_store
from tests.support.records import made_record

STUDENTS = 160
FEWER = "; document.querySelectorAll('tbody tr:nth-child(n+12)').forEach(row => row.remove())"
"""Rows beyond these are built alike, and axe takes milliseconds for each."""
OPEN_ALL = "document.querySelectorAll('details').forEach(d => d.open = true)"
TEXTS = """
const box = (element) => { const b = element.getBoundingClientRect(); return [b.left, b.top, b.right, b.bottom]; };
const shrunk = ([left, top, right, bottom]) => [left + 1, top + 3, right - 1, bottom - 3];
return [...document.querySelectorAll("svg.chart")].map((picture) => [picture.getAttribute("aria-label"), box(picture),
  [...picture.querySelectorAll("text")].map((text) => [text.textContent, ...shrunk(box(text))])]);
"""
"""Name, box and texts of every picture; a text's box is larger than its letters."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    if pictures := os.environ.get("SCREENSHOTS"):
        Path(pictures).mkdir(parents=True, exist_ok=True)
    store = made_store(folder / "class.sqlite", STUDENTS)
    began = time.monotonic()
    build_site(store, "hw4", folder / "out")
    print(f"\nthe site of {STUDENTS} took {time.monotonic() - began:.1f} s")
    store.close()
    return folder / "out"


def visit(browser: webdriver.Chrome, path: Path) -> None:
    browser.get(path.as_uri())


def looked_at(site: Path) -> dict[str, Path]:
    """The pages that people open, by name: of students whose program passes, fails, and was not built."""
    students = {"student": "s000", "failed": "s003", "broken": "s009"}
    pages = {"public": site / "public/index.html", "assistants": site / "assistants/index.html"}
    return pages | {name: site / "public" / _page_of(site, student) for name, student in students.items()}


def rows(browser: webdriver.Chrome, table: str) -> list[WebElement]:
    return [row for row in browser.find_elements(By.CSS_SELECTOR, f"#{table} tbody tr") if row.is_displayed()]


def column(browser: webdriver.Chrome, table: str, place: int) -> list[str]:
    rows = "[...document.querySelectorAll(`#${arguments[0]} tbody tr`)]"
    return list(browser.execute_script(f"return {rows}.map(row => row.cells[arguments[1]].innerText)", table, place))


def numbers(browser: webdriver.Chrome) -> list[float]:
    """The leaderboard's speedups as it shows them: 8,921×."""
    return [float(value.replace(",", "").rstrip("×")) for value in column(browser, "leaderboard", 2)]


def press(browser: webdriver.Chrome, table: str, name: str) -> WebElement:
    heads = browser.find_elements(By.CSS_SELECTOR, f"#{table} thead th")
    head = next(head for head in heads if head.text.startswith(name))
    head.find_element(By.TAG_NAME, "button").send_keys(Keys.ENTER)
    return head


def test_the_leaderboard_sorts_by_number_both_ways_from_the_keyboard(browser: webdriver.Chrome, site: Path) -> None:
    visit(browser, site / "public/index.html")
    head = press(browser, "leaderboard", "speedup")
    values = numbers(browser)
    assert head.get_attribute("aria-sort") == "ascending"
    assert values == sorted(values)
    assert len(values) == STUDENTS - STUDENTS // 10 + 2
    press(browser, "leaderboard", "speedup")
    assert numbers(browser) == sorted(values)[::-1]
    assert head.get_attribute("aria-sort") == "descending"
    press(browser, "leaderboard", "rank")
    ranks = column(browser, "leaderboard", 0)
    assert ranks[0] == "1"
    assert ranks[-2:] == ["", ""], "rows without a rank stay at the end"


def test_the_leaderboard_filters(browser: webdriver.Chrome, site: Path) -> None:
    visit(browser, site / "public/index.html")
    field = browser.find_element(By.CSS_SELECTOR, ".filter input")
    field.send_keys("NICK15")
    assert sorted(row.find_element(By.CSS_SELECTOR, ".name").text for row in rows(browser, "leaderboard")) == sorted(
        f"nick{number}" for number in (15, *range(150, 160)) if number % 10 != 9
    )
    status = browser.find_element(By.CSS_SELECTOR, ".filter [role=status]").text
    assert status == f"10 of {STUDENTS - STUDENTS // 10 + 2} rows"


def test_links_from_the_gradebook_lead_to_students_and_their_attempts(browser: webdriver.Chrome, site: Path) -> None:
    visit(browser, site / "assistants/index.html")
    browser.find_element(By.LINK_TEXT, "Student 0").click()
    assert browser.find_element(By.TAG_NAME, "h1").text == "Flash attention\nStudent 0"
    browser.find_element(By.LINK_TEXT, "1").click()
    assert browser.current_url.endswith("attempt-1.html")
    browser.find_element(By.LINK_TEXT, "2").click()
    assert browser.current_url.endswith("index.html")


def test_no_page_asks_for_anything_but_its_own_files(browser: webdriver.Chrome, site: Path) -> None:
    browser.get_log("performance")
    for path in [*site.glob("*/index.html"), *sorted(site.glob("public/students/*/index.html"))[:10]]:
        visit(browser, path)
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
    assert len(asked) > 12
    assert [url for url in asked if not url.startswith((site.as_uri(), "data:"))] == []


def test_the_leaderboard_page_is_under_one_megabyte(site: Path) -> None:
    assert sum((site / "public" / name).stat().st_size for name in ("index.html", "style.css", "site.js")) < 1_000_000


def test_a_page_of_one_record_works_alone(browser: webdriver.Chrome, tmp_path: Path) -> None:
    path = tmp_path / "alice.html"
    path.write_text(report_page([made_record("alice", speedups=[2.0, 3000.5])]), encoding="utf-8")
    visit(browser, path)
    buttons = browser.find_elements(By.CSS_SELECTOR, "th button")
    assert [button.text.split()[0] for button in buttons if button.is_displayed()][:2] == ["test", "verdict"]
    assert number(3000.5) in browser.find_element(By.TAG_NAME, "main").text


@pytest.mark.parametrize("name", ["public", "assistants", "student", "failed", "broken"])
def test_axe_finds_nothing_wrong_in_light_and_dark(browser: webdriver.Chrome, site: Path, name: str) -> None:
    for scheme, rules in ((SCHEMES[0], {}), (SCHEMES[1], {"runOnly": ["color-contrast"]})):
        prefer(browser, scheme)
        visit(browser, looked_at(site)[name])
        browser.execute_script(OPEN_ALL + FEWER)
        violations = Axe().run(browser, options={"resultTypes": ["violations"]} | rules)["violations"]
        assert [(rule["id"], rule["nodes"][0]["html"][:200]) for rule in violations] == [], scheme
    prefer(browser, "light")


@pytest.mark.parametrize("name", ["public", "assistants", "student", "failed", "broken"])
def test_nothing_scrolls_sideways_on_a_telephone_a_tablet_or_a_desk(
    browser: webdriver.Chrome, site: Path, name: str
) -> None:
    visit(browser, looked_at(site)[name])
    for width in WIDTHS:
        resize(browser, width, 1000)
        browser.execute_script(OPEN_ALL)
        assert browser.execute_script(SIDEWAYS) == [], f"{width} px"
        for scheme in SCHEMES if os.environ.get("SCREENSHOTS") else ():
            prefer(browser, scheme)
            resize(browser, width, 2600)
            browser.save_screenshot(str(Path(os.environ["SCREENSHOTS"]) / f"{name}-{width}-{scheme}.png"))
    prefer(browser, "light")
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.parametrize("page", ["public", "assistants"])
def test_a_thousand_rows_open_in_under_a_second(
    browser: webdriver.Chrome, site: Path, tmp_path: Path, page: str
) -> None:
    shutil.copytree(site / page, tmp_path / page, ignore=shutil.ignore_patterns("students"))
    path = tmp_path / page / "index.html"
    head, body, rest = re.split("(?<=<tbody>)|(?=</tbody>)", path.read_text(encoding="utf-8"), maxsplit=2)
    rows = re.findall("<tr.*</tr>", body)
    path.write_text("\n".join([head, *(rows * 8)[:1000], rest]), encoding="utf-8")
    browser.get("about:blank")
    browser.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
    visit(browser, path)
    metrics = browser.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    opened_ms = browser.execute_script("return performance.getEntriesByType('navigation')[0].loadEventEnd")
    busy_ms = 1000 * next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration")
    assert browser.execute_script("return document.querySelector('tbody').rows.length") == 1000
    print(f"\n{page}: 1,000 rows opened in {opened_ms:.0f} ms, of which the page's thread ran {busy_ms:.0f} ms")
    assert busy_ms < 1000, "processor time, which other programs on this machine do not change"


def test_no_words_in_a_picture_are_cut_off_or_lie_over_each_other(browser: webdriver.Chrome, site: Path) -> None:
    visit(browser, site / "public" / _page_of(site, "s000"))
    pictures = browser.execute_script(TEXTS)
    assert [name for name, _, _ in pictures] == [
        "GPU time of every timed testcase",
        "Speedup of every timed testcase",
        "Roofline",
    ]
    for name, (left, top, right, bottom), texts in pictures:
        for words, *box in texts:
            assert left <= box[0] and top <= box[1] and box[2] <= right and box[3] <= bottom, f"{name}: {words} is cut"
        for (one, *a), (other, *b) in combinations(texts, 2):
            apart = a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]
            assert apart or "device memory" in one + other, f"{name}: {one} and {other}"


def _page_of(site: Path, student: str) -> str:
    lines = (site / "assistants/links.csv").read_text().splitlines()[1:]
    return dict(line.split(",")[::3] for line in lines)[student]


def test_on_paper_everything_is_open_and_light(browser: webdriver.Chrome, site: Path) -> None:
    features = [{"name": "prefers-color-scheme", "value": "dark"}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", "features": features})
    try:
        visit(browser, site / "public" / _page_of(site, "s000"))
        shown = "[...document.querySelectorAll('details table')].map(table => table.checkVisibility())"
        assert set(browser.execute_script(f"return {shown}")) == {True}
        style = "getComputedStyle(document.documentElement)"
        inks = browser.execute_script(f"return ['--good', '--bad', '--warn'].map(n => {style}.getPropertyValue(n))")
        assert all(_contrast(ink, "#ffffff") >= 4.5 for ink in inks)
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def _contrast(one: str, other: str) -> float:
    """WCAG 2.2, relative luminance and contrast ratio."""

    def luminance(colour: str) -> float:
        channels = [int(colour.strip()[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)
