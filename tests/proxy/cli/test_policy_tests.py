"""`sluicegate test` reports passing and failing cases, their outcomes, mistakes in files, and JUnit XML."""

from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest

from sluicegate.config.loading import ConfigError
from sluicegate.proxy.cli.policy_cases import case_files
from sluicegate.proxy.cli.policy_tests import CaseRunner, FileResults
from tests.config.reading import SMALLEST
from tests.proxy.cli.test_commands import sluicegate

POLICIES = """
exempt: [{client_id: mirror}, {client_id: loader, topics: keyed}]
requests: [{name: durable, match: {topics: durable}, acks: [all], codecs: [zstd], idempotent: true}]
topics:
  - {match: keyed, rules: [{name: keyed, key: {required: true}}, {name: text, value: {utf8: true}}]}
  - {match: observed, mode: observe, cleanup.policy: compact}
  - {match: fixed, message.timestamp.after.max.ms: 1h, fix: {timestamp: now}}
  - {match: kept, cleanup.policy: compact, quarantine: kept.dead}
  - {match: copied, cleanup.policy: compact, quarantine: copied.dead, mode: observe}
  - {match: marked, mode: mark, cleanup.policy: compact}
  - {match: free, checks: none}
  - {match: headers, rules: [{name: tenant, headers: {required: [tenant], patterns: {tenant: a*}}}]}
  - {match: some, cleanup.policy: compact, enforce: {clients: [a]}}
  - {match: mine, rules: [{name: mine, cel: "client.principal == 'User:a' && client.id == 'a'"}]}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sluicegate.yaml").write_text(SMALLEST + POLICIES)
    return tmp_path


def run_policy_tests(folder: Path, cases: str, head: str = "now: 2026-11-22T10:00:00Z\n") -> FileResults:
    file = folder / "a.test.yaml"
    file.write_text(f"config: sluicegate.yaml\n{head}cases:\n{cases}")
    return CaseRunner(None, {}).run(file)


def case_text(topic: str, records: str, expect: str, more: str = "") -> str:
    return f"  - {{name: c, topic: {topic}, records: {records}, expect: {expect}{more}}}\n"


@pytest.mark.parametrize(
    ("topic", "records", "expect", "more"),
    [
        ("other", "[{}]", "{outcome: accepted, rules: [], records: []}", ""),
        ("keyed", "[{key: k, value: v}]", "{outcome: accepted}", ""),
        ("keyed", "[{key: k}, {}]", "{outcome: rejected, rules: [keyed], error: INVALID_RECORD, records: [1]}", ""),
        ("keyed", "[{}]", "{outcome: rejected, message: '*keyed*'}", ""),
        ("keyed", "[{}]", "{outcome: rejected, message: '/.*(keyed|x).*/'}", ""),
        ("keyed", "[{key: k, value_file: bad.bin}]", "{outcome: rejected, rules: [text]}", ""),
        ("observed", "[{value: v}]", "{outcome: observed, records: [0]}", ""),
        ("fixed", "[{timestamp: now+2h}]", "{outcome: fixed, error: INVALID_TIMESTAMP}", ""),
        ("fixed", "[{timestamp: '2026-11-22T10:59:59Z'}]", "{outcome: accepted}", ""),
        ("fixed", "[{timestamp: '2026-11-22T10:59:59Z'}]", "{outcome: fixed}", ", now: '2026-11-22T09:00:00Z'"),
        ("kept", "[{value: v}]", "{outcome: quarantined, error: INVALID_RECORD}", ""),
        ("copied", "[{value: v}]", "{outcome: copied, error: INVALID_RECORD, records: [0]}", ""),
        ("marked", "[{key: k}, {value: v}]", "{outcome: marked, error: INVALID_RECORD, records: [1]}", ""),
        ("free", "[{}]", "{outcome: unvalidated}", ""),
        ("kept", "[{}]", "{outcome: unvalidated}", ", producer: {client_id: mirror}"),
        ("keyed", "[{}]", "{outcome: unvalidated}", ", producer: {client_id: loader}"),
        ("kept", "[{}]", "{outcome: quarantined}", ", producer: {client_id: loader}"),
        ("headers", "[{headers: {tenant: acme}}]", "{outcome: accepted}", ""),
        ("headers", "[{headers: {tenant: b}}]", "{outcome: rejected, rules: [tenant]}", ""),
        ("durable", "[{}]", "{outcome: rejected, rules: [durable], error: POLICY_VIOLATION}", ""),
        ("durable", "[{}]", "{outcome: accepted}", ", producer: {codec: zstd}"),
        ("durable", "[{}]", "{outcome: rejected, message: '*acks=1*'}", ", producer: {codec: zstd, acks: 1}"),
        ("durable", "[{}]", "{outcome: rejected}", ", producer: {codec: zstd, idempotent: false}"),
        ("mine", "[{}]", "{outcome: accepted}", ", producer: {client_id: a, principal: 'User:a'}"),
        ("mine", "[{}]", "{outcome: rejected, rules: [mine]}", ", producer: {client_id: a}"),
        ("some", "[{}]", "{outcome: rejected}", ", producer: {client_id: a}"),
        ("some", "[{}]", "{outcome: observed}", ", producer: {client_id: b}"),
    ],
)
def test_a_case_passes_if_the_outcome_is_as_expected(
    folder: Path, topic: str, records: str, expect: str, more: str
) -> None:
    (folder / "bad.bin").write_bytes(b"\xff")

    (result,) = run_policy_tests(folder, case_text(topic, records, expect, more)).results

    assert result.problems == ()


@pytest.mark.parametrize(
    ("expect", "problems"),
    [
        ("{outcome: accepted}", ["expected outcome accepted, found rejected"]),
        ("{outcome: rejected, rules: [text, keyed]}", ["expected rules [keyed, text], found [keyed]"]),
        ("{outcome: rejected, rules: []}", ["expected rules none, found [keyed]"]),
        ("{outcome: rejected, error: INVALID_TIMESTAMP}", ["expected error INVALID_TIMESTAMP, found INVALID_RECORD"]),
        ("{outcome: rejected, records: [0]}", ["expected bad records [0], found [1]"]),
    ],
)
def test_a_failed_case_has_every_difference_and_the_entry_that_decides(
    folder: Path, expect: str, problems: list[str]
) -> None:
    (result,) = run_policy_tests(folder, case_text("keyed", "[{key: k}, {}]", expect)).results

    assert list(result.problems) == problems
    assert result.found[0] == f"topics[0] decides ({folder}/sluicegate.yaml:7)"
    assert result.found[1] == "outcome: rejected"


@pytest.mark.parametrize(
    ("cases", "head", "problem"),
    [
        (case_text("a b", "[{}]", "{outcome: accepted}"), "", "cases[0].topic: not a valid topic name"),
        (case_text("a", "[]", "{outcome: accepted}"), "", "cases[0]: records: expected at least one"),
        (case_text("a", "[{}]", "{outcome: acepted}"), "", "cases[0].expect.outcome: expected 'accepted', "),
        (
            case_text("a", "[{}]", "accepted"),
            "",
            "cases[0].expect: expected a section; write expect: {outcome: accepted}",
        ),
        (
            case_text("a", "[{}]", "{outcome: rejected, error: X}"),
            "",
            "cases[0].expect: expected the name of an error code",
        ),
        (
            case_text("a", "[{kee: k}]", "{outcome: accepted}"),
            "",
            "cases[0].records[0].kee: no such key; did you mean key?",
        ),
        (
            case_text("a", "[{timestamp: soon}]", "{outcome: accepted}"),
            "",
            "cases[0]: expected milliseconds, a time such as",
        ),
        (case_text("a", "[{value_file: x}]", "{outcome: accepted}"), "", "No such file"),
        (case_text("a", "[{}]", "{outcome: accepted}") * 2, "", "cases[1].name: two cases are named c"),
        (case_text("a", "[{}]", "{outcome: accepted}"), "nwo: 5\n", "nwo: no such key; did you mean now?"),
    ],
)
def test_invalid_policy_test_file_is_reported_with_line_number(
    folder: Path, cases: str, head: str, problem: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        run_policy_tests(folder, cases, head)

    (words,) = map(str, caught.value.problems)
    assert words.startswith(f"{folder}/a.test.yaml:") and problem in words


def test_policy_test_file_without_configuration_requires_option(folder: Path) -> None:
    file = folder / "b.test.yaml"
    file.write_text("cases:\n" + case_text("keyed", "[{}]", "{outcome: rejected}"))

    with pytest.raises(ConfigError, match="config: this key is required, or the option --config"):
        CaseRunner(None, {}).run(file)
    (result,) = CaseRunner(folder / "sluicegate.yaml", {}).run(file).results
    assert result.problems == ()


def test_folders_are_searched_for_files_of_cases(tmp_path: Path) -> None:
    for name in ("b/x.test.yaml", "a/y.test.yml", "a/y.yaml", "z.test.yaml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()

    found = case_files([tmp_path, tmp_path / "a/y.yaml"])
    assert [str(file.relative_to(tmp_path)) for file in found] == [
        "a/y.test.yml",
        "b/x.test.yaml",
        "z.test.yaml",
        "a/y.yaml",
    ]


def test_the_command_exits_with_0_1_or_2_and_writes_junit(folder: Path) -> None:
    good, bad = folder / "good.test.yaml", folder / "bad.test.yaml"
    good.write_text("config: sluicegate.yaml\ncases:\n" + case_text("keyed", "[{}]", "{outcome: rejected}"))
    bad.write_text("config: sluicegate.yaml\ncases:\n" + case_text("keyed", "[{}]", "{outcome: accepted}"))
    junit = folder / "results.xml"

    passed = sluicegate("test", str(good))
    failed = sluicegate("test", str(folder), "--junit", str(junit))
    missing = sluicegate("test", str(folder / "none"))
    invalid = sluicegate("test", str(good), "--config", str(good))

    assert (passed.returncode, passed.stdout.splitlines()[0]) == (0, f"{good} .")
    assert failed.returncode == 1
    lines = failed.stdout.splitlines()
    assert lines[:2] == [f"{bad} F", f"{good} ."]
    assert f"{bad}:3: expected outcome accepted, found rejected" in lines
    assert lines[-1].startswith("1 failed, 1 passed in ")
    assert missing.returncode == invalid.returncode == 2
    assert "cannot be read" in missing.stderr
    suites = Xml.parse(junit).getroot()
    assert (suites.get("tests"), suites.get("failures")) == ("2", "1")
    failures = {suite.get("name"): [each.get("message") for each in suite.iter("failure")] for suite in suites}
    assert failures == {str(bad): ["expected outcome accepted, found rejected"], str(good): []}
    assert {element.get("line") for element in suites.iter("testcase")} == {"3"}


def test_folder_without_cases_is_an_error(tmp_path: Path) -> None:
    done = sluicegate("test", str(tmp_path))

    assert (done.returncode, done.stderr) == (2, f"sluicegate test: no *.test.yaml in {tmp_path}\n")


TEAMS = 40


def write_teams(folder: Path, entries: int = 10) -> Path:
    """Write the files of forty teams, each with a scope, entries and cases, under a floor; return the main file."""
    items = []
    for i in range(TEAMS):
        team = f"team{i:02}"
        items.append(f"  - {{path: {team}/*.yaml, topics: '{team}.*', owner: {{team: {team}}}}}\n")
        (folder / team).mkdir()
        topics = "".join(
            f"  - match: {team}.topic{k}*\n    message.timestamp.before.max.ms: 7d\n"
            f"    rules: [{{name: text, value: {{utf8: true}}}}, {{name: tenant, headers: {{required: [tenant]}}}}]\n"
            for k in range(entries)
        )
        (folder / team / "topics.yaml").write_text(f"topics:\n{topics}")
        cases = "".join(
            f"  - name: topic {k} {outcome}\n    topic: {team}.topic{k}.eu\n"
            f"    records: [{{key: {key}, value: v, headers: {{tenant: a}}, timestamp: {time}}}]\n"
            f"    expect: {{outcome: {outcome}, rules: {rules}}}\n"
            for k in range(entries)
            for outcome, key, time, rules in (("accepted", "k", "now", "[]"), ("rejected", "", "now", "[keyed]"))
        )
        (folder / team / "topics.test.yaml").write_text(f"now: 2026-11-22T10:00:00Z\ncases:\n{cases}")
    main = folder / "sluicegate.yaml"
    floor = "floor: [{match: '*', message.timestamp.after.max.ms: 1h, rules: [{name: keyed, key: {required: true}}]}]\n"
    main.write_text(f"{SMALLEST}{floor}topic_files:\n{''.join(items)}")
    return main


@pytest.mark.long
def test_check_and_policy_tests_work_with_forty_team_files(tmp_path: Path) -> None:
    main = write_teams(tmp_path)

    checked = sluicegate("check", "--strict", str(main))
    tested = sluicegate("test", str(tmp_path), "--config", str(main), "--junit", str(tmp_path / "results.xml"))

    assert (checked.returncode, checked.stdout) == (0, f"{main}: ok\n")
    assert tested.returncode == 0, tested.stdout
    assert tested.stdout.splitlines()[-1].startswith("800 passed in ")
    assert Xml.parse(tmp_path / "results.xml").getroot().get("tests") == "800"

    file = tmp_path / "team07" / "more.yaml"
    file.write_text("topics:\n  - match: '*'\n    checks: none\n")
    beyond = sluicegate("check", str(main))
    assert (beyond.returncode, beyond.stderr) == (
        1,
        f"{file}:2: topics[0].match: * is not limited to the scope of this file, team07.* ({main}:12); "
        'write match: "team07.*", or a part of it\n',
    )
    file.write_text("topics:\n  - match: team07.other\n    checks: none\n")
    weaker = sluicegate("check", "--strict", str(main))
    assert weaker.returncode == 1
    assert weaker.stdout == (
        f"warning: {file}:3: topics[0].checks none is weaker than floor[0] ({main}:3), which applies instead; omit the "
        f"key\n"
    )
    case = "cases: [{name: c, topic: team07.other, records: [{}], expect: {outcome: rejected, rules: [keyed]}}]\n"
    (tmp_path / "team07" / "more.test.yaml").write_text(case)
    assert sluicegate("test", str(tmp_path / "team07"), "--config", str(main)).returncode == 0


def test_diff_prints_what_becomes_looser_and_strict_rejects_it(folder: Path) -> None:
    new = folder / "new.yaml"
    new.write_text(
        (folder / "sluicegate.yaml").read_text().replace("match: kept, cleanup.policy: compact", "match: kept")
    )

    done = sluicegate("diff", str(folder / "sluicegate.yaml"), str(new))

    assert done.stdout.splitlines() == [
        "kept: looser: cleanup.policy compact -> delete (sluicegate default)",
        "0 stricter, 1 looser, 0 changed",
    ]
    assert done.returncode == 0
    assert sluicegate("diff", "--strict", str(folder / "sluicegate.yaml"), str(new)).returncode == 1
    assert sluicegate("diff", "--strict", str(new), str(folder / "sluicegate.yaml")).returncode == 0
    assert sluicegate("diff", str(folder / "none.yaml"), str(new)).returncode == 2
