"""In a real browser, strangers' texts in dead letters stay text, and groups link to their clients and redrives."""

from collections.abc import Iterator
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, expect

from sluicegate.config.values.address import HostPort
from sluicegate.dead_letters import Headers, LetterGroups
from sluicegate.proxy.admin.endpoint import AdminServer
from sluicegate.proxy.reload.letter_groups import group_json
from sluicegate.proxy.status.status import Status
from sluicegate.proxy.webui.access import Access
from sluicegate.proxy.webui.responses import HttpResponse, json_response
from sluicegate.proxy.webui.site import Site
from tests.dead_letters.letters import CONNECT, SLUICEGATE, TIME, letter
from tests.proxy.live.test_merged_state import state_with, view_with
from tests.webui.browser import needs_chromium
from tests.webui.large_proxy import policy_of
from tests.webui.test_in_chromium import PICTURES, WAIT_MS, open_page
from tests.webui.test_shared_fleet import StubCluster

pytestmark = needs_chromium
HOUR_MS = 3_600_000
HOSTILE = '<img src=x onerror="alert(1)"> {0} \u202e'
VERDICT = {
    "is_accepted": False,
    "code": "timestamp_in_future",
    "rules": [],
    "letters": 2,
    "valid_after": {"fix now": 2},
}
TOPICS = [
    {
        "topic": "orders.dlq",
        "problem": None,
        "records": 4,
        "read": 4,
        "letters": 4,
        "formats": ["sluicegate"],
        "oldest_ms": TIME,
        "newest_ms": 2**62,  # any client may write such a timestamp
        "from_topics": {"orders": 4},
    },
    {"topic": "audit.dlq", "problem": "the topic does not exist", "records": 0},
    {"topic": "empty.dlq", "problem": None, "records": 0},
    {
        "topic": "payments",
        "problem": None,
        "records": 9000,
        "read": 100,
        "letters": 0,
        "formats": [],
        "oldest_ms": TIME,
        "newest_ms": TIME,
        "from_topics": {},
    },
]


def replaced(headers: Headers, name: bytes, value: bytes) -> Headers:
    return tuple((each, value if each == name else old) for each, old in headers)


def content() -> dict[str, Any]:
    """What the proxy returns for a topic with letters of ours and of Connect."""
    groups = LetterGroups()
    for hour, client in enumerate((b"shop", b"shop", HOSTILE.encode())):
        groups.add(letter(replaced(SLUICEGATE, b"sluicegate.client.id", client), time=TIME + hour * HOUR_MS))
    groups.add(letter(replaced(CONNECT, b"__connect.errors.exception.message", HOSTILE.encode()), time=2**62))
    listed = [{**group_json(each, None), "command": f"redrive --group {each.id}"} for each in groups.ordered()]
    for group, verdicts in zip(listed, ([VERDICT], []), strict=True):
        group |= {"verdicts": verdicts, "obstacles": {} if verdicts else {"record_not_copied": 1}}
    listed[0]["example"]["contents"] = {"key": None, "value": {"size": 1234, "text": HOSTILE}}
    return {
        "topic": "orders.dlq",
        "records": 20_000,
        "read": 4,
        "not_letters": 1,
        "other_groups": 2,
        "groups": listed,
    }


class LetterTopics(StubCluster):
    """The changes of a proxy with `admin.dead_letters`."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def dead_letters(self, query: str) -> HttpResponse:
        self.asked.append(query)
        if self.asked.count(query) == 1:
            return json_response({"topics": None, "groups": None, "reading": True})
        return json_response(content() if query else {"topics": TOPICS})


@pytest.fixture
def cluster() -> LetterTopics:
    return LetterTopics()


@pytest.fixture
def address(cluster: LetterTopics) -> Iterator[str]:
    access = Access(HostPort("127.0.0.1", 1), None)
    site = Site(access, lambda _: state_with(view_with("a", {}), []), policy_of, cluster)
    server = AdminServer(HostPort("127.0.0.1", 0), list, Status(), lambda: site)
    yield f"http://127.0.0.1:{server.port}/"
    server.close()


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (360, "dark")])
def test_topics_link_to_groups_and_groups_to_clients(
    browser: Browser, cluster: LetterTopics, address: str, width: int, scheme: str
) -> None:
    complaints: list[str] = []
    page = open_page(browser, f"{address}#/letters", complaints, width, scheme)
    expect(page.locator("#letter-topics tbody tr")).to_have_count(4, timeout=WAIT_MS)
    expect(page.locator("#letter-topics")).to_contain_text("the topic does not exist")
    rows = page.locator("#letter-topics tbody tr")
    expect(rows.nth(2).locator("td").nth(2)).to_have_text("no records")
    expect(rows.nth(3).locator("td")).to_have_text(["payments", "9,000", "0 of 100", "", "", "", ""])
    expect(page.locator("#letter-topics")).to_contain_text("4611686018427388000 ms")  # no date
    page.screenshot(path=PICTURES / f"letter-topics-{scheme}-{width}.png", full_page=True)
    page.get_by_role("link", name="orders.dlq").click()

    section = page.locator("#letters-section")
    expect(section.locator("article")).to_have_count(2, timeout=WAIT_MS)
    assert cluster.asked == [""] * 2 + ["topic=orders.dlq"] * 2
    ours, connect = section.locator("article").all()
    for text in ("3 letters: timestamp_in_future", "2 timestamp_in_future, valid after fix now 2", HOSTILE[:-1]):
        expect(ours).to_contain_text(text)
    expect(ours.get_by_role("img")).to_have_attribute("aria-label", "Letters by hour: most 1 from 2025-11-30T10:00:00Z")
    expect(ours.get_by_role("link", name="shop", exact=True)).to_have_attribute("href", "#/client?id=shop")
    expect(ours.get_by_role("link", name="violations").first).to_have_attribute("href", "#/violations?q=shop")
    expect(ours.get_by_role("link", name="all fixes").first).to_have_attribute("href", "#/fixes")
    expect(connect).to_contain_text("<img src=x onerror=")
    expect(connect).to_contain_text("1 cannot be validated: record_not_copied")
    expect(connect).to_contain_text("not shown: the policy of orders")
    expect(section).to_contain_text("The newest 4 of 20,000 records were read; 1 are no dead letters.")
    assert page.locator("main img, main script").count() == 0
    assert section.get_by_role("button").count() == 0  # a page cannot redrive anything without a person's login
    assert [(one["id"], one["nodes"]) for one in Axe().run(page).response["violations"]] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.screenshot(path=PICTURES / f"letters-{scheme}-{width}.png", full_page=True)

    page.locator("#search").fill("DataException")
    expect(section.locator("article")).to_have_count(1)
    page.goto(f"{address}#/letters?topic=orders.dlq&client=to-warehouse")
    expect(section.locator("article")).to_have_count(1, timeout=WAIT_MS)
    page.context.close()
    assert complaints == []
