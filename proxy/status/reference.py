"""Generates the page about conditions.

`python -m sluicegate.proxy.status.reference > docs/conditions.md` writes the page.
"""

import sys

from sluicegate.proxy.status.condition import TYPES, ServingState

_HEAD = """\
# Conditions

A proxy is in one of three states: `serving`, `needs attention` or `not serving`. A condition explains each state other
than `serving`. The same conditions are in `/readyz`, the web UI, `sluicegate top`, `sluicegate who`, the log
(`condition began`, or an event about its cause, and `condition ended`) and the metric
`sluicegate_condition{condition,subject}`.

Readiness (`/readyz`, 503) fails only for `not serving`: clients cannot be served by this replica. It does not fail
for one broker, a quarantine, a clock, lost events, or a rejected configuration or login of the proxy's own, because all
replicas would fail at once.

*Check*: the proxy checks the cluster every 5 s, or every 2 s while it is not serving.
"""

_COLUMNS = "| condition | meaning | begins | ends | what to do |\n|---|---|---|---|---|\n"


def page() -> str:
    """Return the page."""
    parts = [_HEAD]
    for state in (ServingState.NOT_SERVING, ServingState.NEEDS_ATTENTION):
        parts.append(f"\n## {state.value.capitalize()}\n\n{_COLUMNS}")
        parts += [
            f"| `{condition.value}` | {kind.meaning} | {kind.begins} | {kind.ends} | {kind.advice} |\n"
            for condition, kind in TYPES.items()
            if kind.state is state
        ]
    return "".join(parts)


if __name__ == "__main__":
    sys.stdout.write(page())
