"""In a real browser, the HTML report of dead letters is accessible, fits the window, and sends no requests."""

from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser

from sluicegate.proxy.cli.dead_letter_html import write_report
from tests.proxy.cli.test_dead_letter_html import HOSTILE, group
from tests.webui.browser import needs_chromium
from tests.webui.test_in_chromium import PICTURES

pytestmark = needs_chromium


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (360, "dark")])
def test_the_report_is_accessible_and_loads_nothing(browser: Browser, tmp_path: Path, width: int, scheme: str) -> None:
    groups = [group(3000, HOSTILE), group(1000, "Converting byte[] to Kafka Connect data failed")]
    write_report(tmp_path / "report.html", {"topic": "orders.dlq", "not_letters": 2, "groups": groups})
    context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 900})
    page = context.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))

    page.goto((tmp_path / "report.html").as_uri())

    assert page.locator("article").count() == 2
    assert [(one["id"], one["nodes"]) for one in Axe().run(page).response["violations"]] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.screenshot(path=PICTURES / f"letter-report-{scheme}-{width}.png", full_page=True)
    assert (asked, complaints) == ([(tmp_path / "report.html").as_uri()], [])
    context.close()
