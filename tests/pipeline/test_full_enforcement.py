"""`advise` reports the effect of full enforcement for topics on which a configuration is only partly enforced."""

import pytest

from sluicegate.pipeline.jobs.advise.full_enforcement import FullEnforcement, enforcement_sentence, full_enforcement
from sluicegate.pipeline.jobs.audit.policies import policies_of
from sluicegate.protocol.integers import LONG_MAX
from sluicegate.validation.cluster_settings import ClusterSettings
from sluicegate.validation.policy import TimestampType
from tests.config.reading import SMALLEST, load_text
from tests.pipeline.test_advice import HOUR, bound_counts

BOUNDS = bound_counts("orders", "ahead", {100: 90, 90 * 60_000: 6, 3 * HOUR: 4}, 0, 100) + bound_counts(
    "orders", "behind", {100: 100}, 0, 100
)
"""90 records are on time, 6 records are 90 minutes ahead, and 4 records are three hours ahead."""


def full_enforcement_of_text(text: str, settings: ClusterSettings | None = None) -> list[FullEnforcement]:
    known = {} if settings is None else {"orders": settings}
    return list(full_enforcement(policies_of(load_text(SMALLEST + text).config, known), BOUNDS))


@pytest.mark.parametrize(
    ("bound", "least", "most"),
    [("1h", 10, 10), ("100m", 4, 10), ("2h", 4, 4), ("3650d", 0, 0), ("20000d", 0, 0), ("50", 10, 100)],
)
@pytest.mark.parametrize("keys", ["enforce: {percent: 10}", "enforce: {clients: [a]}", "mode: observe"])
def test_an_estimate_is_between_the_figures_of_the_neighbouring_bounds(
    keys: str, bound: str, least: int, most: int
) -> None:
    (effect,) = full_enforcement_of_text(
        f"topics: [{{match: orders, {keys}, message.timestamp.after.max.ms: {bound}}}]"
    )

    assert (effect.rejected_at_least, effect.rejected_at_most, effect.records) == (least, most, 100)


def test_the_enforcement_sentence_has_the_enforced_clients_and_the_figures() -> None:
    effects = full_enforcement_of_text("defaults: {message.timestamp.after.max.ms: 1h, enforce: {clients: [a, b*]}}")

    assert [(each.enforced_for, each.before_max_ms, each.after_max_ms) for each in effects] == [
        ("clients a, b*", LONG_MAX, HOUR)
    ]
    assert enforcement_sentence(effects).startswith(
        "Enforced for all clients, the configured bounds for timestamps would have rejected 10 of 100 records on "
        "orders;"
    )


@pytest.mark.parametrize(
    "text",
    [
        "defaults: {message.timestamp.after.max.ms: 1h}",
        "defaults: {mode: observe, checks: none}",
        "floor: [{match: '*', mode: reject}]\ndefaults: {mode: observe, message.timestamp.after.max.ms: 1h}",
    ],
)
def test_topics_that_are_enforced_for_all_clients_or_not_validated_are_left_out(text: str) -> None:
    assert full_enforcement_of_text(text) == []
    assert enforcement_sentence([]) == ""


def test_full_enforcement_figures_include_the_clusters_settings() -> None:
    tighter = ClusterSettings(after_max_ms=HOUR)
    stamped = ClusterSettings(TimestampType.LOG_APPEND_TIME)

    figures = [
        full_enforcement_of_text("defaults: {mode: observe}", each)[0].rejected_at_most for each in (tighter, stamped)
    ]

    assert figures == [10, 0]
