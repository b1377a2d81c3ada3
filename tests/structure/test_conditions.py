"""Each condition is caused at a running proxy by some test, which looks at every view of it."""

import ast
from collections.abc import Iterator

from sluicegate.proxy.status.condition import Condition
from tests.oracle.kafka_java import ROOT

ELSEWHERE = {
    Condition.STARTING: "it is over before a view could be opened",
    Condition.DRAINING: "the admin port closes with it: tests/webui/test_live_proxy.py",
    Condition.EVENT_LOOP_STUCK: "no view responds but /livez and /readyz: tests/integration/test_conditions.py",
}


def _caused() -> Iterator[str]:
    """Yield the names of conditions in files whose tests wait for them with `wait_until_begun`."""
    for file in sorted((ROOT / "tests" / "integration").glob("test_*.py")):
        tree = ast.parse(file.read_text())
        if any(isinstance(node, ast.Name) and node.id == "wait_until_begun" for node in ast.walk(tree)):
            yield from (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and _is_name(node))


def _is_name(node: ast.Constant) -> bool:
    return node.value in {condition.value for condition in Condition}


def test_each_condition_is_seen_in_every_view() -> None:
    caused = set(_caused())

    missing = [each.value for each in Condition if each not in ELSEWHERE and each.value not in caused]
    assert missing == [], "cause each in a test of tests/integration, and wait for it with wait_until_begun"
