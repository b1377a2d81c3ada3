"""Every command that reads a configuration agrees about each invalid configuration of the test tree."""

import ast
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from sluicegate.config.keys import each_key_of
from sluicegate.config.loading import ConfigError, Loaded, load_file
from sluicegate.config.model import Config
from sluicegate.proxy.cli.commands import app
from sluicegate.proxy.reload.config_check import checked_policies
from sluicegate.proxy.reload.rule_makers import RuleMakers
from sluicegate.proxy.reporting.metrics.counters import Counters
from sluicegate.proxy.scheduling.wait_budget import WaitBudget
from sluicegate.validation.from_keys import file_policies_of
from tests.config.reading import SMALLEST
from tests.oracle.kafka_java import ROOT

_KEYS = {key.name for key in each_key_of(Config)}
_MOST_BYTES = 5_000
_PLACE = re.compile(r"^\S+?\.(?:yaml|json)\S*:\d+: |^\S+\.yaml: ", re.MULTILINE)
_KIND = re.compile(r"^\S+: |\d+|'[^']*'", re.MULTILINE)
_IS_LONG = bool(os.environ.get("SLUICEGATE_THOROUGH"))
_MASK = "sensitive: [{name: a, action: mask, fields: [a]}]"
_FILES = {"ok.json": '{"type": "object"}', "other.json": "{}", "broken.json": '{"type": 7', "short.key": "short"}
SENSITIVE = [
    f"topics: [{{match: t, {_MASK}, quarantine: bad}}]\n",
    f"topics: [{{match: t, {_MASK}, samples: true}}]\n",
    f"topics: [{{match: t, {_MASK}, checks: none}}]\n",
    f"defaults: {{{_MASK}}}\ntopics: [{{match: t, quarantine: bad}}]\n",
    f"defaults: {{samples: true}}\ntopics: [{{match: t, {_MASK}}}]\n",
    f"defaults: {{checks: none}}\ntopics: [{{match: t, {_MASK}}}]\n",
    f"defaults: {{samples: true, {_MASK}}}\n",
    "topics: [{match: t, sensitive: [{name: a, action: mask, tags: [PII]}]}]\n",
    "topics: [{match: t, sensitive: [{name: a, action: mask, fields: [a], schema: {file: ok.json, format: json}}, "
    "{name: b, action: mask, fields: [b], schema: {file: other.json, format: json}}]}]\n",
    "topics: [{match: t, sensitive: [{name: a, action: hash, fields: [a], key_file: none.key}]}]\n",
    "topics: [{match: t, sensitive: [{name: a, action: hash, fields: [a], key_file: short.key}]}]\n",
    "defaults: {sensitive: [{name: a, action: hash, fields: [a], key_file: none.key}]}\n",
    "topics: [{match: t, sensitive: [{name: a, action: mask, fields: [a], schema: {file: no.json, format: json}}]}]\n",
    "topics: [{match: t, sensitive: [{name: a, action: mask, fields: [a], schema: {file: broken.json, "
    "format: json}}]}]\n",
    "topics: [{match: t, sensitive: [{name: a, action: mask, fields: [a]}, {name: a, action: hash, fields: [b]}]}]\n",
]
"""Invalid configurations whose errors are only found by compiling files or by comparing sections."""


def _texts_of_the_tree() -> list[str]:
    """Return each text of a test that is the YAML of a configuration, or of some of its keys, in a fixed order."""
    found = {}
    for path in sorted(Path(ROOT, "tests").rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and ": " in node.value:
                found[node.value] = None
    return list(found)


def _configurations() -> Iterator[str]:
    for text in _texts_of_the_tree():
        if len(text) > _MOST_BYTES or text.count("{") != text.count("}"):
            continue
        try:
            keys = yaml.safe_load(text)
        except (yaml.YAMLError, ValueError, RecursionError):
            continue
        if isinstance(keys, dict) and keys and all(isinstance(key, str) for key in keys) and _KEYS & set(keys):
            missing = [line for line in SMALLEST.splitlines() if line.partition(":")[0] not in keys]
            yield "\n".join([*missing, text])


def _compile_as_run_does(loaded: Loaded) -> None:
    """Compile the policies as a server does, without its connections."""
    makers = RuleMakers(WaitBudget(), Counters(), loaded.config.limits)
    try:
        file_policies_of(loaded.config, makers.for_registries(loaded.config.registries), loaded.source)
    finally:
        makers.close()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with the files that configurations name."""
    monkeypatch.chdir(tmp_path)
    for name, text in _FILES.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "smallest.yaml").write_text(SMALLEST)
    case = "{name: a, topic: t, records: [{value: v}], expect: {outcome: accepted}}"
    (tmp_path / "x.test.yaml").write_text(f"config: c.yaml\ncases: [{case}]\n")
    return tmp_path


COMMANDS: dict[str, tuple[Sequence[str], int]] = {
    "check": (("check", "c.yaml"), 1),
    "run": (("run", "--config", "c.yaml"), 1),
    "explain": (("explain", "c.yaml", "t", "--offline"), 1),
    "try": (("try", "c.yaml", "--topic", "t", "--value", "v", "--offline"), 2),
    "diff to": (("diff", "smallest.yaml", "c.yaml"), 2),
    "diff from": (("diff", "c.yaml", "smallest.yaml"), 2),
    "test": (("test", "x.test.yaml"), 2),
}
"""Each command that compiles policies, and its exit status for an invalid configuration."""
_WITH_CONNECTIONS = ("check", "run")
"""The commands that also need certificates and passwords, which authors of policies do not have."""


def _ended(arguments: Sequence[str]) -> tuple[int, str]:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exception is None or isinstance(result.exception, SystemExit), (
        f"sluicegate {' '.join(arguments)} ends with a traceback: {result.exception!r}"
    )
    return result.exit_code, result.stderr


def _disagreements(text: str, folder: Path, seen: set[str] | None = None) -> list[str]:
    """Return how the commands differ about an invalid configuration; nothing for a valid one.

    `seen` has the kinds of messages so far: in the short form each kind is tried once.
    """
    (folder / "c.yaml").write_text(text)
    status, words = _ended(COMMANDS["check"][0])
    if status == 0:
        _compile_as_run_does(load_file(folder / "c.yaml", {}))
        return []
    kind = _KIND.sub("", words)
    if seen is not None:
        if kind in seen and not _IS_LONG:
            return []
        seen.add(kind)
    found = [] if _PLACE.search(words) else [f"check names no file and line: {words!r}"]
    commands = COMMANDS if _has_unusable_policies(folder / "c.yaml") else _WITH_CONNECTIONS
    for name in commands:
        arguments, expected = COMMANDS[name]
        ended, other = _ended(arguments)
        if (ended, other) != (expected, words):
            found.append(f"{name}: status {ended} instead of {expected}, {other!r} instead of {words!r}")
    return found


def _has_unusable_policies(file: Path) -> bool:
    try:
        checked_policies(file, {})
    except ConfigError:
        return True
    return False


@pytest.mark.parametrize("text", SENSITIVE)
def test_commands_agree_about_sensitive_fields(text: str, folder: Path) -> None:
    assert _disagreements(SMALLEST + text, folder) == []
    assert _ended(COMMANDS["check"][0])[0] == 1


def test_commands_agree_about_every_invalid_configuration_of_the_test_tree(folder: Path) -> None:
    seen: set[str] = set()
    found = {text: _disagreements(text, folder, seen) for text in dict.fromkeys(_configurations())}

    assert {text: words for text, words in found.items() if words} == {}
    assert len(found) > 300 and len(seen) > 30
