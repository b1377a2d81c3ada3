"""Suggests the line to write instead of an invalid value or an unknown key.

Most suggestions follow from the model. For example, if a list is expected, a single value becomes a list of one. A key
can declare further suggestions along with its description (`described(corrections=..., misnomers=...)`): words that
people write as its value, and other names that people use for it.
"""

import json
import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Any

from pydantic import TypeAdapter, ValidationError

from sluicegate.config.files.source import Path
from sluicegate.config.keys import (
    Key,
    annotation_at,
    each_key_of,
    holds_secret,
    is_list,
    item_of,
    key_at,
    section_of,
    unwrapped,
)
from sluicegate.config.values.kinds import LEAVE_OUT

_YES, _NO = frozenset({"true", "yes", "on"}), frozenset({"false", "no", "off", "none"})
_PLAIN = re.compile(r"[A-Za-z0-9_.*-]*[A-Za-z0-9_.*]")
_NONSENSE = "?"  # only free text accepts this value
_OPEN = "…"
_VALUE = "{value}"
_MAX_TEXT = 80


def correction_of(path: Path, value: Any, data: Any, root: type[Any]) -> str | None:
    """Return the correction of `value` at `path`, as `write KEY: VALUE`, or None if no correction is known.

    `data` is the whole file, which contains a list's other items. `root` is the section that describes the file.
    """
    key = key_at(root, path)
    if key is None:
        return None
    if isinstance(path[-1], int):
        return _of_item(path, key, value, _at(data, path[:-1]))
    annotation = annotation_at(root, path)
    is_declared = path[-1] == key.name and not is_list(annotation)  # a list's corrections apply to its items
    correction = _declared(key, value) if is_declared else None
    if correction is None:
        correction = _derived(key, annotation, value)
    return correction if correction in (None, LEAVE_OUT) else _line(str(path[-1]), correction)


def misnomer_of(path: Path, value: Any, root: type[Any]) -> str | None:
    """Return what to write instead of the unknown key `path`, or None if no key in its section declares that name."""
    section = section_of(annotation_at(root, path[:-1]))
    if section is None:
        return None
    for key in each_key_of(section):
        line = key.misnomers.get(str(path[-1]).lower())
        if line is not None:
            shown = _OPEN if holds_secret(key.annotation) or not isinstance(value, str) else _flow(value)
            return f"write {line.replace(_VALUE, shown)}"
    return None


def _line(name: str, value: str) -> str:
    """Return the line `name: value`, or `value` itself if it already contains a key."""
    return f"write {value}" if re.match(r"[a-z_.]+: ", value) else f"write {name}: {value}"


def _declared(key: Key, value: Any) -> str | None:
    if not isinstance(value, str):
        return None
    word = value.strip().lower()
    found = next((text for pattern, text in key.corrections.items() if fnmatchcase(word, pattern)), None)
    return None if found is None else found.replace(_VALUE, _flow(value))


def _of_item(path: Path, key: Key, value: Any, items: Any) -> str | None:
    """Correct one item of a list. Return the corrected list of words, or the corrected section."""
    section = section_of(item_of(key.annotation))
    if section is not None:
        inner = _section_line(section, value)
        return f"write - {inner[1:-1]}" if inner is not None and inner != "{}" else None
    place = path[-1]
    declared = _declared(key, value)
    if declared is None or not isinstance(items, list) or not isinstance(place, int):
        return None
    words = [declared if i == place else _declared(key, item) or item for i, item in enumerate(items)]
    words = list(dict.fromkeys(word for word in words if isinstance(word, str)))
    return f"write {key.name}: {_flow_list(words)}"


def _derived(key: Key, annotation: Any, value: Any) -> str | None:
    section = section_of(annotation)
    if section is not None:
        if isinstance(value, str) and value.strip().lower() in _NO and not key.is_required:
            return LEAVE_OUT
        return _section_line(section, value)
    if is_list(annotation):
        inner = section_of(item_of(annotation))
        if inner is not None:
            line = _section_line(inner, value)
            return None if line is None else f"[{line}]"
        if not isinstance(value, str) or holds_secret(annotation):
            return None
        words = [key.corrections.get(word.lower(), word) for word in re.split(r"[,\s]+", value.strip()) if word]
        return _flow_list(words) if words and _fits(annotation, words) else None
    if isinstance(value, list) and not holds_secret(annotation) and all(isinstance(item, str) for item in value):
        joined = ",".join(value)
        return joined if value and _fits(annotation, joined) else None
    return "true" if unwrapped(annotation) is bool and isinstance(value, dict | list) else None


def _section_line(section: type[Any], value: Any) -> str | None:
    """Return the section that a bare word probably stands for, in braces. Return None if the word fits no key."""
    if not isinstance(value, str):
        return None
    keys = each_key_of(section)
    word = value.strip()
    given: dict[str, str] = {}
    if word.lower() not in _YES:
        meant = _key_for(keys, word)
        if meant is None:
            return None
        given[meant.name] = _set(meant) if meant.name == word else _flow(word)
    given |= {key.name: _set(key) for key in keys if key.is_required and key.name not in given}
    return "{" + ", ".join(f"{name}: {text}" for name, text in given.items()) + "}"


def _set(key: Key) -> str:
    """Return an example value for a key: `true` for a flag, `{}` for a section, otherwise a placeholder."""
    if section_of(key.annotation) is not None:
        return "{}"
    return "true" if unwrapped(key.annotation) is bool else _OPEN


def _key_for(keys: Iterable[Key], word: str) -> Key | None:
    """Return the key that a bare word names, or of which it is a value. Prefers required keys. None if no key fits."""
    ordered = sorted(keys, key=lambda key: not key.is_required)
    for key in ordered:
        if key.name == word and _set(key) != _OPEN:
            return key
    has_secret = any(holds_secret(key.annotation) for key in ordered)
    for key in ordered:
        kind = unwrapped(key.annotation)
        if kind is bool or section_of(key.annotation) is not None:
            continue
        if has_secret and (holds_secret(key.annotation) or _fits(key.annotation, _NONSENSE)):
            continue  # the word may be the secret
        if _fits(key.annotation, word):
            return key
    return None


def _fits(annotation: Any, value: Any) -> bool:
    try:
        TypeAdapter(annotation).validate_python(value)
    except (ValidationError, ValueError):
        return False
    return True


def _at(data: Any, path: Path) -> Any:
    for part in path:
        try:
            data = data[part]
        except (LookupError, TypeError):
            return None
    return data


def _flow_list(words: list[str]) -> str:
    return f"[{', '.join(map(_flow, words))}]"


def _flow(word: str) -> str:
    """Return a string as YAML: plain if that is unambiguous, otherwise in quotes."""
    text = word.strip()
    if len(text) > _MAX_TEXT:
        return _OPEN
    is_plain = _PLAIN.fullmatch(text) is not None and text[0] not in "*-"
    return text if is_plain else json.dumps(text, ensure_ascii=False)
