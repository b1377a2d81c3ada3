"""The dashboard and alerts only use metrics that the proxy exports, and each alert contains a recommended action."""

import json
import re

import pytest
import yaml

from sluicegate.proxy.reporting.metrics.families import FAMILIES, ROWS
from sluicegate.proxy.reporting.metrics.family import Kind
from sluicegate.proxy.status.condition import Condition
from tests.deploy.queries import ALL, CONFIGURATION, DASHBOARD, JOB, RULES, Query, alert_rules
from tests.oracle.kafka_java import ROOT

_BY_SERIES = {name: family for family in FAMILIES for name in family.series_names}
# Labels that Prometheus adds to every series.
_OF_A_TARGET = {"job", "instance", "cluster"}
_RUNBOOK = (ROOT / "docs" / "runbook.md").read_text()
# All alerts use this URL, so that the chart's runbookUrl or sed can replace it.
_RUNBOOK_URL = "https://github.com/OWNER/REPO/blob/main/docs/runbook.md"
# Conditions whose alerts use another metric: a counter, which also shows events between two scrapes, or a remaining
# time. None means that an operator caused the condition.
_WITHOUT_A_SELECTOR = {
    "certificate_expires_soon": "SluicegateCertificateExpires",
    "draining": None,
    "proxy_login_rejected": "SluicegateUpstreamLoginRejected",
    "worker_restarted": "SluicegateWorkerRestarts",
}
_ANCHORS = {heading.lower() for heading in re.findall(r"^## (\w+)$", _RUNBOOK, re.MULTILINE)}


def query_location(query: Query) -> str:
    return query.where


@pytest.mark.parametrize("query", ALL, ids=query_location)
def test_every_metric_and_label_is_declared(query: Query) -> None:
    recorded = [each for each in ALL if each.where.removeprefix("rule: ") in query.text and each is not query]
    assert query.metrics or "__name__" in query.text or recorded
    assert query.metrics - set(_BY_SERIES) <= {"up"}
    families = [_BY_SERIES[name] for name in query.metrics if name in _BY_SERIES]
    known = _OF_A_TARGET | {"__name__"} | {label for family in families for label in family.labels}
    known = known.union(*(each.labels for each in recorded))
    if any(family.kind is Kind.HISTOGRAM for family in families):
        known |= {"le"}
    assert query.labels - known == set()


@pytest.mark.parametrize("query", ALL, ids=query_location)
def test_queries_apply_rate_to_counters_and_not_to_gauges(query: Query) -> None:
    for name in query.metrics & set(_BY_SERIES):
        is_rated = re.search(rf"(?:rate|increase)\({name}\b", query.text) is not None
        assert is_rated == (_BY_SERIES[name].kind is not Kind.GAUGE), name


@pytest.mark.parametrize("rule", alert_rules(), ids=lambda rule: rule["alert"])
def test_an_alert_has_a_summary_a_description_and_a_runbook_link(rule: dict[str, dict[str, str]]) -> None:
    words = rule["annotations"]

    assert rule["labels"]["severity"] in ("critical", "warning")
    assert set(words) == {"summary", "description", "runbook_url"}
    assert words["summary"].endswith(".")
    assert words["description"].endswith(".")
    page, _, anchor = words["runbook_url"].partition("#")
    assert (page, anchor in _ANCHORS) == (_RUNBOOK_URL, True)


def test_every_condition_has_an_alert_or_a_reason_to_have_none() -> None:
    selectors = [re.findall(r'condition=~?"([^"]*)"', rule["expr"]) for rule in alert_rules()]
    alerted = {name for found in selectors for names in found for name in names.split("|")}
    names = {condition.value for condition in Condition}

    assert alerted - names == set()
    assert names - alerted == set(_WITHOUT_A_SELECTOR)
    others = {rule["alert"] for rule in alert_rules()}
    assert {alert for alert in _WITHOUT_A_SELECTOR.values() if alert is not None} <= others


def test_the_example_scrapes_the_readmes_admin_address_as_the_job_of_the_queries() -> None:
    written = yaml.safe_load(CONFIGURATION.read_text())
    served = yaml.safe_load((ROOT / "sluicegate.yaml").read_text())

    (job,) = written["scrape_configs"]
    assert (job["job_name"], job["static_configs"]) == (JOB, [{"targets": [served["admin"]["listen"]]}])
    assert written["rule_files"] == [RULES.name]


def test_the_runbook_has_no_section_without_an_alert() -> None:
    assert {rule["alert"].lower() for rule in alert_rules()} == _ANCHORS


def test_the_dashboard_covers_every_section_of_the_metrics_page() -> None:
    named = {name for query in ALL if query.where.startswith("dashboard") for name in query.metrics}
    for title, _, families in ROWS:
        assert any(set(family.series_names) & named for family in families), title


def test_dashboard_panels_do_not_overlap_and_have_unique_ids() -> None:
    panels = json.loads(DASHBOARD.read_text())["panels"]
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not taken & cells, panel["title"]
        assert max(x for x, _ in cells) < 24
        taken |= cells
    assert len({panel["id"] for panel in panels}) == len(panels)
