"""A browser shows every job's report about a real topic: light, dark, wide and narrow. Screenshots are stored in
build/reports/; `make pictures` copies the screenshots for the pages about the jobs.
"""

import json
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from tests.integration.topics import create_topic
from tests.oracle.kafka_java import ROOT
from tests.pipeline.commands import run, summary
from tests.pipeline.events import ship_events
from tests.pipeline.polluted import DAY, HOUR, UNLIMITED, Polluter
from tests.pipeline.replays import quarantining_proxy
from tests.webui.browser import needs_chromium
from tests.wire.batches import LZ4, Rec, batch
from tests.wire.raw_client import RawClient, topic_data

PICTURES = ROOT / "build" / "reports"
JOBS = ("profile", "advise", "audit", "repair", "verify", "extract", "violations", "replay", "watch")
LOOKS = [(scheme, width) for scheme in ("light", "dark") for width in (1100, 360)]
GROUND = {"light": "rgb(255, 255, 255)", "dark": "rgb(18, 22, 28)"}
CROWD = 30

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.long,
]


@pytest.fixture(scope="module")
def job_outputs(kafka_bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, str]]:
    """Return each job's results folder and its output with --json."""
    folder, now = tmp_path_factory.mktemp("reports"), time.time_ns() // 1_000_000
    polluter = Polluter(kafka_bootstrap, now)
    polluter.write(60, 6 * HOUR)
    crowd = create_topic(kafka_bootstrap, UNLIMITED, 1, prefix="crowd")
    with RawClient(kafka_bootstrap.split(",", maxsplit=1)[0]) as client:
        for number in range(CROWD):
            records = [Rec(now * (1_000_000 if i % 3 else 1) + i, b"k", b"v", []) for i in range(number + 3)]
            data = batch(records, LZ4, producer_id=8000 + number, producer_epoch=0, base_sequence=0)
            client.produce(9, [topic_data(crowd, (0, data))])
        untimed = create_topic(kafka_bootstrap, UNLIMITED, 2, prefix="untimed")
        client.produce(9, [topic_data(untimed, (0, batch([Rec(now, b"k", b"v", []), Rec(-1, b"k", b"v", [])], LZ4)))])
    policies = folder / "policies.yaml"
    tried = {"message.timestamp.before.max.ms": [HOUR, DAY]}
    owner = {"team": "payments", "contact": "#payments"}
    defaults = {
        **{"message.timestamp.after.max.ms": HOUR, "rehearse": tried},
        **{"owner": owner, "enforce": {"percent": 10}},
    }
    listen = {"bootstrap": "127.0.0.1:19092"}
    policies.write_text(
        yaml.safe_dump({"upstream": {"bootstrap": [kafka_bootstrap]}, "listen": listen, "defaults": defaults})
    )
    dead = _dead_letters(kafka_bootstrap, tmp_path_factory.mktemp("quarantine"), now)
    ship_events(folder / "events", 2, 40)
    cluster, topics = ("--bootstrap", kafka_bootstrap), ("--topic", polluter.found.topic, "--topic", crowd)
    arguments: dict[str, tuple[str, ...]] = {
        "profile": (*cluster, *topics, "--policies", str(policies)),
        "advise": (*cluster, *topics, "--policies", str(policies)),
        "audit": (*cluster, *topics, "--policies", str(policies)),
        "repair": (*cluster, *topics, "--policies", str(policies)),
        "verify": (*cluster, *topics),
        "extract": (*cluster, "--topic", untimed, "--extractor", "skip"),
        "violations": ("--events", str(folder / "events")),
        "replay": (*cluster, "--topic", dead[0], "--policies", str(dead[1]), "--fix", "unit"),
        "watch": (*cluster, *topics, "--policies", str(policies), "--once"),
    }
    return {
        job: (out := folder / job, run(job, *arguments[job], "--out", str(out), "--json", status=job == "verify"))
        for job in JOBS
    }


def _dead_letters(bootstrap: str, folder: Path, now: int) -> tuple[str, Path]:
    """Write a topic of dead letters, and policies that can correct some of them."""
    kept = quarantining_proxy(bootstrap, folder, {"orders": {}})["orders"]
    kept.proxy.start()
    try:
        kept.reject(0, [Rec(now * 1_000_000, b"k", b"v", []), Rec(now + 3 * DAY, b"k", b"v", [])])
    finally:
        kept.proxy.stop()
    return kept.dead, kept.policies(folder, **{"message.timestamp.after.max.ms": HOUR})


@pytest.mark.parametrize("job", JOBS)
def test_a_script_reads_the_summary_from_standard_output(job: str, job_outputs: dict[str, tuple[Path, str]]) -> None:
    out, printed = job_outputs[job]

    found, _ = json.JSONDecoder().raw_decode(printed)

    assert found == summary(out)


@pytest.mark.parametrize("job", ["profile", "advise", "audit", "repair", "watch"])
def test_a_report_names_the_owner_of_a_topic(job: str, job_outputs: dict[str, tuple[Path, str]]) -> None:
    out, _ = job_outputs[job]

    assert {topic["owner"] for topic in summary(out)["topics"].values()} == {"payments (#payments)"}
    assert "payments (#payments)" in (out / "report.html").read_text()


@needs_chromium
@pytest.mark.parametrize("job", JOBS)
def test_a_report_starts_with_its_conclusion_and_is_accessible(
    job: str, job_outputs: dict[str, tuple[Path, str]], browser: Browser
) -> None:
    page = browser.new_page()
    page.goto((job_outputs[job][0] / "report.html").as_uri())

    assert page.locator("main > *").evaluate_all(
        "all => all.slice(0, 4).map(each => each.className || each.tagName)"
    ) == [
        "H1",
        "found",
        "to-do",
        "about",
    ]
    assert page.locator(".found").inner_text().count(".") >= 1
    for figure in page.locator("figure").all():
        assert figure.locator("svg[role=img]").get_attribute("aria-label")
        assert any(char.isdigit() for char in figure.locator("figcaption").inner_text())
    for scheme, width in LOOKS:
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": 900})
        page.screenshot(path=PICTURES / f"{job}-{scheme}-{width}.png", full_page=True)
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == GROUND[scheme]
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert accessibility_breaches(page) == [], (scheme, width)
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": 1100, "height": 760})
    page.screenshot(path=PICTURES / f"report-{job}.png")
    page.close()


def accessibility_breaches(page: Page) -> list[Any]:
    """Return axe's findings with the affected elements."""
    found = Axe().run(page).response["violations"]
    return [(each["id"], [node["html"][:200] for node in each["nodes"][:3]]) for each in found]


def test_documentation_page_of_each_job_shows_its_report() -> None:
    for job in JOBS:
        picture = ROOT / "docs" / "pictures" / f"report-{job}.png"
        assert picture.is_file()
        assert f"../pictures/{picture.name}" in (ROOT / "docs" / "pipeline" / f"{job}.md").read_text()


@needs_chromium
def test_report_shows_worst_producers_and_sum_of_the_rest(
    job_outputs: dict[str, tuple[Path, str]], browser: Browser
) -> None:
    page = browser.new_page()
    page.goto((job_outputs["profile"][0] / "report.html").as_uri())

    table = page.locator("table", has_text=f"the 12 worst of {CROWD}")

    assert table.locator("tbody tr").count() == 13
    assert table.locator("tbody tr").last.inner_text().startswith(f"{CROWD - 12} others")
    page.close()
