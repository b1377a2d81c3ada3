"""The results of `doctor` contain the owners of topics, and report entries without an owner."""

import pytest

from sluicegate.proxy.doctor.check_result import Level
from sluicegate.proxy.doctor.owners import check
from sluicegate.proxy.doctor.topics import differences, permissions, unused_entries
from sluicegate.validation.cluster_settings import ClusterSettings
from tests.config.reading import SMALLEST, load_text

_OWNED = "topics: [{match: a*, owner: {team: a, contact: '#a'}, quarantine: dead}, {match: b}, {match: b2}]\n"


@pytest.mark.parametrize(
    ("text", "level", "found"),
    [
        (_OWNED, Level.NOTE, "entries of topics without an owner: b, b2"),
        (f"{_OWNED}defaults: {{owner: {{team: z}}}}", Level.OK, "each entry of topics has an owner; teams: a, z"),
        ("defaults: {owner: {team: z}}", Level.OK, "each entry of topics has an owner; teams: z"),
    ],
)
def test_reports_entries_without_owner(text: str, level: Level, found: str) -> None:
    (result,) = check(load_text(SMALLEST + text).config)

    assert (result.level, result.found) == (level, found)


def test_a_configuration_without_owners_has_no_finding() -> None:
    assert list(check(load_text(f"{SMALLEST}topics: [{{match: a}}]").config)) == []


def test_findings_about_topics_name_their_owner() -> None:
    config = load_text(f"{SMALLEST}{_OWNED}defaults: {{message.timestamp.after.max.ms: 1h}}").config
    settings = {name: ClusterSettings() for name in ("a1", "a2", "b", "c")}

    assert [result.about for result in differences(config, settings)] == [
        "2 topics: a1, a2 (owner: a (#a))",
        "2 topics: b, c",
    ]
    assert [result.about for result in permissions(config, [])][-1] == "quarantine of a* (owner: a (#a))"
    assert [result.found.partition(" is ")[0] for result in unused_entries(config, [])] == [
        "a* (owner: a (#a))",
        "b",
        "b2",
    ]
