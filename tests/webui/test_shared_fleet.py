"""A real browser shows all proxies of a cluster: three proxies, one of them stale."""

import json
import time
from dataclasses import replace

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, expect

from sluicegate.config.values.address import HostPort
from sluicegate.proxy.admin.endpoint import AdminServer
from sluicegate.proxy.live.live_snapshot import LiveQuery
from sluicegate.proxy.live.live_state import LiveState
from sluicegate.proxy.state.bounded_read import TimedValue
from sluicegate.proxy.state.fleet_view import fleet_of
from sluicegate.proxy.state.presence import Presence, encode
from sluicegate.proxy.status.status import Status
from sluicegate.proxy.webui.access import Access
from sluicegate.proxy.webui.responses import HttpResponse, json_response
from sluicegate.proxy.webui.site import Site
from tests.proxy.live.test_merged_state import state_with, view_with
from tests.webui.browser import needs_chromium
from tests.webui.large_proxy import policy_of
from tests.webui.test_in_chromium import PICTURES, WAIT_MS, open_page, text_of

pytestmark = needs_chromium
NOW = 1_800_000_000_000
ONE = Presence("gate-1:19092", "a", NOW, NOW, "10.0.0.1:9650", "0.1.0", "5fc2a0b1d9e4", "serving", (), {})


class StubCluster:
    """The changes of a proxy whose cluster has three proxies; the second is stale, the third has another version."""

    def __init__(self, problem: str | None = None) -> None:
        self.problem = problem

    def lines_about(self, _topic: str) -> list[str]:
        return []

    def change(self, _path: str, _query: str, _address: str) -> HttpResponse:
        raise AssertionError("nothing is changed")

    def history(self, _query: str) -> HttpResponse:
        raise AssertionError("no history is read")

    def fleet(self) -> HttpResponse:
        if self.problem is not None:
            return json_response({"proxies": None, "problem": self.problem, "advice": "create <b>gate-presence"})
        stale = replace(ONE, name="gate-2:19092", instance="b", time_ms=NOW - 20_000)
        hostile = replace(
            ONE, name="<b>gate-3", instance="c", version="0.2.0", state="needs attention", conditions=("events_lost",)
        )
        records = [TimedValue(encode(each), each.time_ms, True) for each in (stale, ONE, hostile)]
        return json_response(json.loads(json.dumps(fleet_of(records, "a", NOW).as_json())))


def start_admin_server(cluster: StubCluster) -> AdminServer:
    access = Access(HostPort("127.0.0.1", 1), None)
    began = time.monotonic()

    def read_state(_: LiveQuery) -> LiveState:
        state = state_with(view_with("a", {}), [])
        return {**state, "time_ms": state["time_ms"] + round((time.monotonic() - began) * 1000)}

    site = Site(access, read_state, policy_of, cluster)
    return AdminServer(HostPort("127.0.0.1", 0), list, Status(), lambda: site)


def test_three_proxies_one_stale_and_two_versions_are_shown(browser: Browser) -> None:
    complaints: list[str] = []
    server = start_admin_server(StubCluster())
    try:
        page = open_page(browser, f"http://127.0.0.1:{server.port}/", complaints, 360)
        expect(page.locator("#shared-fleet tbody tr")).to_have_count(3, timeout=WAIT_MS)
        expect(page.locator("#shared-fleet .state")).to_have_text([" needs attention", " serving", " stale"])
        assert "2 versions: 0.1.0: gate-1:19092; 0.2.0: <b>gate-3" in text_of(page, "#shared-fleet-section")
        assert "events_lost" in text_of(page, "#shared-fleet tbody")
        found = Axe().run(page).response["violations"]
        assert [(one["id"], [node["target"] for node in one["nodes"]]) for one in found] == []
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        page.screenshot(path=PICTURES / "shared-fleet-light-360.png")
        page.context.close()
    finally:
        server.close()
    assert complaints == []


def test_an_unreadable_fleet_shows_the_reason_and_the_remedy(browser: Browser) -> None:
    complaints: list[str] = []
    cluster = StubCluster("gate-presence: Unknown topic")
    server = start_admin_server(cluster)
    try:
        page = open_page(browser, f"http://127.0.0.1:{server.port}/", complaints, 360)
        expect(page.locator("#shared-fleet-section")).to_contain_text("gate-presence: Unknown topic", timeout=WAIT_MS)
        expect(page.locator("#shared-fleet-section")).to_contain_text("create <b>gate-presence")
        expect(page.locator("#shared-fleet tbody tr")).to_have_count(0)
        cluster.problem = None
        expect(page.locator("#shared-fleet tbody tr")).to_have_count(
            3, timeout=WAIT_MS
        )  # the proxy gets another request
        page.context.close()
    finally:
        server.close()
    assert complaints == []
