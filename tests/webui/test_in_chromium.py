"""In a real browser, the web UI's figures move, names from clients stay text, and every view is accessible.

Screenshots are stored in build/web-ui/.
"""

import json
import os
import re
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote

import pytest
import yaml
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from sluicegate.config.values.address import HostPort
from sluicegate.config.values.password import Password, SecretText
from sluicegate.proxy.admin.endpoint import AdminServer
from sluicegate.proxy.live.flow_history import Flow
from sluicegate.proxy.status.status import Status
from sluicegate.proxy.webui.access import Access
from sluicegate.proxy.webui.site import Site
from tests.broker.child_processes import killed_with_parent
from tests.broker.eventually import eventually
from tests.broker.ports import free_ports
from tests.broker.proxy_process import COMMAND, ProxyProcess
from tests.oracle.kafka_java import ROOT
from tests.proxy.live.events import SECRET
from tests.proxy.live.test_merged_state import state_with, view_with
from tests.webui.browser import needs_chromium
from tests.webui.large_proxy import (
    CLIENTS,
    QUIET_TOPICS,
    TOPICS,
    LargeProxy,
    client_id_of_number,
    policy_of,
    serve_web_ui,
    topic_name_of_number,
)
from tests.webui.proxy_under_load import HOSTILE, proxy_under_load

PICTURES = ROOT / "build" / "web-ui"
WAIT_MS = 120_000
VIEWS = {
    "overview": "#/",
    "clients": "#/clients",
    "client": f"#/client?id={quote(client_id_of_number(7))}",
    "topics": "#/topics",
    "topic": f"#/topic?name={quote(topic_name_of_number(25))}",
    "violations": "#/violations",
    "connections": "#/connections",
    "brokers": "#/brokers",
    "policy": "#/policy?topic=orders",
    "fixes": "#/fixes",
}

pytestmark = needs_chromium


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxyProcess]:
    with proxy_under_load(tmp_path_factory.mktemp("proxy")) as running:
        yield running


@pytest.fixture(scope="module")
def large_proxy_address() -> Iterator[str]:
    """Yield the address of a stand-in with 200 clients and 300 topics."""
    with serve_web_ui(LargeProxy()) as server:
        yield f"http://127.0.0.1:{server.port}/"


@pytest.fixture
def browser_errors() -> list[str]:
    """Return the browser's errors. Violations of the content security policy are errors on the console."""
    return []


def open_page(browser: Browser, url: str, complaints: list[str], width: int = 1280, scheme: str = "light") -> Page:
    context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 900})
    context.set_default_timeout(WAIT_MS)
    page = context.new_page()
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", lambda dialog: complaints.append(f"a dialog: {dialog.message}"))
    page.goto(url, wait_until="domcontentloaded")
    return page


def shows_figures(page: Page) -> None:
    eventually(lambda: page.locator("#clients tbody tr:not(.none)").count() > 3, what="clients with violations")


def open_view(page: Page, fragment: str, section: str) -> None:
    """Go to a view and wait for it."""
    page.evaluate("fragment => { location.hash = fragment }", fragment)
    page.wait_for_selector(section)


def expect_text(page: Page, selector: str, text: str) -> None:
    """Wait until the element has this text."""
    expect(page.locator(selector)).to_have_text(text, timeout=WAIT_MS)


def text_of(page: Page, selector: str) -> str:
    return page.locator(selector).first.inner_text()


def test_live_figures_update_and_names_stay_text(
    browser: Browser, proxy: ProxyProcess, browser_errors: list[str]
) -> None:
    page = open_page(browser, proxy.admin, browser_errors)
    shows_figures(page)

    before = text_of(page, "#figures div:nth-child(2) small")
    eventually(lambda: text_of(page, "#figures div:nth-child(2) small") != before, what="other figures")
    assert re.fullmatch(r"Overview - proxy \S+:\d+ - cluster \S.* - sluicegate", page.title())
    assert text_of(page, "#state-text") == "serving"
    open_view(page, "#/clients", "#clients-section")
    eventually(lambda: HOSTILE[0] in page.locator("#clients td:first-child").all_inner_texts(), what=HOSTILE[0])
    assert page.locator("#clients td[data-label=Owner]").count() == 0  # no client has an owner
    page.get_by_role("link", name=HOSTILE[0], exact=True).click()
    expect_text(page, "#client-title", f"Client {HOSTILE[0]}")
    eventually(lambda: page.locator("#client-example #fix").count() == 1, what="an example and its fix")
    assert page.title().startswith(f"Client {HOSTILE[0]} - proxy ")
    assert page.locator("main img, main script, main iframe, main a[href^=javascript]").count() == 0
    open_view(page, "#/violations", "#violations-section")
    eventually(lambda: page.locator("#violations tbody tr").count() > 10, what="ten violations")
    open_view(page, "#/connections", "#connections-section")
    assert page.locator("#connections tbody tr").count() > 3
    open_view(page, "#/brokers", "#brokers-section")
    assert page.locator("#brokers tbody tr").count() == 3
    assert page.locator("#brokers .state").all_inner_texts() == [" reachable"] * 3
    open_view(page, "#/policy", "#distance-section")
    assert "batches" in text_of(page, "#distance-text")
    assert browser_errors == []
    page.context.close()


def test_the_pause_button_stops_updates_and_shows_it(
    browser: Browser, proxy: ProxyProcess, browser_errors: list[str]
) -> None:
    page = open_page(browser, proxy.admin, browser_errors)
    shows_figures(page)
    page.get_by_role("button", name="Pause").click()
    expect(page.locator("#paused")).to_contain_text("nothing is updated until you resume")
    expect_text(page, "#state-text", "paused")
    kept = page.locator("#figures").inner_text()
    page.wait_for_timeout(2500)  # more than two messages of the stream

    assert page.locator("#figures").inner_text() == kept
    page.get_by_role("button", name="Resume").click()
    eventually(lambda: page.locator("#figures").inner_text() != kept, what="other figures")
    expect(page.locator("#paused")).to_have_count(0)
    page.context.close()


@pytest.mark.long
def test_every_control_works_with_the_keyboard(
    browser: Browser, proxy: ProxyProcess, browser_errors: list[str]
) -> None:
    page = open_page(browser, proxy.admin, browser_errors)
    shows_figures(page)
    open_view(page, "#/policy", "#try-after")
    page.evaluate("document.activeElement.blur()")
    reached: list[str] = []
    for _ in range(100):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.id || document.activeElement.innerText"))
        if reached[-1] == "try-after":
            break

    ordered = ["policy-topic", "bounds-of", "try-before", "try-after"]
    assert [name for name in reached if name in ordered] == ordered
    assert text_of(page, "#try-after-text").startswith("1 h: would reject ")
    for _ in range(3):
        page.keyboard.press("ArrowLeft")
    expect(page.locator("#try-after-text")).to_contain_text("about ")
    assert page.locator("#try-after").get_attribute("aria-valuetext") == text_of(page, "#try-after-text")
    page.locator("#policy-topic").focus()
    page.keyboard.type("orders.eu")
    page.keyboard.press("Enter")
    page.wait_for_selector("#policy table")
    assert "cleanup.policy" in text_of(page, "#policy table")
    assert page.url.endswith("#/policy?topic=orders.eu")
    page.reload()
    page.wait_for_selector("#policy table")
    page.locator("#skip").focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.get_by_role("link", name="Connections", exact=True).focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#connections-section")
    assert browser_errors == []
    page.context.close()


def test_a_dragged_bound_shows_what_it_would_reject(
    browser: Browser, proxy: ProxyProcess, browser_errors: list[str]
) -> None:
    page = open_page(browser, f"{proxy.admin}/#/policy", browser_errors)
    eventually(lambda: "would reject" in text_of(page, "#try-before-text"), what="figures")
    eventually(lambda: " 0 batches" not in text_of(page, "#distance-text"), what="batches")
    page.locator("#distance").scroll_into_view_if_needed()
    box = page.locator("#distance").bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * 0.2, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2 - 1, middle)
    page.mouse.up()

    expect(page.locator("#try-before-text")).to_contain_text("about 12 ms: ")
    rejected, of_all = (
        int(text.replace(",", ""))
        for text in re.findall(r"reject ([\d,]+) of ([\d,]+) batches", text_of(page, "#try-before-text"))[0]
    )
    assert 0 < rejected <= of_all
    assert text_of(page, "#try-after-text").startswith("about 1 h: ")
    assert browser_errors == []
    page.context.close()


ALL_VIEWPORTS = [(1280, "light"), (360, "dark"), (1280, "dark"), (360, "light")]
VIEWPORTS = ALL_VIEWPORTS if os.environ.get("SLUICEGATE_THOROUGH") else ALL_VIEWPORTS[:2]


@pytest.mark.long
@pytest.mark.parametrize(("width", "scheme"), VIEWPORTS)
def test_every_view_is_accessible_and_fits_the_window(
    width: int, scheme: str, browser: Browser, large_proxy_address: str, browser_errors: list[str]
) -> None:
    page = open_page(browser, large_proxy_address, browser_errors, width, scheme)
    shows_figures(page)
    for name, fragment in VIEWS.items():
        open_view(page, fragment, "main section")
        page.wait_for_function("() => !document.body.innerText.includes('Loading')")
        page.screenshot(path=PICTURES / f"{name}-{scheme}-{width}.png")

        found = Axe().run(page).response["violations"]

        assert [(one["id"], one["impact"], [node["target"] for node in one["nodes"]]) for one in found] == [], name
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
    assert browser_errors == []
    page.context.close()


def test_200_clients_and_300_topics_can_be_searched_and_sorted(
    browser: Browser, large_proxy_address: str, browser_errors: list[str]
) -> None:
    page = open_page(browser, f"{large_proxy_address}#/clients", browser_errors)
    expect(page.locator("#clients caption")).to_contain_text(f"{CLIENTS} clients", timeout=WAIT_MS)
    page.get_by_role("button", name=f"Show all {CLIENTS}").click()
    expect(page.locator("#clients tbody tr")).to_have_count(CLIENTS)
    assert (
        client_id_of_number(10) in page.locator("#clients td:first-child").all_inner_texts()
    )  # 180 characters, not truncated
    assert set(page.locator("#clients td[data-label=Owner]").all_inner_texts()) == {"shop (#shop)"}
    widths = page.evaluate("(e => [e.scrollWidth, e.clientWidth])(document.querySelector('#clients'))")
    assert widths[0] == widths[1]  # no column is truncated
    page.get_by_label("Search").fill("service-11")
    expect(page.locator("#clients tbody tr")).to_have_count(11)  # 11, 110 to 119
    page.get_by_role("button", name="Client", exact=True).click()
    assert page.url.endswith("#/clients?q=service-11&sort=Client.down")
    assert page.locator("#clients th[aria-sort=descending]").inner_text().startswith("Client")
    page.reload()
    expect(page.locator("#clients tbody tr")).to_have_count(11)
    names = page.locator("#clients td:first-child").all_inner_texts()
    assert names == sorted(names, reverse=True)

    open_view(page, "#/topics?q=domain-1.", "#topics-section")
    expect(page.locator("#topics tbody tr")).to_have_count(TOPICS // 12)
    page.get_by_label("Reason").select_option("null_key")
    expect(page.locator("#topics tbody tr")).to_have_count(TOPICS // 12 // 5)
    page.get_by_role("link", name=topic_name_of_number(25), exact=True).click()
    expect_text(page, "#topic-title", f"Topic {topic_name_of_number(25)}")
    expect(page.locator("#topic")).to_contain_text("domain-1 (#help)")
    expect(page.locator("#topic-example")).to_contain_text(SECRET.decode())  # the topic's samples are on
    expect(page.locator("#topic-policy pre")).to_contain_text(f"{topic_name_of_number(25)}: policy")
    expect(page.locator("#history-batches-text")).to_contain_text(
        "Peak 9/s"
    )  # 2 + 25 % 9 per second, before the page was opened
    expect(page.locator("#history-batches canvas")).to_be_visible()
    open_view(page, f"#/client?id={quote(client_id_of_number(4))}", "#client-example")
    expect(page.locator("#client")).to_contain_text("shop (#shop)")  # its owner
    expect(page.locator("#fix")).to_contain_text("toEpochMilli()")  # apache-kafka-java
    expect(page.get_by_role("link", name="Client guide: Java kafka-clients")).to_have_attribute(
        "href", re.compile(r"/clients-guide\.html#java$")
    )
    expect(page.locator("#history-violations-text")).to_contain_text("Peak")
    page.go_back()
    expect_text(page, "#topic-title", f"Topic {topic_name_of_number(25)}")
    page.evaluate("fragment => { location.hash = fragment }", f"#/client?id={quote(client_id_of_number(4))}")
    page.get_by_role("link", name="Link to the fixes for Java kafka-clients").click()
    expect(page.locator("#fixes-section dt")).to_have_text(["Java kafka-clients"] * 2)  # timestamps, keys
    page.get_by_label("Client library").select_option("")
    expect(page.locator("#fixes-section")).to_contain_text("sarama.ProducerMessage")

    open_view(page, "#/topics?q=quiet-", "#topics-section")
    expect(page.locator("#topics tbody tr")).to_have_count(QUIET_TOPICS)
    expect(page.locator("#topics tbody tr").first.locator("time")).to_have_count(
        1
    )  # topics with traffic but without violations
    open_view(page, f"#/topics?q={quote(topic_name_of_number(25))}", "#topics-section")
    expect(page.locator("#topics tbody tr").first).to_contain_text("225 kB")  # 9000 * 25 bytes/s
    open_view(page, "#/topics?q=quiet-", "#topics-section")
    page.locator("select#only").select_option("with violations")
    expect(page.locator("#topics tbody tr:not(.none)")).to_have_count(0)
    assert browser_errors == []
    page.context.close()


@pytest.mark.long
def test_a_restarted_proxy_is_shown_again(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> None:
    with proxy_under_load(tmp_path_factory.mktemp("proxy"), workers=1) as proxy:
        page = open_page(browser, proxy.admin, [])
        shows_figures(page)
        started = text_of(page, "#about")
        proxy.kill()
        expect(page.locator("#stale")).to_contain_text("the proxy does not respond", timeout=WAIT_MS)
        assert text_of(page, "#about") == started  # the last data stay, marked as old
        proxy.start()
        expect(page.locator("#stale")).to_have_count(0, timeout=WAIT_MS)
        expect_text(page, "#state-text", "serving")
        assert text_of(page, "#about") != started
        expect(page.locator("#flow-records-text")).to_contain_text("No data for", timeout=WAIT_MS)  # after a whole bin
        page.context.close()


@pytest.mark.long
def test_a_changed_policy_is_shown_with_its_file(browser: Browser, tmp_path: Path, browser_errors: list[str]) -> None:
    with proxy_under_load(tmp_path) as proxy:
        page = open_page(browser, f"{proxy.admin}/#/policy", browser_errors)
        expect(page.locator("#policy-changes")).to_contain_text("No policy has changed", timeout=WAIT_MS)
        file = tmp_path / "sluicegate.yaml"
        text = yaml.safe_dump(proxy.config | {"topics": [{"match": "<b>orders", "mode": "observe"}]})
        file.with_suffix(".new").write_text(text)
        file.with_suffix(".new").replace(file)

        rows = page.locator("#policy-changes tbody tr")
        expect(rows.first).to_contain_text("<b>orders: looser: mode reject -> observe", timeout=WAIT_MS)
        expect(rows.first).to_contain_text(sha256(text.encode()).hexdigest())
        expect(rows.first).to_contain_text(str(file))
        (change,) = json.loads(proxy.get("/api/policy-changes")[1])["changes"]
        assert (len(change["looser"]), len(change["stricter"])) == (2, 0)
        page.context.close()
    assert browser_errors == []


def test_an_idle_proxy_shows_empty_tables(browser: Browser, browser_errors: list[str]) -> None:
    site = Site(Access(HostPort("127.0.0.1", 1), None), lambda _: state_with(view_with("a", {}), []), policy_of)
    server = AdminServer(HostPort("127.0.0.1", 0), list, Status(), lambda: site)
    try:
        page = open_page(browser, f"http://127.0.0.1:{server.port}/", browser_errors, 1280)
        expect_text(page, "#state-text", "serving")
        assert text_of(page, "#flow-rejected-text") == "No data in the last 15 minutes."
        assert text_of(page, "#figures div:nth-child(2) dd") == "no data\n0 total"  # different from 0/s
        page.screenshot(path=PICTURES / "empty.png", full_page=True)
        open_view(page, "#/connections", "#connections")
        assert text_of(page, "#connections tbody") == "No clients connected."
        assert browser_errors == []
        page.context.close()
    finally:
        server.close()


def test_a_state_change_is_announced_and_its_conditions_are_shown(browser: Browser, browser_errors: list[str]) -> None:
    view = view_with("gone", {})
    for second in range(100, 107):
        view.history.add(second, Flow(records=second, rejected=second))
    problems: list[str] = []
    site = Site(Access(HostPort("127.0.0.1", 1), None), lambda _: state_with(view, problems), policy_of)
    server = AdminServer(HostPort("127.0.0.1", 0), list, Status(), lambda: site)
    try:
        page = open_page(browser, f"http://127.0.0.1:{server.port}/", browser_errors)
        figures = "1 record per second; 1 rejected batch per second; 0 connections"
        expect_text(page, "#summary", f"serving; {figures}")

        problems += ["`max.msg` has no <b>unit</b> for 24 h; did you mean max.ms?", "one ` alone"]

        expect_text(page, "#state-text", "needs attention")
        assert text_of(page, "#summary") == f"needs attention; {figures}"
        assert page.locator("#conditions code").all_inner_texts() == ["max.msg"]
        asked, alone = page.locator("#conditions li").evaluate_all("found => found.map((one) => one.textContent)")
        assert "max.msg has no <b>unit</b> for 24\u00a0h; did you mean max.ms? Since 20" in asked
        assert "one ` alone. Since 20" in alone
        open_view(page, "#/clients", "#clients-section")
        row = page.locator("#clients tbody tr")
        assert row.locator("td[data-label='Batches/s']").inner_text() == "0"
        assert (
            row.locator("td[data-label='Received/s']").inner_text() == "0 B"
        )  # disconnected, so the rate is known to be zero
        page.get_by_role("button", name="Pause").click()
        expect_text(page, "#summary", "paused")
        assert browser_errors == []
        page.context.close()
    finally:
        server.close()


def test_the_web_ui_asks_for_the_token_and_keeps_it_for_the_tab(browser: Browser, browser_errors: list[str]) -> None:
    access = Access(HostPort("0.0.0.0", 1), Password("admin.token_file", SecretText("open sesame"), None))
    site = Site(access, lambda _: state_with(view_with("a", {}), []), policy_of)
    server = AdminServer(HostPort("127.0.0.1", 0), list, Status(), lambda: site)
    try:
        page = open_page(browser, f"http://127.0.0.1:{server.port}/", [], 1280)
        page.get_by_label("The web UI needs a token").fill("wrong")
        page.keyboard.press("Enter")
        expect_text(page, "#token-text", "Wrong token.")
        page.get_by_label("The web UI needs a token").fill("open sesame")
        page.keyboard.press("Enter")
        expect_text(page, "#state-text", "serving")
        expect(page.locator("#token-form")).to_have_count(0)
        open_view(page, "#/policy", "#policy-topic")
        page.get_by_label("Topic", exact=True).fill("orders")
        page.keyboard.press("Enter")
        expect(page.locator("#policy pre")).to_contain_text("orders: policy")
        assert "10 min" in text_of(page, "#policy table")
        assert "sesame" not in page.url
        page.context.close()
    finally:
        server.close()


@pytest.mark.long
def test_two_proxies_are_shown_as_a_fleet(browser: Browser, tmp_path: Path, browser_errors: list[str]) -> None:
    listen = f"127.0.0.1:{free_ports(1)}"
    files = {name: tmp_path / name for name in ("browsers", "first", "others")}
    for name, file in files.items():
        file.write_text(f"the token of {name}\n")
    with ExitStack() as stack:
        first = stack.enter_context(serve_web_ui(LargeProxy(), token="the token of first"))
        second = stack.enter_context(serve_web_ui(LargeProxy(100), token="the token of others"))
        addresses = [f"127.0.0.1:{server.port}" for server in (first, second)]
        options = ["--proxies", ",".join(addresses), "--listen", listen, "--token-file", str(files["browsers"])]
        tokens = ["--proxy-token-file", f"{addresses[0]}={files['first']}", "--proxy-token-file", str(files["others"])]
        process = subprocess.Popen(killed_with_parent([COMMAND, "fleet", *options, *tokens]))
        stack.callback(process.wait)
        stack.callback(process.terminate)
        page = open_page(browser, "about:blank", browser_errors, 360)
        eventually(lambda: is_responding(listen), what="the fleet")
        page.goto(f"http://{listen}/")
        page.get_by_label("The web UI needs a token").fill("the token of browsers")
        page.keyboard.press("Enter")
        expect(page.locator("#fleet tbody tr")).to_have_count(2, timeout=WAIT_MS)
        expect(page.locator("#fleet .state")).to_have_text([" serving"] * 2, timeout=WAIT_MS)
        assert page.title() == "Overview - fleet of 2 proxies - cluster a-cluster - sluicegate"
        assert text_of(page, "#figures div:last-child dd span") == f"{2 * (CLIENTS + 30)}"
        open_view(page, "#/clients", "#clients-section")
        expect(page.locator("#clients caption")).to_contain_text(f"{CLIENTS} clients")
        second.close()
        open_view(page, "#/proxies", "#proxies-section")
        expect(page.locator("#fleet .state").last).to_have_text(" unreachable", timeout=WAIT_MS)
        expect(page.locator("#conditions")).to_contain_text(f"{addresses[1]}: Connection refused")
        expect_text(page, "#state-text", "needs attention")
        found = Axe().run(page).response["violations"]
        assert [(one["id"], [node["target"] for node in one["nodes"]]) for one in found] == []
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        page.screenshot(path=PICTURES / "fleet-light-360.png")
        page.context.close()
    assert [text for text in browser_errors if "401" not in text] == []  # before the token was entered


def is_responding(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"http://{address}/livez", timeout=5) as response:
            return bool(response.status == 200)
    except OSError:
        return False
