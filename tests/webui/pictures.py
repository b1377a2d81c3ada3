"""Writes the pictures of the web UI in docs/pictures, from a running demo in Chromium.

Run `make pictures [SECONDS=900]`. The demo's cluster and producers use random ports, but the pictures show example
addresses.
"""

import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from playwright.sync_api import Browser, sync_playwright

from tests.broker.child_processes import killed_with_parent
from tests.broker.proxy_process import COMMAND
from tests.oracle.kafka_java import ROOT
from tests.webui.browser import CHROMIUM

if TYPE_CHECKING:
    from playwright.sync_api import Page

FOLDER = ROOT / "docs" / "pictures"
_WIDTH, _MARGIN = 1180, 7
_WAIT_MS = 120_000
_WITH_EXAMPLE_ADDRESSES = """names => {
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const node = walker.currentNode;
        node.data = node.data.replace(/127\\.0\\.0\\.1:\\d{5}/g, (all) => names[all] ?? "10.0.0.7:51234");
    }
}"""


class Picture(NamedTuple):
    """A view, and the section with which the picture ends. Without the sections before it if `alone`."""

    view: str
    section: str
    scheme: Literal["light", "dark"] = "light"
    alone: bool = False


PICTURES = {
    "web-ui-light.png": Picture("#/", "worst"),
    "web-ui-client.png": Picture("#/client?id=legacy-billing", "client-example"),
    "web-ui-topic.png": Picture("#/topic?name=payments", "topic-violations"),
    "web-ui-dark.png": Picture("#/policy?topic=payments", "distance-section", "dark", alone=True),
}


def take(browser: Browser, admin: str, picture: Picture, file: Path) -> None:
    """Write one picture, which ends after a whole section."""
    page = browser.new_page(viewport={"width": _WIDTH, "height": 1000}, color_scheme=picture.scheme)
    page.goto(f"{admin}/{picture.view}", timeout=_WAIT_MS)
    section = page.locator(f"#{picture.section}")
    section.wait_for(timeout=_WAIT_MS)
    page.wait_for_timeout(12_000)  # rates over ten seconds since the page was opened
    page.evaluate(_WITH_EXAMPLE_ADDRESSES, _broker_names(page))
    if picture.alone:
        section.screenshot(path=file)
    else:
        box = section.bounding_box()
        assert box is not None, picture
        height = box["y"] + box["height"] + _MARGIN
        page.screenshot(path=file, full_page=True, clip={"x": 0, "y": 0, "width": _WIDTH, "height": height})
    page.close()


def _broker_names(page: "Page") -> dict[str, str]:
    """Return an example address for each address of the cluster, which the title of the page lists."""
    addresses = re.findall(r"127\.0\.0\.1:\d{5}", page.locator("header").inner_text())
    return {address: f"kafka-{number}:9092" for number, address in enumerate(addresses, 1)}


def take_all(folder: Path, seconds: float, bootstrap_port: int = 19092, admin_port: int = 9650) -> None:
    """Run the demo for `seconds`, and write each picture into `folder`."""
    ports = {
        "SLUICEGATE__LISTEN__BOOTSTRAP": f"127.0.0.1:{bootstrap_port}",
        "SLUICEGATE__LISTEN__BROKER_PORT_BASE": f"{bootstrap_port + 8}",
        "SLUICEGATE__ADMIN__LISTEN": f"127.0.0.1:{admin_port}",
    }
    demo = subprocess.Popen(killed_with_parent([COMMAND, "demo"]), env=os.environ | ports, stdout=subprocess.DEVNULL)
    try:
        time.sleep(seconds)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
            for name, picture in PICTURES.items():
                take(browser, f"http://127.0.0.1:{admin_port}", picture, folder / name)
            browser.close()
    finally:
        demo.terminate()
        demo.wait(60)


if __name__ == "__main__":
    take_all(FOLDER, float(sys.argv[1]))
