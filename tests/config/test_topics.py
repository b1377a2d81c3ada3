"""Quarantine settings and their combinations are validated."""

import pytest

from sluicegate.validation.from_keys import rulebook_of
from sluicegate.validation.policy import TimeFix
from sluicegate.validation.rules.rule import Mode
from tests.config.reading import SMALLEST, load_text, problems_of_text


def configuration_with_topics(*entries: str, more: str = "") -> str:
    return SMALLEST + more + "topics:\n" + "".join(f"  - {{{entry}}}\n" for entry in entries)


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        (["match: a, quarantine: a"], "topics[0].quarantine: a is quarantined itself, by topics[0] (a)"),
        (["match: 'a.*', quarantine: a.dead"], "put an entry for a.dead before that one, without quarantine"),
        (["match: a, quarantine: b", "match: /b|c/, quarantine: d"], "b is quarantined itself, by topics[1] (/b|c/)"),
        (["match: a, quarantine: a b"], "not a valid topic name"),
        (["match: a, quarantine: b, fix: {timestamp: now}"], "quarantine and fix cannot be combined"),
        (["match: a, quarantine: b, mode: mark"], "mode: mark and quarantine cannot be combined"),
        (["match: a, mode: mark, fix: {timestamp: now}"], "mode: mark and fix cannot be combined"),
        (["match: a, quarantine: b, checks: none"], "quarantine and checks: none cannot be combined"),
    ],
)
def test_rejects_contradictory_quarantine_settings(entries: list[str], words: str) -> None:
    (problem,) = problems_of_text(configuration_with_topics(*entries))

    assert words in problem


@pytest.mark.parametrize(
    ("entry", "more", "words"),
    [
        ("quarantine: b", "violations: {topic: b}", "topics[0].quarantine: b is violations.topic too"),
        ("quarantine: s", "state: {topic: s}", "topics[0].quarantine: s is state.topic too"),
        ("quarantine: s-history", "state: {topic: s}", "s-history is state.history_topic too"),
        ("quarantine: p", "state: {topic: s, presence_topic: p}", "p is state.presence_topic too"),
        ("mode: reject", "state: {topic: s, history_topic: s}", "state.history_topic: s is state.topic too"),
        ("mode: reject", "state: {topic: s, presence_topic: s-history}", "s-history is state.history_topic too"),
        ("mode: reject", "state: {topic: s}\nviolations: {topic: s}", "violations.topic: s is state.topic too"),
    ],
)
def test_rejects_topic_that_the_proxy_would_write_for_two_purposes(entry: str, more: str, words: str) -> None:
    (problem,) = problems_of_text(configuration_with_topics(f"match: a, {entry}", more=f"{more}\n"))

    assert words in problem


def test_an_earlier_entry_excludes_the_dead_letter_topic_from_quarantine() -> None:
    rules = rulebook_of(
        load_text(configuration_with_topics("match: a.dead", "match: 'a.*', quarantine: a.dead", "match: a")).config
    )

    assert (rules.policy_of("a.b").mode, rules.policy_of("a.b").dead_letters) == (Mode.QUARANTINE, "a.dead")
    assert (rules.policy_of("a.dead").mode, rules.policy_of("a").mode) == (Mode.REJECT, Mode.REJECT)


def test_the_mode_of_an_entry_overrides_the_defaults() -> None:
    text = configuration_with_topics(
        "match: a, quarantine: b", more="defaults: {mode: observe, fix: {timestamp: now}}\n"
    )
    rules = rulebook_of(load_text(text).config)

    assert (rules.policy_of("a").mode, rules.policy_of("a").fix) == (Mode.QUARANTINE, None)
    assert (rules.policy_of("b").mode, rules.policy_of("b").fix) == (Mode.OBSERVE, TimeFix.NOW)


def test_observing_entry_with_quarantine_quarantines_if_the_floor_rejects() -> None:
    entry, floor = "match: a, quarantine: b, mode: observe", "floor: [{match: a, mode: MODE, max.message.bytes: 9}]\n"
    alone, observing, rejecting = (
        rulebook_of(load_text(configuration_with_topics(entry, more=more)).config).policy_of("a")
        for more in ("", floor.replace("MODE", "observe"), floor.replace("MODE", "reject"))
    )

    assert [(each.mode, each.dead_letters) for each in (alone, observing, rejecting)] == [
        (Mode.OBSERVE, "b"),
        (Mode.OBSERVE, "b"),
        (Mode.QUARANTINE, "b"),
    ]
    assert (alone.observing().dead_letters, alone.observing().mode) == (None, Mode.OBSERVE)


def test_workers_share_the_quarantine_memory_equally() -> None:
    config = load_text(configuration_with_topics("match: a, quarantine: b", more="workers: 4\n")).config

    share = config.of_one_worker(config.listen.bootstrap).limits.max_quarantined_bytes
    assert share == config.limits.max_quarantined_bytes // 4
