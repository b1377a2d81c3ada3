"""The metrics of all proxies with the same presence topic. A scrape of any of these proxies shows all of them."""

from collections.abc import Callable, Iterator

from prometheus_client.core import Metric

from sluicegate.proxy.reporting.bounded_text import cut
from sluicegate.proxy.reporting.metrics.collection import family_with_values
from sluicegate.proxy.reporting.metrics.families.presence import (
    AGE,
    CLOCK,
    CONNECTIONS,
    COUNTERS,
    FINDINGS,
    INFO,
    PROXIES,
    READABLE,
    SERVING,
)
from sluicegate.proxy.state.fleet_view import FleetMember, FleetView
from sluicegate.proxy.state.topic_description import TopicUnavailable
from sluicegate.proxy.status.condition import ServingState

MOST_PROXIES = 1000
"""If there are more proxies than this, only the sums are shown, because each proxy has up to ten series."""
_LABEL_CHARACTERS = 255


def presence_metrics(read_view: Callable[[], FleetView]) -> Iterator[Metric]:
    """Yield the metrics. Blocks for up to a few seconds."""
    try:
        view = read_view()
    except TopicUnavailable:
        yield family_with_values(READABLE, 0.0)
        return
    yield family_with_values(READABLE, 1.0)
    states: dict[str, float] = {}
    for each in view.members:
        state = "stale" if view.is_stale(each) else each.presence.state
        known = state if state in PROXIES.always else ServingState.NOT_SERVING.value
        states[known] = states.get(known, 0) + 1
    yield family_with_values(PROXIES, states)
    codes = [each.code.value for each in view.findings]
    yield family_with_values(FINDINGS, {code: float(codes.count(code)) for code in codes})
    yield from _of_each(view)


def _of_each(view: FleetView) -> Iterator[Metric]:
    # If two processes have one name, the newest announcement counts. The finding `name_used_twice` names them.
    of: dict[str, FleetMember] = {}
    for each in sorted(view.members, key=lambda member: member.last_ms):
        of[str(cut(each.presence.name, _LABEL_CHARACTERS))] = each
    of = dict(sorted(of.items())[:MOST_PROXIES])
    yield family_with_values(AGE, {name: max(0, view.now_ms - each.last_ms) / 1000 for name, each in of.items()})
    yield family_with_values(SERVING, {name: float(_serves(view, each)) for name, each in of.items()})
    clocks = {name: each.clock_off_ms / 1000 for name, each in of.items() if each.clock_off_ms is not None}
    yield family_with_values(CLOCK, clocks)
    short = {name: (each.presence.version, each.presence.policies) for name, each in of.items()}
    yield family_with_values(
        INFO, {(name, *(str(cut(text, 50)) for text in texts)): 1.0 for name, texts in short.items()}
    )
    connections = {name: each.presence.counters.get("connections", 0) for name, each in of.items()}
    yield family_with_values(CONNECTIONS, connections)
    for counted, family in COUNTERS.items():
        yield family_with_values(family, {name: each.presence.counters.get(counted, 0) for name, each in of.items()})


def _serves(view: FleetView, member: FleetMember) -> bool:
    return not view.is_stale(member) and member.presence.state in (
        ServingState.SERVING.value,
        ServingState.NEEDS_ATTENTION.value,
    )
