"""A real browser shows the violations of the last days on request, with the range that was read."""

from collections.abc import Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, expect

from sluicegate.config.teams import Owner
from sluicegate.config.values.address import HostPort
from sluicegate.proxy.admin.endpoint import AdminServer
from sluicegate.proxy.status.status import Status
from sluicegate.proxy.webui.access import Access
from sluicegate.proxy.webui.responses import HttpResponse, json_response
from sluicegate.proxy.webui.site import Site
from sluicegate.validation.policy import TopicPolicy
from sluicegate.validation.validated_request import ValidationBasis
from sluicegate.validation.verdict import Reason
from tests.proxy.live.events import NOW, rejected_event
from tests.proxy.live.test_merged_state import state_with, view_with
from tests.proxy.watching.test_recorded_listing import ALL
from tests.proxy.watching.test_topic_violations import counted_groups
from tests.webui.browser import needs_chromium
from tests.webui.large_proxy import policy_of
from tests.webui.test_in_chromium import WAIT_MS, open_page
from tests.webui.test_shared_fleet import StubCluster

pytestmark = needs_chromium
OWNED = ValidationBasis(TopicPolicy(owner=Owner(team="<b>payments")), NOW)
RULED = rejected_event("<i>billing", reason=Reason.RULE_VIOLATED)._replace(basis=OWNED, rules=(("amount", 3),))


class RecordedEvents(StubCluster):
    """The changes of a proxy with `violations.topic`."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []
        self.response: dict[str, object] = {**ALL, "groups": counted_groups(RULED, RULED, rejected_event("shipping"))}

    def violations(self, query: str) -> HttpResponse:
        self.asked.append(query)
        return json_response(self.response)


@pytest.fixture
def cluster() -> RecordedEvents:
    return RecordedEvents()


@pytest.fixture
def address(cluster: RecordedEvents) -> Iterator[str]:
    access = Access(HostPort("127.0.0.1", 1), None)
    site = Site(access, lambda _: state_with(view_with("a", {}), []), policy_of, cluster)
    server = AdminServer(HostPort("127.0.0.1", 0), list, Status(), lambda: site)
    yield f"http://127.0.0.1:{server.port}/"
    server.close()


def test_the_violation_topic_is_read_when_a_range_is_chosen(
    browser: Browser, cluster: RecordedEvents, address: str
) -> None:
    complaints: list[str] = []
    page = open_page(browser, f"{address}#/violations", complaints, 360)
    expect(page.locator("#violations-section")).to_contain_text("In memory since 20", timeout=WAIT_MS)
    assert cluster.asked == []

    page.locator("#days").select_option("7")
    expect(page.locator("#recorded tbody tr")).to_have_count(2, timeout=WAIT_MS)
    assert cluster.asked == ["days=7"]
    section = page.locator("#recorded-section")
    expect(section).to_contain_text("From 2027-01-14T08:00:00Z to 2027-01-15T08:00:00Z, topic events.")
    for text in ("<i>billing", "<b>payments", "rule_violated", "amount"):
        expect(page.locator("#recorded tbody tr").first).to_contain_text(text)
    assert [(one["id"], one["nodes"]) for one in Axe().run(page).response["violations"]] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 360

    page.locator("#search").fill("shipping")
    expect(page.locator("#recorded tbody tr")).to_have_count(1)
    page.locator("#search").fill("")
    cluster.response = {"groups": None, "problem": "violations.topic is not configured", "advice": "set it"}
    page.locator("#days").select_option("1")
    expect(section).to_contain_text("violations.topic is not configured", timeout=WAIT_MS)
    page.context.close()
    assert complaints == []
