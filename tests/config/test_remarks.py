"""Valid configurations can cause warnings and hints."""

import re
from fnmatch import translate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.config.values.glob_cover import covers, probably_intended_glob
from tests.config.reading import SMALLEST, load_text, problems_of_text


def configuration_matching(*matches: str) -> str:
    return SMALLEST + "topics:\n" + "".join(f"  - match: '{match}'\n" for match in matches)


@pytest.mark.parametrize(
    ("matches", "line", "first"),
    [
        (("*", "a", "b*"), 5, "topics[0] (*, c.yaml:4)"),
        (("/.*/", "/a+/"), 5, "topics[0] (/.*/, c.yaml:4)"),
        (("a", "b", "a"), 6, "topics[0] (a, c.yaml:4)"),
        (("orders*", "orders-eu*"), 5, "topics[0] (orders*, c.yaml:4)"),
        (("t?", "t1"), 5, "topics[0] (t?, c.yaml:4)"),
    ],
)
def test_a_pattern_that_never_decides_is_reported(matches: tuple[str, ...], line: int, first: str) -> None:
    warning = load_text(configuration_matching(*matches)).warnings[0]

    assert warning.startswith(f"c.yaml:{line}: topics[{line - 4}].match {matches[line - 4]} never decides: {first}")


@pytest.mark.parametrize(
    "matches", [("a", "b"), ("orders-eu*", "orders*"), ("/a.*/", "/ab/"), ("t?", "t*"), ("a*", "*")]
)
def test_patterns_that_decide_some_topic_are_not_reported(matches: tuple[str, ...]) -> None:
    assert load_text(configuration_matching(*matches)).warnings == ()


GLOBS = st.text("ab*?", min_size=1, max_size=5)


@given(GLOBS, GLOBS, st.lists(st.text("ab", max_size=6), min_size=5, max_size=30))
def test_a_covered_pattern_matches_no_other_name(first: str, later: str, names: list[str]) -> None:
    if covers(first, later):
        matched = [name for name in names if re.fullmatch(translate(later), name)]
        assert all(re.fullmatch(translate(first), name) for name in matched)


def test_a_long_glob_is_compared_within_bounded_work() -> None:
    assert covers("a*" * 4000 + "*", "a" * 8000) is False  # too long a value for a warning
    assert covers("a*" * 140, "a" * 280) is True


def test_many_topics_are_compared_in_time() -> None:
    matches = [f"t{i}-*" for i in range(2000)] + [f"exact-{i}" for i in range(2000)]

    assert load_text(configuration_matching(*matches)).warnings == ()


def test_a_glob_with_a_literal_dot_before_a_wildcard_is_a_hint() -> None:
    found = load_text(configuration_matching("compacted.*", "a.b.*", "x*", "/y.*/"))

    assert found.warnings == ()
    (hint,) = found.hints
    assert hint.startswith("c.yaml:4: topics[0].match compacted.* is a glob, in which a dot is a literal dot")
    assert probably_intended_glob("compacted.*") == "compacted*"


@pytest.mark.parametrize(
    ("admin", "said"),
    [("9092", "is also the port of listen.bootstrap"), ("9095", "is the port that broker 2 would get")],
)
def test_two_listeners_with_one_port_are_reported(admin: str, said: str) -> None:
    text = (
        f"upstream: {{bootstrap: h:1}}\nlisten: {{bootstrap: '127.0.0.1:9092'}}\nadmin: {{listen: '0.0.0.0:{admin}'}}"
    )

    (warning,) = load_text(text).warnings
    assert said in warning


@pytest.mark.parametrize(("broker", "count"), [("127.0.0.1:9092", 1), ("127.0.0.1:9093", 0), ("h:9092", 0)])
def test_a_broker_that_is_the_proxy_itself_is_reported(broker: str, count: int) -> None:
    text = f"upstream: {{bootstrap: ['h:1', '{broker}']}}\nlisten: {{bootstrap: '127.0.0.1:9092'}}\n"

    assert [words.partition(": ")[2] for words in load_text(text).warnings] == [
        "upstream.bootstrap[1] is listen.bootstrap, this proxy itself: name a broker"
    ] * count


def test_rules_that_are_never_evaluated_are_reported() -> None:
    rules = "rules: [{name: keyed, key: {required: true}}]"
    found = load_text(f"{SMALLEST}topics:\n  - {{match: a, checks: none, {rules}}}\n  - {{match: b, {rules}}}\n")

    assert [words.partition(": ")[2] for words in found.warnings] == [
        "topics[0].rules are never evaluated: checks: none forwards all batches unvalidated"
    ]


def test_samples_without_an_event_sink_are_reported() -> None:
    found = load_text(f"{SMALLEST}topics:\n  - {{match: a, samples: true}}\n  - {{match: b, samples: false}}\n")
    with_file = load_text(f"{SMALLEST}defaults: {{samples: true}}\nviolations: {{file: v.jsonl}}\n")

    assert [words.partition(": ")[2] for words in found.warnings] == [
        "topics[0].samples affects only `sluicegate dead-letters`: without violations.file and violations.topic, no "
        "event has samples"
    ]
    assert not with_file.warnings


NAMED = {
    "exempt": "exempt: [{principal: 'User:mirror'}]",
    "exempt by expression": "exempt: [{principal: '/User:.*/'}]",
    "requests": "requests: [{name: r, match: {principal: 'User:a*'}, idempotent: true}]",
    "quotas": "quotas: [{name: q, principal: '*', bytes_per_second: 1MiB}]",
    "cel": "defaults: {rules: [{name: c, cel: \"client.principal == 'User:a' || size(value) > 1\"}]}",
}
UNNAMED = {
    "client ids": "exempt: [{client_id: mirror}]",
    "certificates": "exempt: [{principal: 'User:CN=mirror,*'}]",
    "every principal": "requests: [{name: r, match: {principal: 'User:*'}, idempotent: true}]",
}


@pytest.mark.parametrize("policy", NAMED.values(), ids=NAMED)
def test_a_policy_with_principals_and_no_declaration_is_a_warning(policy: str) -> None:
    (warning,) = load_text(SMALLEST + policy).warnings

    assert warning.startswith("c.yaml:3: ")
    assert "listen does not declare how the brokers derive principals from logins" in warning


@pytest.mark.parametrize("policy", UNNAMED.values(), ids=UNNAMED)
def test_a_policy_without_principals_needs_no_declaration(policy: str) -> None:
    assert load_text(SMALLEST + policy).warnings == ()


@pytest.mark.parametrize(
    "key", ["sasl.oauthbearer.sub.claim.name: azp", "oauth.username.claim: sub", "user_name_is_principal: [PLAIN]"]
)
@pytest.mark.parametrize("policy", NAMED.values(), ids=NAMED)
def test_a_policy_with_principals_and_a_declaration_has_no_warning(policy: str, key: str) -> None:
    declared = SMALLEST.replace("listen: {", f"listen: {{{key}, ") + policy

    assert load_text(declared).warnings == ()


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        (
            "defaults: {mode: observe, fix: {timestamp: now}}",
            [("defaults.fix", "defaults, or in the entries of topics that need it")],
        ),
        ("defaults: {mode: observe}\ntopics: [{match: a, fix: {timestamp: now}}]", [("topics[0].fix", "topics[0]")]),
        ("topics: [{match: a, mode: observe, enforce: {percent: 10}}]", [("topics[0].enforce", "topics[0]")]),
        ("defaults: {mode: observe, fix: {timestamp: now}}\ntopics: [{match: a, mode: reject}]", []),
        ("defaults: {mode: observe}\ntopics: [{match: a, mode: reject, fix: {timestamp: now}}]", []),
    ],
)
def test_a_fix_or_enforcement_in_observe_mode_is_never_applied(text: str, keys: list[tuple[str, str]]) -> None:
    warnings = [words.partition(": ")[2] for words in load_text(SMALLEST + text).warnings]

    without_effect = "is never applied: mode: observe forwards batches unchanged. Write mode: reject in"
    assert warnings == [f"{key} {without_effect} {section}" for key, section in keys]


@pytest.mark.parametrize("pattern", ["mm", "mirror-*", "CN=mirror", "user:mm"])
def test_a_principal_without_its_type_matches_no_client(pattern: str) -> None:
    (warning,) = load_text(SMALLEST + f"exempt: [{{principal: '{pattern}'}}]").warnings

    assert "matches no client" in warning
    assert warning.endswith(f'write principal: "User:{pattern}"')


@pytest.mark.parametrize("pattern", ["*", "U*", "*mm", "?ser:mm", "/.*mm/", "User:CN=mm"])
def test_a_principal_that_can_match_is_not_reported(pattern: str) -> None:
    assert not [
        words
        for words in load_text(SMALLEST + f"exempt: [{{principal: '{pattern}'}}]").warnings
        if "matches no client" in words
    ]


@pytest.mark.parametrize(
    ("bound", "words"),
    [
        ("3600", "is 3.6 s, because the unit is milliseconds; for 3600 seconds write 1h or 3600000"),
        ("86400", "is 86.4 s, because the unit is milliseconds; for 86400 seconds write 1d or 86400000"),
        ("'604800'", "is 604.8 s, because the unit is milliseconds; for 604800 seconds write 7d or 604800000"),
        ("5400", "is 5.4 s, because the unit is milliseconds; for 5400 seconds write 90min or 5400000"),
    ],
)
@pytest.mark.parametrize("key", ["before", "after"])
def test_a_bound_that_was_written_in_seconds_is_reported(key: str, bound: str, words: str) -> None:
    name = f"message.timestamp.{key}.max.ms"
    sections = {
        f"defaults: {{{name}: {bound}}}": f"defaults.{name}",
        f"topics: [{{match: t, {name}: {bound}}}]": f"topics[0].{name}",
        f"floor: [{{match: t, {name}: {bound}}}]": f"floor[0].{name}",
        f"topics: [{{match: t, rehearse: {{{name}: [1h, {bound}]}}}}]": f"topics[0].rehearse.{name}",
    }

    assert {text: load_text(SMALLEST + text).warnings for text in sections} == {
        text: (f"c.yaml:3: {place} {words}",) for text, place in sections.items()
    }


@pytest.mark.parametrize(
    "bound", ["3600ms", "3600s", "1500", "30000", "60000", "3600000", "86400000", "0", "5", "3601"]
)
def test_a_bound_with_a_unit_or_in_milliseconds_is_not_reported(bound: str) -> None:
    assert load_text(SMALLEST + f"topics: [{{match: t, message.timestamp.after.max.ms: {bound}}}]").warnings == ()


@pytest.mark.parametrize(("base", "broker"), [(9292, 0), (9290, 2), (9200, 92)])
def test_the_lowest_broker_that_would_get_the_bootstrap_port_is_reported(base: int, broker: int) -> None:
    text = f"upstream: {{bootstrap: ['h:1']}}\nlisten: {{bootstrap: '127.0.0.1:9292', broker_port_base: {base}}}\n"

    assert load_text(text).warnings == (
        f"c.yaml:2: listen.bootstrap is the port that broker {broker} would get (listen.broker_port_base): clients "
        "cannot reach it",
    )


@pytest.mark.parametrize("base", [", broker_port_base: 65535", None])
def test_ports_that_leave_none_for_a_second_broker_are_an_error(base: str | None) -> None:
    port, key = (9292, "broker_port_base") if base else (65535, "bootstrap")
    text = f"upstream: {{bootstrap: ['h:1']}}\nlisten: {{bootstrap: '127.0.0.1:{port}'{base or ''}}}\n"

    (problem,) = problems_of_text(text)

    assert f"listen.{key} is too high: broker 1 would need 6553" in problem
    mapped = text[:-2] + ", broker_port_map: {0: 9300, 1: 9301}}\n"
    assert load_text(mapped).warnings == ()
