"""A team's file may contain `exempt` and `quotas` only if its scope allows them, and only for topics of the scope."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sluicegate.config.loading import ConfigError, Loaded, load_file
from sluicegate.validation.from_keys import rulebook_of
from sluicegate.validation.rules.rule import Client
from tests.config.reading import SMALLEST

ALLOWED = "topic_files: [{path: pay.yaml, topics: ['payments.*', ledger], allow: [exempt, quotas]}]\n"
MIRROR = Client("a:1", "mirror")


def load_texts(folder: Path, text: str, **files: str) -> Loaded:
    """Write and load a configuration. `files`: the content of further files by name without suffix."""
    for stem, content in {"sluicegate": SMALLEST + text, **files}.items():
        (folder / f"{stem}.yaml").write_text(content)
    return load_file(folder / "sluicegate.yaml", {})


def problems_of_texts(folder: Path, text: str, **files: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load_texts(folder, text, **files)
    return [str(problem).replace(str(folder), "F") for problem in caught.value.problems]


def test_delegated_exemptions_and_quotas_apply_only_to_topics_in_scope(tmp_path: Path) -> None:
    loaded = load_texts(
        tmp_path,
        ALLOWED + "exempt: [{client_id: ops}]\nquotas: [{name: q, topic: audit, bytes_per_second: 5}]\n",
        pay="exempt:\n  - {client_id: mirror, topics: payments.eu*}\n  - {client_id: etl, topics: [ledger]}\n"
        "quotas: [{name: pay, topic: payments.*, requests_per_second: 5}]\n",
    )
    rulebook = rulebook_of(loaded.config, source=loaded.source)

    assert not loaded.warnings
    exempt = {
        topic: not rulebook.policy_of(topic).for_client(MIRROR).checked for topic in ("payments.eu", "ledger", "orders")
    }
    assert exempt == {"payments.eu": True, "ledger": False, "orders": False}
    assert not rulebook.exempts(MIRROR)
    assert rulebook.exempts(Client("a:1", "ops"))
    quotas = {topic: rulebook.policy_of(topic).quota for topic in ("payments.eu", "ledger", "audit")}
    assert {topic: quota and quota.name for topic, quota in quotas.items()} == {
        "payments.eu": "pay",
        "ledger": None,
        "audit": "q",
    }
    places = [(loaded.source.place_of((key, 1)), loaded.source.key_of((key, 1))) for key in ("exempt", "quotas")]
    assert places == [(f"{tmp_path}/pay.yaml:2", "exempt[0]"), (f"{tmp_path}/pay.yaml:4", "quotas[0]")]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (
            "exempt: [{client_id: a, topics: [ledger, orders]}]",
            "exempt[0].topics[1]: orders is not limited to the scope of this file, payments.*, ledger "
            "(F/sluicegate.yaml:3"
            '); write topics: "payments.*", or a part of it',
        ),
        ("exempt: [{client_id: a, topics: '*'}]", "exempt[0].topics: * is not limited to the scope of this file, "),
        (
            "exempt: [{client_id: a}]",
            "exempt[0]: an exemption in a file of topic_files needs topics: the patterns of the topics that it is for",
        ),
        ("exempt: [{client_id: a, topics: }]", "exempt[0]: an exemption in a file of topic_files needs topics"),
        ("exempt: [{client_id: a, topics: []}]", "exempt[0].topics: expected at least one"),
        ("exempt: [{topics: ledger}]", "exempt[0]: expected a client"),
        ("exempt: {client_id: a}", "exempt: expected a list"),
        (f"exempt: [{', '.join(['{client_id: a, topics: ledger}'] * 101)}]", "exempt: expected at most 100 items"),
        (
            "quotas: [{name: q, topic: '*', bytes_per_second: 1}]",
            "quotas[0].topic: * is not limited to the scope of this file, payments.*, ledger (F/sluicegate.yaml:3)",
        ),
        (
            "quotas: [{name: q, principal: 'User:*', connections: 1}]",
            "quotas[0]: a quota in a file of topic_files needs topic: quotas of clients count for all their topics",
        ),
        (
            "quotas: [{name: own, topic: ledger, bytes_per_second: 1}]",
            "quotas[0].name: two quotas are named own; names must be unique",
        ),
        ("requests: []", "requests: only topics and owner are allowed in a file of topic_files; move other keys to "),
    ],
)
def test_rejects_delegated_entry_outside_its_scope_with_file_and_line(
    tmp_path: Path, content: str, problem: str
) -> None:
    own = "quotas: [{name: own, client_id: a, connections: 1}]\n"

    found = problems_of_texts(tmp_path, ALLOWED + own, pay=content)

    assert any(each.startswith(f"F/pay.yaml:1: {problem}") for each in found), found


@pytest.mark.parametrize(
    ("items", "problem"),
    [
        (
            "[{path: pay.yaml, topics: ledger, allow: [quotas]}]",
            "F/pay.yaml:1: exempt: topic_files[0] (F/sluicegate.yaml:3) does not allow this key: add allow: [exempt] "
            "there, "
            "or move it to F/sluicegate.yaml",
        ),
        ("pay.yaml", "F/pay.yaml:1: exempt: topic_files (F/sluicegate.yaml:3) does not allow this key: add allow"),
        (
            "[{path: pay.yaml, topics: ledger, allow: [exempt]}, pay.yaml]",
            "F/pay.yaml:1: exempt: topic_files[1] (F/sluicegate.yaml:3) does not allow this key: add allow",
        ),
        (
            "[{path: pay.yaml, allow: [exempt]}]",
            "F/sluicegate.yaml:3: topic_files[0]: allow needs topics, the scope that exemptions and quotas",
        ),
        (
            "[{path: pay.yaml, topics: ledger, allow: [requests]}]",
            "F/sluicegate.yaml:3: topic_files[0].allow[0]: expected 'exempt' or 'quotas'",
        ),
    ],
)
def test_rejects_exempt_list_in_a_topic_file_that_is_not_allowed_to_have_one(
    tmp_path: Path, items: str, problem: str
) -> None:
    found = problems_of_texts(tmp_path, f"topic_files: {items}\n", pay="exempt: [{client_id: a, topics: ledger}]")

    assert any(each.startswith(problem) for each in found), found


def test_warns_of_team_quota_that_an_operator_quota_overrides(tmp_path: Path) -> None:
    own = "quotas: [{name: all, topic: '*', bytes_per_second: 9}]\n"

    (warning,) = load_texts(
        tmp_path, ALLOWED + own, pay="quotas: [{name: pay, topic: ledger, bytes_per_second: 1}]"
    ).warnings

    assert warning.replace(str(tmp_path), "F") == (
        "F/pay.yaml:1: quotas[0] pay never applies: quotas[0] (*, F/sluicegate.yaml:4) matches the same topics, and "
        "the first quota applies"
    )


PATTERNS = st.text("ab*?.", min_size=1, max_size=5) | st.sampled_from(["/a.*/", r"/a\..*/", "/b|a.x/", "[ab].x"])
NAMES = st.text("abx.", min_size=1, max_size=6).filter(lambda name: name.strip("."))


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(patterns=st.lists(PATTERNS, min_size=1, max_size=3), names=st.lists(NAMES, min_size=1, max_size=8))
def test_team_exemptions_and_quotas_never_match_topics_outside_their_scope(
    tmp_path: Path, patterns: list[str], names: list[str]
) -> None:
    """For any patterns, either loading fails, or the exemptions and quotas match only topics of the scope."""
    listed = ", ".join(f"'{pattern}'" for pattern in patterns)
    quotas = ", ".join(f"{{name: q{i}, topic: '{each}', bytes_per_second: 1}}" for i, each in enumerate(patterns))
    scope = "topic_files: [{path: team.yaml, topics: [a.*, bb], allow: [exempt, quotas]}]\n"
    try:
        loaded = load_texts(
            tmp_path, scope, team=f"exempt: [{{client_id: m, topics: [{listed}]}}]\nquotas: [{quotas}]\n"
        )
    except ConfigError:
        return
    rulebook = rulebook_of(loaded.config)

    for name in [name for name in names if name != "bb" and not name.startswith("a.")]:
        policy = rulebook.policy_of(name)
        assert policy.for_client(Client("a:1", "m")) is policy
        assert policy.quota is None
