"""promtool accepts the alert rules, and their tests pass."""

import pytest

from tests.deploy.prometheus import NEEDS_PROMTOOL, promtool
from tests.deploy.queries import CONFIGURATION, RULE_TESTS, RULES, alert_rules, prometheus_rules, recording_expressions

pytestmark = NEEDS_PROMTOOL


def test_promtool_accepts_the_alert_rules() -> None:
    checked = promtool("check", "rules", RULES)
    assert (checked.returncode, f"{len(prometheus_rules())} rules found" in checked.stdout) == (0, True), checked


def test_promtool_accepts_the_scrape_configuration() -> None:
    checked = promtool("check", "config", CONFIGURATION)
    assert (checked.returncode, "SUCCESS" in checked.stdout) == (0, True), checked


@pytest.mark.long
def test_each_alert_fires_with_its_expected_annotations() -> None:
    tested = promtool("test", "rules", RULE_TESTS)
    assert tested.returncode == 0, tested.stdout + tested.stderr
    written = RULE_TESTS.read_text()
    untested = [rule["alert"] for rule in alert_rules() if f"alertname: {rule['alert']}\n" not in written]
    assert untested == []
    assert [
        name for name in recording_expressions() if f"expr: {name}\n" not in written and f"({name}," not in written
    ] == [
        "sluicegate:rejected_batches:rate5m",  # tested through their alerts
        "sluicegate:quarantined_batches:rate5m",
        "sluicegate:owner_batches:rate5m",  # tested through their shares
        "sluicegate:client_owner_batches:rate5m",
    ]
