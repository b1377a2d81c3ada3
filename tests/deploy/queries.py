"""Parses every query in the dashboard and the alert rules, and extracts its metrics and labels."""

import json
import re
from dataclasses import dataclass
from functools import cache
from typing import Any

import yaml

from tests.oracle.kafka_java import ROOT

DASHBOARD = ROOT / "deploy" / "grafana" / "sluicegate.json"
CONFIGURATION = ROOT / "deploy" / "prometheus" / "prometheus.yaml"
RULES = ROOT / "deploy" / "prometheus" / "sluicegate.rules.yaml"
RULE_TESTS = ROOT / "deploy" / "prometheus" / "sluicegate.rules.test.yaml"
JOB = "sluicegate"
_METRIC = re.compile(r"\b(?:sluicegate|kafka_server)_\w+|\bup\b")
_SELECTOR = re.compile(r"(\w+)\{([^}]*)\}")
_MATCHER = re.compile(r'(\w+)\s*(?:=~|!~|!=|=)\s*"')
_GROUPING = re.compile(r"\b(?:by|without|on)\s*\(([^)]*)\)")
_LEGEND = re.compile(r"\{\{\s*(?:\$labels\.)?(?!(?:end|else)\b)(\w+)\s*\}\}")
_RECORDED = re.compile(r"\bsluicegate:\w+:\w+")
# An alert's comparison. Without it, the query returns all existing series.
_COMPARISON = re.compile(r"\s(?:==|!=|>=|<=|>|<)\s+[\d.* ]+$")


@dataclass(frozen=True)
class Query:
    """A query: its place (`where`), its text, and the labels that its legend or description shows."""

    where: str
    text: str
    shown: frozenset[str] = frozenset()

    @property
    def metrics(self) -> set[str]:
        return set(_METRIC.findall(self.text))

    @property
    def labels(self) -> set[str]:
        """Return all labels that the query names."""
        matched = {name for _, inside in _SELECTOR.findall(self.text) for name in _MATCHER.findall(inside)}
        grouped = {name.strip() for names in _GROUPING.findall(self.text) for name in names.split(",") if name.strip()}
        return matched | grouped | self.shown

    @property
    def to_ask(self) -> list[str]:
        """Return the queries for Prometheus, with values for variables. Each part of an alert is a query without its
        comparison."""
        text = self.text.replace("$job", JOB).replace("$__rate_interval", "1m")
        if text.startswith("(") and text.endswith(") > 0"):
            return [text.removesuffix(" > 0")]
        return [_COMPARISON.sub("", part) for part in text.split(" and ")]


def queries_of_dashboard() -> list[Query]:
    panels: list[dict[str, Any]] = json.loads(DASHBOARD.read_text())["panels"]
    return [
        Query(f"dashboard: {panel['title']}", target["expr"], frozenset(_LEGEND.findall(target["legendFormat"])))
        for panel in panels
        for target in panel.get("targets", ())
    ]


@cache
def prometheus_rules() -> list[dict[str, Any]]:
    """Return the alerts and the recording rules."""
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def alert_rules() -> list[dict[str, Any]]:
    return [rule for rule in prometheus_rules() if "alert" in rule]


def recording_expressions() -> dict[str, str]:
    """Return the expression of each recording rule by the name of its metric."""
    return {rule["record"]: rule["expr"] for rule in prometheus_rules() if "record" in rule}


def _expanded(expr: str) -> str:
    """Return the expression with those of the recording rules that it uses."""
    return _RECORDED.sub(lambda found: f"({recording_expressions()[found[0]]})", expr)


def queries_of_alerts() -> list[Query]:
    return [
        Query(
            f"alert: {rule['alert']}",
            _expanded(rule["expr"]),
            frozenset(label for words in rule["annotations"].values() for label in _LEGEND.findall(words)),
        )
        for rule in alert_rules()
    ]


def queries_of_recording_rules() -> list[Query]:
    return [Query(f"rule: {name}", expr) for name, expr in recording_expressions().items()]


ALL = [*queries_of_dashboard(), *queries_of_alerts(), *queries_of_recording_rules()]
