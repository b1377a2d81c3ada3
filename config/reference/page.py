"""Generates the page with every key, its default, unit and bounds.

`python -m sluicegate.config.reference.page > docs/configuration.md` writes it.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, get_args, get_origin

from sluicegate.config.keys import Key, each_key_of, is_list, is_optional, item_of, note_of, section_of, unwrapped
from sluicegate.config.model import Config
from sluicegate.config.setting_keys import CONTRACT, SETTING_KEYS, SettingKey, SettingType
from sluicegate.config.topics import TopicKeys
from sluicegate.config.values.address import HostPort
from sluicegate.config.values.json_schema_kinds import Takes
from sluicegate.config.values.kinds import Text
from sluicegate.config.values.quantity import MILLISECONDS, SECONDS, Quantity

_ENDLESS = 1_000_000_000
_LISTS = {HostPort: "list of `host:port`", int: "list of durations (ms)"}
_HEAD = """# Configuration

Generated from the model in `config/`: `python -m sluicegate.config.reference.page > docs/configuration.md`.

- `sluicegate check FILE` reports each error with its key, its line and what to write instead, and checks the files that
  the configuration names. With `--strict`, which is meant for CI, warnings also cause exit status 1.
- `sluicegate explain FILE TOPIC` prints the settings that apply to a topic, with the source of each.
- `sluicegate schema` prints a JSON Schema for editors; `sluicegate schema --topic-files` prints that of the files that
  `topic_files` names.

## Values

- **Text** is used as written, quoted or not: a password `0123456` keeps its zero. YAML needs quotes around a value that
  begins with `*`, `&`, `!`, `%`, `@`, `{` or `[`, or that contains a colon and a space, or a space and a `#`.
- **Durations** are plain numbers in the unit of the table, or have a unit: `ms`, `s`, `m` or `min`, `h`, `d`, as in
  `1h`, `1.5h`, `7d`.
- **Sizes** are plain numbers of bytes, or have a unit: `kB`, `MB`, `GB`, `TB` (powers of 1000) or `KiB`, `MiB`, `GiB`,
  `TiB` (powers of 1024), as in `100MB`, `64KiB`.
- **`none`** is no bound. For a bound of timestamps or of `max.message.bytes` it is a value like any other: in an entry
  of `topics` it overrides `defaults`, and the cluster's own setting of the topic still applies. For any other number
  that may be `none`, it has the same effect as a missing key.
- **Relative file names** are relative to the folder of the file that contains them: the configuration, or the file of
  `topic_files` with the topic. File names in variables and options are relative to the configuration's folder.
  `violations.file`, which the proxy writes, is relative to the proxy's working directory.
- **Lists of addresses** may also be one string: `"a:9092,b:9092"`.
- An empty key has the same effect as a missing one. Merge keys (`<<: *name`) work; tags (`!name`) do not.
- Unknown keys are errors; the message shows the line to write, or suggests the nearest known key.

## Environment and command line

Environment variables override every key. Their names have two underscores between parts, one underscore for a dot
within a key, and a number for an item of a list: `SLUICEGATE__ADMIN__LISTEN=0.0.0.0:9650`,
`SLUICEGATE__DEFAULTS__MESSAGE_TIMESTAMP_AFTER_MAX_MS=1h`, `SLUICEGATE__TOPICS__0__MATCH=payments`. A value is used as
written; only a whole list or section is parsed as YAML. An empty variable has the same effect as a missing one. The
options `--upstream` and `--listen` override both. A variable with single underscores, such as
`SLUICEGATE_LISTEN_BOOTSTRAP`, is an error.

## Passwords

Each password can also be in a file, which a second key names: `upstream.sasl.password_file`, `otel.headers_file`, and
`key_password_file` in `upstream.tls` and `listen.tls`. The proxy reads the file at each login and each time it loads
keys, so you can change a password without a restart. Line ends at the end of the file are not part of the password.
Passwords never appear in messages.
"""


def page() -> str:
    """Return the page as Markdown. Sections with the same keys share one table."""
    groups: dict[type[Any], list[DocumentedSection]] = {}
    for each in sections():
        groups.setdefault(each.model, []).append(each)
    parts = [_HEAD, "## Keys\n"]
    for model, group in groups.items():
        parts += [*_introduced(group), "| key | effect | values | default |\n|---|---|---|---|"]
        shown = {key.name for parent in model.__mro__[1:] if parent in groups for key in _own(parent)}
        parts += [_row(key) for key in _own(model) if key.name not in shown]
        parts.append("")
    parts.append(_TOPIC_SETTINGS)
    parts += [_setting_row(key) for key in SETTING_KEYS.values()]
    return "\n".join(parts).rstrip() + "\n"


def _introduced(group: list["DocumentedSection"]) -> Iterator[str]:
    """Yield the heading with each section's name, and the sections' descriptions."""
    yield f"### {', '.join(f'`{each.name}`' for each in group) if group[0].name else 'At the top'}\n"
    described: dict[str, list[str]] = {}
    for each in group:
        described.setdefault(each.description, []).append(f"`{each.name}`")
    if len(described) == 1:
        yield f"{group[0].description}\n"
    else:
        yield "\n".join(f"- {', '.join(names)}: {text}" for text, names in described.items()) + "\n"
    if issubclass(group[0].model, TopicKeys) and group[0].model is not TopicKeys:
        yield "The keys of [`defaults`](#defaults), and these:\n"


_TOPIC_SETTINGS = """## Topic settings

The keys that `topic_policies` can delegate to the owners of topics ([policies as topic settings](topic-policies.md)).
Since 0.1.0. None has a default: without the setting, the configuration's own entry or `defaults` applies.

| setting | key of `topics[]` | value |
|---|---|---|"""
_SETTING_VALUES = {
    SettingType.LIST: "a list separated by commas",
    SettingType.BOOLEAN: "`true` or `false`",
    SettingType.STRING: "a text",
}


def _setting_row(key: SettingKey) -> str:
    if key.name == CONTRACT:
        return f"| `{key.name}` | a file of `contracts` | a contract as YAML or JSON |"
    value = "a JSON array of sections" if key.is_json else _SETTING_VALUES[key.type]
    return f"| `{key.name}` | `{' → '.join(key.path)}` | {value} |"


@dataclass(frozen=True, slots=True)
class DocumentedSection:
    """A section: its dotted name (`[]` follows a list), its model and its description."""

    name: str
    model: type[Any]
    description: str


def sections() -> Iterator[DocumentedSection]:
    """Yield every section that has keys of its own."""
    waiting = [DocumentedSection("", Config, "Keys of the process as a whole.")]
    while waiting:
        section = waiting.pop(0)
        if any(True for _ in _own(section.model)):
            yield section
        if section.name == "defaults":
            continue  # the descriptions are those of `topics[]`
        for key in each_key_of(section.model):
            inner = section_of(key.annotation) or section_of(item_of(key.annotation))
            if inner is not None:
                name = _dotted(section.name, key.name) + _suffix(key.annotation)
                waiting.append(DocumentedSection(name, inner, words_of(section.name, key)))


def words_of(section: str, key: Key) -> str:
    """Return a key's description, with `{side}` replaced by the last part of the section's name."""
    return key.description.replace("{side}", section.rpartition(".")[2])


def _suffix(annotation: Any) -> str:
    if is_list(annotation):
        return "[]"
    return ".*" if get_origin(unwrapped(annotation)) is dict else ""


def _own(section: type[Any]) -> Iterator[Key]:
    """Yield the keys that are not sections."""
    for key in each_key_of(section):
        if section_of(key.annotation) is None and section_of(item_of(key.annotation)) is None:
            yield key


def _dotted(section: str, key: str) -> str:
    return f"{section}.{key}" if section else key


def _row(key: Key) -> str:
    return f"| `{key.name}` | {key.description} | {_takes(key)} | {_default(key)} |"


def _takes(key: Key) -> str:
    kind = unwrapped(key.annotation)
    quantity, takes = note_of(key.annotation, Quantity), note_of(key.annotation, Takes)
    if takes is not None:
        return takes.words
    if get_origin(kind) is dict:
        return _MAPPINGS.get(unwrapped(item_of(kind)), "`{name: pattern}`")
    if get_origin(kind) is tuple:
        return _list(item_of(kind))
    if quantity is not None:
        return _range(quantity) + (" or `none`" if is_optional(key.annotation) else "")
    if kind is bool:
        return "boolean"
    if get_args(kind):
        return ", ".join(f"`{choice}`" for choice in get_args(kind))
    return "`host:port`" if kind is HostPort else "text"


_MAPPINGS: dict[Any, str] = {HostPort: "`{node id: host:port}`", int: "`{node id: port}`", Any: "`{name: value}`"}


def _list(item: Any) -> str:
    choices = get_args(unwrapped(item))
    if choices:
        return f"list of {', '.join(f'`{choice}`' for choice in choices)}"
    return "list of strings" if item == Text else _LISTS.get(unwrapped(item), "list of networks")


def _range(quantity: Quantity) -> str:
    if quantity.units == MILLISECONDS.units or quantity is SECONDS:
        return f"duration ({'s' if quantity is SECONDS else 'ms'})"
    if quantity.units:
        return "size" + (f", at least {quantity.low}" if quantity.low > 1 else "")
    return f"number from {quantity.low}" + (f" to {quantity.high}" if quantity.high < _ENDLESS else "")


def _default(key: Key) -> str:
    if key.is_required:
        return "required"
    default = key.default
    if default is None:
        return "none"
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    return "none" if default in ({}, ()) else f"`{default}`"


if __name__ == "__main__":
    sys.stdout.write(page())
