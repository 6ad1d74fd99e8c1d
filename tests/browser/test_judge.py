"""A student's evening and an assistant's in a real browser, by keyboard, each on a telephone and on a desk; stand-ins
grade."""

import os
import socket
import threading
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import uvicorn
from axe_core_python.selenium import Axe
from selenium import webdriver
from selenium.common.exceptions import TimeoutException
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from grader.grading.setup import Setup
from grader.judge.ledger import Stage
from grader.judge.office import Judge
from grader.judge.server import application, config_of
from grader.judge.tokens import STAFF, make_token
from grader.store import open_store
from tests.browser.looks import SIDEWAYS, prefer, resize
from tests.support.judge_stand_in import stand_in_lanes

PATIENCE_S = 25
LONG_ID = "s20261127.dora-example.northern-campus"


@dataclass(frozen=True)
class Served:
    """A judge that a browser can reach."""

    url: str
    tokens: dict[str, str]

    def hand_in(self, who: str, source: str) -> None:
        """Submit without a browser."""
        headers = {"Authorization": f"Bearer {self.tokens[who]}", "Content-Type": "application/octet-stream"}
        urllib.request.urlopen(
            urllib.request.Request(f"{self.url}/api/v1/submissions", source.encode(), headers)
        ).close()


@pytest.fixture(scope="module", params=(375, 1440))
def served(
    request: pytest.FixtureRequest, browser: webdriver.Chrome, setup: Setup, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    resize(browser, request.param, 1000)
    store = tmp_path_factory.mktemp("judge") / "class.sqlite"
    people = ("alice", "bob", "carol", LONG_ID)
    with open_store(store, create=True) as opened:
        for student in people:
            opened.add_student(
                student, name=f"{student[:5].title()} of the roster", nickname=f"nick {student}", enrolled=True
            )
        tokens = {who or "staff": make_token(opened, who) for who in (STAFF, *people)}
    judge = Judge(store, setup.assignment, stand_in_lanes(setup, tuple(Stage), predicts=True))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        web = uvicorn.Server(config_of(application(judge)))
        thread = threading.Thread(target=web.run, kwargs={"sockets": [listening]})
        thread.start()
        yield Served("http://127.0.0.1:{}".format(*listening.getsockname()[1:2]), tokens)
        web.should_exit = True
        thread.join()
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def log_in(browser: webdriver.Chrome, served: Served, who: str) -> None:
    browser.get(f"{served.url}/login")
    browser.switch_to.active_element.send_keys(served.tokens[who], Keys.ENTER)
    see(browser, "Staff" if who == "staff" else "Your submissions")


def see(browser: webdriver.Chrome, words: str) -> None:
    """Wait until the page says `words`."""
    try:
        WebDriverWait(browser, PATIENCE_S, 0.1).until(lambda page: words in text_of(page))
    except TimeoutException:
        raise AssertionError(f"no {words!r} at {browser.current_url}: {text_of(browser)}") from None


def text_of(browser: webdriver.Chrome) -> str:
    return browser.execute_script("return document.querySelector('main')?.innerText ?? ''")  # type: ignore[no-any-return]


def tab_to(browser: webdriver.Chrome, words: str) -> None:
    """Move with the Tab key until what has the focus says `words`."""
    for _ in range(60):
        ActionChains(browser).send_keys(Keys.TAB).perform()
        if focused(browser) == words:
            return
    raise AssertionError(f"no way to {words!r} by keyboard")


def focused(browser: webdriver.Chrome) -> str:
    """What has the focus says this; asked at once, because the page may replace it at any moment."""
    return browser.execute_script("return document.activeElement.innerText.trim()")  # type: ignore[no-any-return]


def press(browser: webdriver.Chrome, words: str) -> None:
    tab_to(browser, words)
    ActionChains(browser).send_keys(Keys.ENTER).perform()


def look(browser: webdriver.Chrome, name: str) -> None:
    """The page as it is: nothing scrolls sideways, no id or heading is broken within a word, no backtick is left of a
    command in a sentence, and axe finds nothing."""
    width = browser.execute_script("return innerWidth")
    assert browser.execute_script(SIDEWAYS) == [], f"{name} at {width} px"
    assert browser.execute_script(BROKEN) == [], f"{name} at {width} px"
    assert "`" not in text_of(browser)
    for scheme, rules in (("light", {}), ("dark", {"runOnly": ["color-contrast"]})):
        prefer(browser, scheme)
        found = Axe().run(browser, options={"resultTypes": ["violations"]} | rules)["violations"]
        assert [(rule["id"], rule["nodes"][0]["html"][:200]) for rule in found] == [], f"{name}, {scheme}"
        if folder := os.environ.get("SCREENSHOTS"):
            Path(folder).mkdir(parents=True, exist_ok=True)
            browser.save_screenshot(str(Path(folder) / f"judge-{name}-{width}-{scheme}.png"))
    prefer(browser, "light")


BROKEN = """
const broken = [], range = new Range(), texts = document.createTreeWalker(document.querySelector("main"), 4);
while (texts.nextNode())
  for (const word of texts.currentNode.data.matchAll(/\\w+/g)) {
    range.setStart(texts.currentNode, word.index);
    range.setEnd(texts.currentNode, word.index + word[0].length);
    if (!texts.currentNode.parentElement.closest("th, h1, a, button")) continue;
    if (new Set([...range.getClientRects()].map((line) => line.top)).size > 1) broken.push(word[0]);
  }
return broken;
"""


def test_a_students_evening_by_keyboard(browser: webdriver.Chrome, served: Served, tmp_path: Path) -> None:
    program = tmp_path / "hw4.cu"
    log_in(browser, served, "alice")
    for source, result in (
        ("// fails: s02\nint main() {}\n", "2 of 3 tests passed"),
        ("int main() {}\n", "All 3 tests passed"),
    ):
        program.write_text(source)
        browser.get(served.url)
        browser.find_element(By.ID, "files").send_keys(str(program))
        press(browser, "Submit")
        see(browser, result)
    see(browser, "Predicted, not measured: about 100 ms. s01 takes 100 ms, measured on NVIDIA H200.")
    look(browser, "submission")
    browser.get(served.url)
    see(browser, "3 of 3 passed")
    look(browser, "home")
    press(browser, "since the previous one")
    see(browser, "-// fails: s02")
    look(browser, "difference")


def test_a_bad_network_and_an_edited_file_are_explained_and_nothing_is_submitted_twice(
    browser: webdriver.Chrome, served: Served, tmp_path: Path
) -> None:
    program = tmp_path / "hw4.cu"
    program.write_text("int main() {} // one")
    log_in(browser, served, "carol")
    browser.find_element(By.ID, "files").send_keys(str(program))
    assert browser.execute_script("return document.getElementById('files').files[0].size")  # it has looked at the file
    program.write_text("int main() {} // edited since")
    os.utime(program, times=(time.time() + 10,) * 2)
    press(browser, "Submit")
    see(browser, "has changed since it was chosen")
    browser.execute_script(LOSE_AN_ANSWER)
    files = browser.find_element(By.ID, "files")
    files.clear()
    files.send_keys(str(program))
    press(browser, "Submit")
    see(browser, "Trying again")
    see(browser, "All 3 tests passed")
    browser.get(served.url)
    assert len(browser.find_elements(By.CSS_SELECTOR, "#uploads tbody tr")) == 1


LOSE_AN_ANSWER = """
const real = window.fetch;
let lost = 0;
window.fetch = async (place, options) => {
  const answer = await real(place, options);
  if (options?.method === "POST" && !lost++) throw new TypeError("lost");
  return answer;
};
"""


def test_the_board_moves_while_it_is_open(browser: webdriver.Chrome, served: Served) -> None:
    browser.get(f"{served.url}/board")
    assert "nick bob" not in text_of(browser)
    browser.execute_script("window.still = 'the same page'")
    served.hand_in("bob", "// speedup: 77\nint main() {}")
    see(browser, "nick bob")
    assert browser.execute_script("return window.still") == "the same page"
    look(browser, "board")
    browser.get(f"{served.url}/beamer")
    see(browser, "nick bob")
    look(browser, "beamer")


def test_many_open_tabs_leave_the_browser_connections_for_a_submission(
    browser: webdriver.Chrome, served: Served
) -> None:
    log_in(browser, served, "bob")
    first = browser.current_window_handle
    for _ in range(7):
        browser.switch_to.new_window("tab")
        browser.get(f"{served.url}/board")
    browser.get(served.url)
    see(browser, "Your submissions")
    served.hand_in("bob", "int main() {} // the tab that is looked at hears of it")
    see(browser, "3 of 3 passed")
    for tab in set(browser.window_handles) - {first}:
        browser.switch_to.window(tab)
        browser.close()
    browser.switch_to.window(first)
    see(browser, "3 of 3 passed")


def test_an_assistants_evening_by_keyboard(browser: webdriver.Chrome, served: Served) -> None:
    served.hand_in(LONG_ID, "// always fails\nint main() {}")
    log_in(browser, served, "staff")
    see(browser, f"{LONG_ID} S2026 of the roster: could not be judged: …/hw4.sqlite cannot be read: see grader doctor.")
    press(browser, "Pause the queue")
    see(browser, "Nothing new is started.")
    served.hand_in("carol", "// fails: s01\nint main() {}")
    see(browser, "waits, place 1")  # carol may also be among those who need attention
    assert "Carol of the roster" in browser.execute_script(QUEUE)
    press(browser, "First")
    see(browser, "priority 10")
    look(browser, "staff")
    press(browser, "Resume the queue")
    see(browser, "The queue moves again.")
    see(browser, "The queue is empty.")
    field = browser.find_element(By.ID, "student")
    field.send_keys("carol", Keys.ENTER)
    see(browser, "Where the numbers come from")
    assert "Carol of the roster" in text_of(browser)
    look(browser, "complaint")
    press(browser, "Grade again")
    see(browser, "will be graded again")


def test_the_focus_stays_on_the_same_students_button_when_the_queue_moves(
    browser: webdriver.Chrome, served: Served
) -> None:
    log_in(browser, served, "staff")
    browser.get(f"{served.url}/staff")
    press(browser, "Pause the queue")
    see(browser, "Nothing new is started.")
    for student in ("alice", "bob"):
        served.hand_in(student, "int main() {} // waits")
        WebDriverWait(browser, PATIENCE_S, 0.1).until(lambda page, of=student: of in page.execute_script(QUEUE))
    row = "return document.activeElement.closest('tr')?.innerText ?? ''"
    while "bob" not in browser.execute_script(row):
        tab_to(browser, "Withdraw")
    browser.execute_script(WITHDRAW, "alice")
    WebDriverWait(browser, PATIENCE_S, 0.1).until(lambda page: "alice" not in page.execute_script(QUEUE))
    assert focused(browser) == "Withdraw" and "bob" in browser.execute_script(row)
    press(browser, "Resume the queue")
    see(browser, "The queue is empty.")


QUEUE = "return document.querySelector('#queue')?.innerText ?? ''"
WITHDRAW = """
const row = [...document.querySelectorAll("#queue tr")].find((row) => row.innerText.includes(arguments[0]));
const withdraw = [...row.querySelectorAll("form")].at(-1);
fetch(withdraw.getAttribute("action"), { method: "POST", body: new URLSearchParams(new FormData(withdraw)) });
"""


def test_the_pages_fetch_nothing_from_elsewhere_and_a_link_asks_before_it_logs_in(
    browser: webdriver.Chrome, served: Served
) -> None:
    browser.delete_all_cookies()
    browser.get(f"{served.url}/login#{served.tokens['bob']}")
    see(browser, "This link is for bob")
    assert served.tokens["bob"] not in browser.current_url
    ActionChains(browser).send_keys(Keys.ENTER).perform()
    see(browser, "Your submissions")
    urls = browser.execute_script("return performance.getEntriesByType('resource').map(entry => entry.name)")
    assert urls and all(url.startswith(served.url) for url in urls)
    browser.get(f"{served.url}/login")
    browser.execute_script("location.hash = arguments[0]", served.tokens["carol"])  # in a tab that is open
    see(browser, "You are logged in as bob, and this link is for carol")
    assert focused(browser) == "Log in as carol"
    look(browser, "login")
    browser.get(served.url)
    assert "bob" in browser.find_element(By.TAG_NAME, "nav").text, "nothing was replaced"


def test_a_running_submission_shows_its_step_its_time_and_a_way_to_stop_it(
    browser: webdriver.Chrome, served: Served
) -> None:
    log_in(browser, served, "alice")
    served.hand_in("alice", "// seconds: 600\nint main() {}")
    see(browser, " for ")
    press(browser, browser.find_element(By.CSS_SELECTOR, "#uploads th a").text)
    see(browser, "run the tests")
    elapsed = "return document.querySelector('[role=timer]').textContent"  # the page may replace it at any moment
    first = browser.execute_script(elapsed)
    WebDriverWait(browser, PATIENCE_S, 0.1).until(lambda page: page.execute_script(elapsed) != first)
    assert "record" not in text_of(browser)
    look(browser, "running")
    press(browser, "Stop")
    see(browser, "Stopped while it ran.")
    look(browser, "stopped")


def test_a_folder_is_chosen_by_keyboard_and_the_staffs_link_leads_to_the_staffs_page(
    browser: webdriver.Chrome, served: Served
) -> None:
    log_in(browser, served, "alice")
    tab_to(browser, "A folder …")
    browser.delete_all_cookies()
    browser.get(f"{served.url}/login#{served.tokens['staff']}")
    see(browser, "This link is for staff")
    ActionChains(browser).send_keys(Keys.ENTER).perform()
    see(browser, "Machines")
    assert browser.current_url == f"{served.url}/staff"
