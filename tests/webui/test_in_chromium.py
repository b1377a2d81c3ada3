"""The page in a real browser: its figures move, what clients call themselves stays text, anybody can use it.

Screenshots are left in build/web-ui/.
"""

import re
import shutil
from collections.abc import Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect, sync_playwright

from sluicegate.config.values.address import HostPort
from sluicegate.config.values.password import Password, SecretText
from sluicegate.proxy.admin.endpoint import AdminServer
from sluicegate.proxy.status.status import Status
from sluicegate.proxy.webui.access import Access
from sluicegate.proxy.webui.site import Site
from tests.broker.eventually import eventually
from tests.broker.proxy_process import ProxyProcess
from tests.oracle.kafka_java import ROOT
from tests.proxy.live.test_merged_state import seen, view_with
from tests.webui.proxy_under_load import HOSTILE, proxy_under_load

CHROMIUM = shutil.which("chromium")
PICTURES = ROOT / "build" / "web-ui"
WAIT_MS = 120_000

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs a browser: Debian's package chromium")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    PICTURES.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxyProcess]:
    with proxy_under_load(tmp_path_factory.mktemp("proxy")) as running:
        yield running


@pytest.fixture
def complaints() -> list[str]:
    """What the browser has complained of; breaches of the content security policy are errors on the console."""
    return []


def opened(browser: Browser, url: str, complaints: list[str], width: int = 1280, scheme: str = "light") -> Page:
    context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 900})
    context.set_default_timeout(WAIT_MS)
    page = context.new_page()
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", lambda dialog: complaints.append(f"a dialog: {dialog.message}"))
    page.goto(url, wait_until="domcontentloaded")
    return page


def shows_figures(page: Page) -> None:
    eventually(lambda: page.locator("#clients tbody tr:not(.none)").count() > 3, what="clients that do things wrong")


def is_said(page: Page, selector: str, text: str) -> None:
    """In a while."""
    expect(page.locator(selector)).to_have_text(text, timeout=WAIT_MS)


def text_of(page: Page, selector: str) -> str:
    return page.locator(selector).first.inner_text()


def test_figures_move_and_names_stay_names(browser: Browser, proxy: ProxyProcess, complaints: list[str]) -> None:
    page = opened(browser, proxy.admin, complaints)
    shows_figures(page)

    before = text_of(page, "#figures div:nth-child(2) small")
    eventually(lambda: text_of(page, "#figures div:nth-child(2) small") != before, what="other figures")
    eventually(lambda: page.locator("#violations tbody tr").count() > 10, what="ten violations")
    eventually(lambda: HOSTILE[0] in page.locator("#clients td:first-child").all_inner_texts(), what=HOSTILE[0])

    assert page.title() == "sluicegate"
    assert page.locator("main img, main script, main iframe, main a[href^=javascript]").count() == 0
    assert text_of(page, "#state-text") == "serving"
    assert page.locator("#connections tbody tr").count() > 3
    assert page.locator("#brokers tbody tr").count() == 3
    assert "batches" in text_of(page, "#distance-text")
    assert complaints == []
    page.context.close()


def test_pause_stops_the_updates(browser: Browser, proxy: ProxyProcess, complaints: list[str]) -> None:
    page = opened(browser, proxy.admin, complaints)
    shows_figures(page)
    page.get_by_role("button", name="Pause").click()
    held = page.locator("#figures").inner_text()
    page.wait_for_timeout(2500)  # more than two messages of the stream

    assert page.locator("#figures").inner_text() == held
    page.get_by_role("button", name="Pause").click()
    eventually(lambda: page.locator("#figures").inner_text() != held, what="other figures")
    page.context.close()


@pytest.mark.long
def test_every_control_works_with_the_keyboard(browser: Browser, proxy: ProxyProcess, complaints: list[str]) -> None:
    page = opened(browser, proxy.admin, complaints)
    shows_figures(page)
    reached: list[str] = []
    for _ in range(300):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.id || document.activeElement.className"))
        if reached[-1] == "pause":
            page.keyboard.press("Enter")  # else new rows come before those that are left
        if reached[-1] == "try-after":
            break

    ordered = [
        name for name in reached if name in ("skip", "pause", "violations", "bounds-of", "try-before", "try-after")
    ]
    assert ordered == ["skip", "pause", "violations", "bounds-of", "try-before", "try-after"]
    assert text_of(page, "#try-after-text").startswith("1 h: would reject ")
    for _ in range(3):
        page.keyboard.press("ArrowLeft")
    assert text_of(page, "#try-after-text").startswith("about ")
    assert page.locator("#try-after").get_attribute("aria-valuetext") == text_of(page, "#try-after-text")
    page.keyboard.press("Tab")
    page.keyboard.type("orders.eu")
    page.keyboard.press("Enter")
    page.wait_for_selector("#policy pre")
    assert "cleanup.policy" in text_of(page, "#policy pre")
    assert complaints == []
    page.context.close()


def test_a_dragged_bound_shows_what_it_would_reject(
    browser: Browser, proxy: ProxyProcess, complaints: list[str]
) -> None:
    page = opened(browser, proxy.admin, complaints)
    shows_figures(page)
    page.get_by_role("button", name="Pause").click()  # else what is dragged moves away below new rows
    page.locator("#distance").scroll_into_view_if_needed()
    box = page.locator("#distance").bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * 0.2, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2 - 1, middle)
    page.mouse.up()

    said = text_of(page, "#try-before-text")
    rejected, of_all = (
        int(text.replace(",", "")) for text in re.findall(r"reject ([\d,]+) of ([\d,]+) batches", said)[0]
    )
    assert said.startswith("about 12 ms: ")
    assert 0 < rejected <= of_all
    assert text_of(page, "#try-after-text").startswith("about 1 h: ")
    assert complaints == []
    page.context.close()


@pytest.mark.long
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (360, "light"), (360, "dark")])
def test_nothing_bars_anybody_and_nothing_runs_over(
    width: int, scheme: str, browser: Browser, proxy: ProxyProcess, complaints: list[str]
) -> None:
    page = opened(browser, proxy.admin, complaints, width, scheme)
    shows_figures(page)
    page.screenshot(path=PICTURES / f"{scheme}-{width}.png", full_page=True)

    found = Axe().run(page).response["violations"]

    assert [(one["id"], one["impact"], [node["target"] for node in one["nodes"]]) for one in found] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert complaints == []
    page.context.close()


def test_an_idle_proxy_shows_empty_tables(browser: Browser, complaints: list[str]) -> None:
    site = Site(Access(HostPort("127.0.0.1", 1), None), lambda _: seen(view_with("a", {}), []), lambda _: [])
    server = AdminServer(HostPort("127.0.0.1", 0), list, Status(), lambda: site)
    try:
        page = opened(browser, f"http://127.0.0.1:{server.port}/", complaints, 1280)
        is_said(page, "#state-text", "serving")
        assert text_of(page, "#connections tbody") == "No clients connected."
        assert text_of(page, "#flow-rejected-text") == "No data in the last 15 minutes."
        assert complaints == []
        page.screenshot(path=PICTURES / "empty.png", full_page=True)
        page.context.close()
    finally:
        server.close()


def test_the_token_is_asked_for_and_kept_for_this_tab(browser: Browser, complaints: list[str]) -> None:
    access = Access(HostPort("0.0.0.0", 1), Password("admin.token_file", SecretText("open sesame"), None))
    site = Site(access, lambda _: seen(view_with("a", {}), []), lambda topic: [f"policy of {topic}"])
    server = AdminServer(HostPort("127.0.0.1", 0), list, Status(), lambda: site)
    try:
        page = opened(browser, f"http://127.0.0.1:{server.port}/", [], 1280)
        page.get_by_label("The web UI needs a token").fill("wrong")
        page.keyboard.press("Enter")
        is_said(page, "#token-text", "Wrong token.")
        page.get_by_label("The web UI needs a token").fill("open sesame")
        page.keyboard.press("Enter")
        is_said(page, "#state-text", "serving")
        assert page.locator("#token-form").is_hidden()
        page.get_by_label("Topic", exact=True).fill("orders")
        page.keyboard.press("Enter")
        page.wait_for_selector("#policy pre")
        assert text_of(page, "#policy pre") == "policy of orders"
        assert "sesame" not in page.url
        page.context.close()
    finally:
        server.close()
