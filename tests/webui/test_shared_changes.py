"""A real browser shows the changes in all proxies on request, with their authors and the proxies that applied them."""

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, expect

from sluicegate.proxy.state.agreed_state import AgreedState
from sluicegate.proxy.state.change import Actor, ResumeEnforcement, StateChange, SuspendEnforcement
from sluicegate.proxy.state.history_entry import Taken, entry_of
from sluicegate.proxy.webui.responses import HttpResponse, json_response
from tests.webui.browser import needs_chromium
from tests.webui.test_in_chromium import PICTURES, WAIT_MS, open_page
from tests.webui.test_shared_fleet import NOW, StubCluster, start_admin_server

pytestmark = needs_chromium
ADMIN = Actor("an administrator", "10.1.2.3")


def change_as_json(number: int, operation: SuspendEnforcement | ResumeEnforcement) -> dict[str, object]:
    written = StateChange(f"change-{number}", NOW, ADMIN, "gate-1:19092", operation)
    entry = entry_of(written, AgreedState(), Taken("<b>gate-1:19092", NOW + 300))
    return entry.as_json()


class RecordedHistory(StubCluster):
    """The changes of a proxy with a history topic."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []
        newest = [
            change_as_json(2, ResumeEnforcement("orders")),
            change_as_json(1, SuspendEnforcement("orders", "<i>incident 7", NOW)),
        ]
        self.response: dict[str, object] = {"since_ms": NOW, "is_complete": True, "changes": newest}

    def history(self, query: str) -> HttpResponse:
        self.asked.append(query)
        return json_response(self.response)


def test_the_change_history_is_read_when_a_range_is_chosen(browser: Browser) -> None:
    cluster = RecordedHistory()
    server = start_admin_server(cluster)
    complaints: list[str] = []
    try:
        page = open_page(browser, f"http://127.0.0.1:{server.port}/#/policy", complaints, 360)
        section = page.locator("#shared-changes-section")
        expect(section).to_contain_text("not read", timeout=WAIT_MS)
        assert cluster.asked == []

        page.locator("#days").select_option("7")
        expect(page.locator("#shared-changes tbody tr")).to_have_count(2, timeout=WAIT_MS)
        assert cluster.asked == ["days=7"]
        for text in ("suspend orders", "an administrator", "10.1.2.3", "<i>incident 7", "<b>gate-1", "+0.3\u00a0s"):
            expect(page.locator("#shared-changes tbody tr").last).to_contain_text(text)
        assert [(one["id"], one["nodes"]) for one in Axe().run(page).response["violations"]] == []
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        PICTURES.mkdir(parents=True, exist_ok=True)
        section.screenshot(path=PICTURES / "shared-changes.png")

        cluster.response = {"changes": None, "problem": "no such topic", "advice": "create it"}
        page.locator("#days").select_option("1")
        expect(section).to_contain_text("The changes are not known: no such topic", timeout=WAIT_MS)
        cluster.response = {"changes": None}
        page.locator("#days").select_option("30")
        expect(section).to_contain_text("has no state.topic", timeout=WAIT_MS)
        page.context.close()
    finally:
        server.close()
    assert complaints == []
