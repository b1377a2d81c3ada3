"""Runs test cases of policies by validating their records as the proxy would (`sluicegate test`)."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter

from sluicegate.config.files.source import Problem, Source
from sluicegate.config.files.yaml_source import read_file
from sluicegate.config.loading import ConfigError, InvalidSection, Loaded, read_section
from sluicegate.config.validation_words import problems_of
from sluicegate.protocol.errors import error_name
from sluicegate.protocol.records.codecs.codec import Codec
from sluicegate.protocol.records.record_batch import NO_PRODUCER_ID
from sluicegate.protocol.records.writing import NewRecord
from sluicegate.proxy.cli.policy_cases import CaseFile, CaseRecord, Expected, Outcome, PolicyCase
from sluicegate.proxy.cli.record_input import BadGivenRecord, time_of
from sluicegate.proxy.registry.registries import Registries
from sluicegate.proxy.registry.schema_rules import SchemaRules
from sluicegate.proxy.reload.config_check import checked_policies
from sluicegate.proxy.server.clock import now_ms
from sluicegate.validation.from_keys import limits_of, rulebook_of
from sluicegate.validation.produce.one_batch import PLACE, BatchSettings, validate_batch
from sluicegate.validation.requests.name_pattern import NamePattern
from sluicegate.validation.rulebook import Rulebook
from sluicegate.validation.rules.rule import Client
from sluicegate.validation.topic_patterns import TopicPatterns
from sluicegate.validation.validated_request import ValidatedRequest
from sluicegate.validation.verdict import Finding

_ACKS = {"all": -1, "1": 1, "0": 0}
_ADDRESS = "127.0.0.1:0"


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one case.

    `problems` are the differences from the expected outcome. `found` contains lines about the outcome. `place` is
    `file:line`.
    """

    name: str
    place: str
    seconds: float
    problems: tuple[str, ...] = ()
    found: tuple[str, ...] = ()


@dataclass(slots=True)
class FileResults:
    """The results of one file, in the order of its cases."""

    name: str
    results: list[Result] = field(default_factory=list)


class CaseRunner:
    """Runs files of test cases.

    Each configuration is loaded once. `config` is used instead of the configurations that the files name.
    """

    def __init__(self, config: Path | None, environment: Mapping[str, str] = os.environ) -> None:
        self._config = config
        self._environment = environment
        self._known: dict[Path, _Policies] = {}

    def run(self, file: Path) -> FileResults:
        """Run all cases of a file. Raises ConfigError for an invalid file or configuration."""
        cases, source = _read(file)
        policies = self._policies(cases, file, source)
        results = FileResults(str(file))
        for i, case in enumerate(cases.cases):
            try:
                results.results.append(_run(case, cases, policies, file, source.place_of(("cases", i))))
            except BadGivenRecord as error:
                words = str(error).removeprefix("--timestamp: ")
                raise ConfigError([Problem(f"cases[{i}]", source.place_of(("cases", i)), words)]) from None
        return results

    def _policies(self, cases: CaseFile, file: Path, source: Source) -> "_Policies":
        """Return the policies for a file of test cases. Raises ConfigError."""
        path = self._config
        if path is None:
            if cases.config is None:
                raise ConfigError([Problem("config", source.name, "this key is required, or the option --config")])
            path = Path(os.path.normpath(file.parent / cases.config))
        if path not in self._known:
            self._known[path] = _Policies(checked_policies(path, self._environment))
        return self._known[path]


def topics_of(file: Path) -> list[str]:
    """Return the topics of a file of test cases. Raises ConfigError for an invalid file."""
    cases, _ = _read(file)
    return [case.topic for case in cases.cases]


def _read(file: Path) -> tuple[CaseFile, Source]:
    """Return the test cases in a file, and their places. Raises ConfigError."""
    source = read_file(file)
    problems = list(source.problems)
    if not source.readable:
        raise ConfigError(problems)
    try:
        cases = read_section(CaseFile, source.data)
    except InvalidSection as error:
        found = problems_of(error.details, source, CaseFile)
        raise ConfigError(problems + found) from None
    problems += _same_names(cases, source)
    if problems:
        raise ConfigError(problems)
    return cases, source


class _Policies:
    def __init__(self, loaded: Loaded) -> None:
        maker = SchemaRules(Registries().by_name(loaded.config.registries))
        self.rulebook: Rulebook = rulebook_of(loaded.config, maker)
        self.limits = limits_of(loaded.config)
        self._loaded = loaded
        self._patterns = TopicPatterns([entry.match for entry in loaded.config.topics])

    def decides(self, topic: str) -> str:
        """Return which entry applies to a topic."""
        place = self._patterns.first_match(topic)
        if place is None:
            return f"no entry of topics matches {topic}: defaults apply"
        source, path = self._loaded.source, ("topics", place)
        return f"{source.key_of(path)} decides ({source.place_of(path)})"


def _same_names(cases: CaseFile, source: Source) -> Iterator[Problem]:
    seen: set[str] = set()
    for i, case in enumerate(cases.cases):
        if case.name in seen:
            path = ("cases", i, "name")
            yield Problem(source.key_of(path), source.place_of(path), f"two cases are named {case.name}")
        seen.add(case.name)


def _run(case: PolicyCase, cases: CaseFile, policies: _Policies, file: Path, place: str) -> Result:
    """Run one test case. Raises BadGivenRecord."""
    began_at = perf_counter()
    given = case.now or cases.now
    now = now_ms() if given is None else time_of(given, now_ms())
    records = [_record(record, now, file.parent) for record in case.records]
    validated, is_exempt = _validated(case, records, policies, now)
    outcome, found = _outcome(validated)
    problems = tuple(_differences(case.expect, outcome, found))
    about = (policies.decides(case.topic), *_described(outcome, found, is_exempt)) if problems else ()
    return Result(case.name, place, perf_counter() - began_at, problems, about)


def _record(record: CaseRecord, now: int, folder: Path) -> NewRecord:
    """Return the record of a test case. Raises BadGivenRecord."""
    value = None if record.value is None else os.fsencode(record.value)
    if record.value_file is not None:
        try:
            value = (folder / record.value_file).read_bytes()
        except OSError as error:
            raise BadGivenRecord(f"value_file: {folder / record.value_file}: {error.strerror}") from error
    headers = tuple((os.fsencode(name), os.fsencode(text)) for name, text in record.headers.items())
    key = None if record.key is None else os.fsencode(record.key)
    return NewRecord(time_of(record.timestamp, now), key, value, headers)


def _validated(
    case: PolicyCase, records: Sequence[NewRecord], policies: _Policies, now: int
) -> tuple[ValidatedRequest, bool]:
    """Return the verdict, and whether the client is exempt."""
    sender = case.producer
    producer = (0, 0, 0) if sender.idempotent else (NO_PRODUCER_ID, -1, -1)
    sending = BatchSettings(producer, _ACKS[sender.acks], Codec[sender.codec.upper()])
    client = Client(_ADDRESS, sender.client_id, sender.software_name, sender.software_version, sender.principal)
    policy = policies.rulebook.policy_of(case.topic)
    is_exempt = policies.rulebook.exempts(client) or policy.exempts(client)
    if policies.rulebook.exempts(client):
        policy = policy.for_exempt()
    return validate_batch(case.topic, records, policy, policies.limits, now, client, sending), is_exempt


def _outcome(validated: ValidatedRequest) -> tuple[Outcome, tuple[Finding, ...]]:
    """Return the outcome and the verdicts that lead to it."""
    if validated.waived:
        return "unvalidated", ()
    if PLACE in validated.fixed:
        return "fixed", (validated.fixed[PLACE].finding,)
    if PLACE in validated.rejected:
        outcome: Outcome = "quarantined" if PLACE in validated.to_quarantine else "rejected"
        return outcome, (validated.rejected[PLACE],)
    if validated.is_marked(PLACE):
        return "marked", validated.marked[PLACE].findings
    if PLACE in validated.observed:
        return "copied" if PLACE in validated.to_quarantine else "observed", validated.observed[PLACE]
    return "accepted", ()


def _differences(expected: Expected, outcome: Outcome, findings: Sequence[Finding]) -> Iterator[str]:
    if outcome != expected.outcome:
        yield f"expected outcome {expected.outcome}, found {outcome}"
    rules = sorted({name for finding in findings for name, _ in finding.rules})
    if expected.rules is not None and rules != sorted(set(expected.rules)):
        yield f"expected rules {_listed(sorted(set(expected.rules)))}, found {_listed(rules)}"
    error = findings[0].code.name if findings else None
    if expected.error is not None and error != expected.error:
        yield f"expected error {expected.error}, found {error or 'none'}"
    violations = [bad for finding in findings for bad in finding.bad_records]
    messages = [*(finding.message or "" for finding in findings), *(bad.message for bad in violations)]
    if expected.message is not None and not any(map(NamePattern(expected.message).matches, messages)):
        found = _listed([text for text in messages if text])
        yield f"expected a message that matches {expected.message}, found {found}"
    bad = sorted({record.index for record in violations})
    if expected.records is not None and bad != sorted(set(expected.records)):
        yield f"expected bad records {_listed(sorted(set(expected.records)))}, found {_listed(bad)}"


def _listed(items: Sequence[object]) -> str:
    return f"[{', '.join(map(str, items))}]" if items else "none"


def _described(outcome: Outcome, findings: Sequence[Finding], is_exempt: bool) -> Iterator[str]:
    yield f"outcome: {outcome}{' (the client is exempt)' if is_exempt else ''}"
    for finding in findings:
        yield f"error: {error_name(finding.code)}: {finding.message or 'without a message'}"
        yield from (f"record {bad.index}: {bad.message}" for bad in finding.bad_records)
