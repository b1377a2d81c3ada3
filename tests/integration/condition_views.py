"""Waits for a condition of a proxy, and checks that every view shows it.

The views are stored side by side in build/conditions/, as text and as pictures of the web UI at 1280 and 360 px.
"""

import re
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

from tests.broker.eventually import eventually
from tests.broker.proxy_process import ProxyProcess
from tests.oracle.kafka_java import ROOT
from tests.proxy.cli.test_commands import sluicegate

if TYPE_CHECKING:
    from playwright.sync_api import Page

PICTURES = ROOT / "build" / "conditions"
PAGE_MS = 60_000
_LOGGED_AS = {
    "upstream_unreachable": "no broker reachable",
    "upstream_not_a_broker": "no broker reachable",
    "configuration_rejected": "configuration rejected",
    "enforcement_suspended": "enforcement suspended",
    "policy_file_missing": "policy files missing",
    "proxy_login_rejected": "broker rejected proxy login",
    "worker_restarted": "worker ended, restarting",
}
_COLOURS = {"needs attention": "attention", "not serving": "bad"}
_WITHIN_SECONDS = 10
_FOR_A_BUSY_MACHINE = 20


def active_condition_details(proxy: ProxyProcess) -> dict[str, str]:
    """Return the details of the active conditions."""
    lines = proxy.get("/readyz")[1].splitlines()[1:]
    return dict(line.split(": ", 1) for line in lines)


def wait_until_begun(proxy: ProxyProcess, condition: str, web_ui: "Page | None") -> str:
    """Wait for a condition, check that every view shows it, and return its detail."""
    seconds = _WITHIN_SECONDS + _FOR_A_BUSY_MACHINE
    detail = eventually(lambda: active_condition_details(proxy).get(condition), seconds, condition)
    status, readiness = proxy.get("/readyz")
    state = readiness.splitlines()[0]
    assert status == (503 if state == "not serving" else 200)
    metric = re.search(
        rf'^sluicegate_condition{{condition="{condition}",subject=".*"}} 1\.0$', proxy.get("/metrics")[1], re.M
    )
    assert metric is not None
    token = proxy.config["admin"].get("token_file")
    assert f'"condition": "{condition}"' in _live_state(proxy, token)
    shown = {"/readyz": f"{status}\n{readiness}", "metric": metric[0]}
    address = proxy.admin.removeprefix("http://")
    for view in (["top", "--once", address], ["who", "a-topic", "--admin", address]):
        said = sluicegate(*view, *([] if token is None else ["--token-file", token]))
        shown[view[0]] = said.stdout + said.stderr
        assert detail[:20] in " ".join(shown[view[0]].split()), said
    PICTURES.mkdir(parents=True, exist_ok=True)
    if web_ui is not None:
        shown["web UI"] = _in_the_web_ui(web_ui, proxy, condition, state)
        assert detail[:20].replace("`", "") in " ".join(shown["web UI"].split())  # with code and no-break spaces
    (PICTURES / f"{condition}.txt").write_text("".join(f"== {place}\n{text}\n" for place, text in shown.items()))
    proxy.wait_for_line(_LOGGED_AS.get(condition, "condition began"))
    return detail


def _live_state(proxy: ProxyProcess, token: str | None) -> str:
    headers = {} if token is None else {"Authorization": f"Bearer {Path(token).read_text()}"}
    with urllib.request.urlopen(
        urllib.request.Request(f"{proxy.admin}/api/live", headers=headers), timeout=30
    ) as response:
        return str(response.read().decode())


def _in_the_web_ui(page: "Page", proxy: ProxyProcess, condition: str, state: str) -> str:
    """Return the web UI's text about all conditions."""
    page.goto(proxy.admin, wait_until="domcontentloaded")
    if "token_file" in proxy.config["admin"]:
        page.get_by_label("The web UI needs a token").fill(Path(proxy.config["admin"]["token_file"]).read_text())
        page.keyboard.press("Enter")
    page.wait_for_selector(f"#conditions :text('{condition}')", timeout=PAGE_MS)
    assert page.locator("#state-text").inner_text() == state
    assert page.locator("#state").get_attribute("data-state") == _COLOURS[state]
    assert page.locator("#conditions.bad").count() == (state == "not serving")
    page.set_viewport_size({"width": 360, "height": 900})
    assert page.evaluate("document.getElementById('conditions').scrollWidth") <= 360
    for width in (1280, 360):
        page.set_viewport_size({"width": width, "height": 900})
        page.screenshot(path=PICTURES / f"{condition}-{width}.png")
    return page.locator("#conditions").inner_text()


def wait_until_condition_ended(proxy: ProxyProcess, condition: str) -> None:
    eventually(
        lambda: condition not in active_condition_details(proxy),
        _WITHIN_SECONDS + _FOR_A_BUSY_MACHINE,
        f"no {condition}",
    )
    proxy.wait_for_line("condition ended")
