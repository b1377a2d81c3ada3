"""The page of every key, its default, unit and bounds.

`python -m sluicegate.config.reference.page > docs/configuration.md` writes it.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeVar, get_args, get_origin

from sluicegate.config.keys import Key, each_key_of, is_list, item_of, section_of, unwrapped
from sluicegate.config.model import Config
from sluicegate.config.reference.json_schema_kinds import Takes
from sluicegate.config.values.address import HostPort
from sluicegate.config.values.kinds import Text
from sluicegate.config.values.quantity import MILLISECONDS, SECONDS, Quantity

_ENDLESS = 1_000_000_000
_LISTS = {HostPort: "a list of `host:port`", int: "a list of ms, or of durations"}
_Note = TypeVar("_Note")
_HEAD = """# Configuration

Every key, as the model in `config/` has it, never written by hand:
`python -m sluicegate.config.reference.page > docs/configuration.md`. `sluicegate check FILE` tells each mistake with
its key and line, and looks at the files that are named; `sluicegate explain FILE TOPIC` says what applies to a topic
and from which line; `sluicegate schema` prints a JSON Schema of all of this for editors, and `sluicegate schema
--topic-files` one of the files that `topic_files` names.

## How values are written

- **Text** is taken as it is written, quoted or not: a password `0123456` stays that. YAML needs quotes around what
  begins with `*`, `&`, `!`, `%`, `@`, `{` or `[`, and around what has a colon and a blank, or a blank and a `#`, in it.
- **Durations** are plain numbers in the unit that the table names, or carry one: `ms`, `s`, `m` or `min`, `h`, `d`, as
  in `1h`, `1.5h`, `7d`.
- **Sizes** are plain numbers of bytes, or carry a unit: `kB`, `MB`, `GB`, `TB` (thousands) or `KiB`, `MiB`, `GiB`,
  `TiB` (1024), as in `100MB`, `64KiB`.
- **Names of files** that are relative begin at the folder of the file that they stand in: the configuration, or the
  one of `topic_files` that holds the topic. Those of variables and options begin at the configuration's.
  `violations.file`, which is written, begins where the proxy was started.
- **Lists of addresses** may also be one text: `"a:9092,b:9092"`.
- A key with nothing behind it is as good as none. Merge keys (`<<: *name`) work, tags (`!name`) do not.
- Unknown keys are errors that suggest the nearest known one.

## The environment and the command line

Every key can be overridden: two underscores between parts, one for a dot within a key, a number for an item of a list:
`SLUICEGATE__ADMIN__LISTEN=0.0.0.0:9650`, `SLUICEGATE__DEFAULTS__MESSAGE_TIMESTAMP_AFTER_MAX_MS=1h`,
`SLUICEGATE__TOPICS__0__MATCH=payments`. A value is taken as it is, to the letter; only a whole list or section is read
as YAML. An empty one is as good as none. `--upstream` and `--listen` go before both.

## Passwords

Beside each password stands a key for a file that holds it: `upstream.sasl.password_file`, `otel.headers_file`, and
`key_password_file` in `upstream.tls` and `listen.tls`. The file is read at each login and each time keys are loaded, so
a new password is used without a restart. Line ends behind it are not part of it. No message shows a password.
"""


def page() -> str:
    """The whole page."""
    parts = [_HEAD, "## Keys\n"]
    for section in sections():
        heading = f"`{section.name}`" if section.name else "At the top"
        parts.append(f"### {heading}\n\n{section.description}\n")
        parts.append("| key | what it does | takes | default |\n|---|---|---|---|")
        parts += [_row(key) for key in _own(section.model)]
        parts.append("")
    return "\n".join(parts).rstrip() + "\n"


def documented_keys() -> Iterator[str]:
    """Every key that is no section, dotted."""
    for section in sections():
        for key in _own(section.model):
            yield _dotted(section.name, key.name)


@dataclass(frozen=True, slots=True)
class Section:
    """A section where it stands in the file: its dotted name (`[]` follows a list), its model and what it is for."""

    name: str
    model: type[Any]
    description: str


def sections() -> Iterator[Section]:
    """Every section that has keys of its own."""
    waiting = [Section("", Config, "Of the process as a whole.")]
    while waiting:
        section = waiting.pop(0)
        if any(True for _ in _own(section.model)):
            yield section
        if section.name == "defaults":
            continue  # what stands below its keys is described below those of topics
        for key in each_key_of(section.model):
            inner = section_of(key.annotation) or section_of(item_of(key.annotation))
            if inner is not None:
                name = _dotted(section.name, key.name) + _suffix(key.annotation)
                waiting.append(Section(name, inner, words_of(section.name, key)))


def words_of(section: str, key: Key) -> str:
    """What a key of the section does; `{side}` in its description is the last part of the section's name."""
    return key.description.replace("{side}", section.rpartition(".")[2])


def _suffix(annotation: Any) -> str:
    if is_list(annotation):
        return "[]"
    return ".*" if get_origin(unwrapped(annotation)) is dict else ""


def _own(section: type[Any]) -> Iterator[Key]:
    """Keys with a value of their own."""
    for key in each_key_of(section):
        if section_of(key.annotation) is None and section_of(item_of(key.annotation)) is None:
            yield key


def _dotted(section: str, key: str) -> str:
    return f"{section}.{key}" if section else key


def _row(key: Key) -> str:
    return f"| `{key.name}` | {key.description} | {_takes(key)} | {_default(key)} |"


def _takes(key: Key) -> str:
    kind = unwrapped(key.annotation)
    quantity, told = _note(key, Quantity), _note(key, Takes)
    if told is not None:
        return told.words
    if get_origin(kind) is dict:
        return _MAPPINGS.get(unwrapped(item_of(kind)), "`{name: pattern}`")
    if get_origin(kind) is tuple:
        return _list(item_of(kind))
    if quantity is not None:
        return _range(quantity)
    if kind is bool:
        return "`true` or `false`"
    if get_args(kind):
        return ", ".join(f"`{choice}`" for choice in get_args(kind))
    return "`host:port`" if kind is HostPort else "text"


_MAPPINGS: dict[Any, str] = {HostPort: "`{node id: host:port}`", Any: "`{name: value}`"}


def _list(item: Any) -> str:
    choices = get_args(unwrapped(item))
    if choices:
        return f"a list of {', '.join(f'`{choice}`' for choice in choices)}"
    return "a list of texts" if item == Text else _LISTS.get(unwrapped(item), "a list of networks")


def _range(quantity: Quantity) -> str:
    if quantity in (MILLISECONDS, SECONDS):
        return f"{'ms' if quantity is MILLISECONDS else 's'}, or a duration"
    if quantity.units:
        return "bytes, or a size" + (f"; at least {quantity.low}" if quantity.low > 1 else "")
    return f"a number from {quantity.low}" + (f" to {quantity.high}" if quantity.high < _ENDLESS else "")


def _note(key: Key, kind: type[_Note]) -> _Note | None:
    places = [getattr(part, "__metadata__", ()) for part in (key.annotation, *get_args(key.annotation))]
    return next((note for notes in places for note in notes if isinstance(note, kind)), None)


def _default(key: Key) -> str:
    if key.is_needed:
        return "needed"
    default = key.default
    if default is None:
        return "none"
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    return "none" if default in ({}, ()) else f"`{default}`"


if __name__ == "__main__":
    sys.stdout.write(page())
