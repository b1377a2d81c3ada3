"""Resolves references to secrets by the names of Kafka's config providers (KIP-297, KIP-887): `${env:NAME}`,
`${file:PATH:KEY}` (a file of `key=value` lines) and `${directory:PATH:FILE}` (a whole file).

References are resolved when a connection's settings are checked, so Spark's options contain no secrets.
"""

import os
import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path

_REFERENCE = re.compile(r"\$\{(env|file|directory):([^}]*)\}")
_MOST_BYTES = 64 * 1024


class NoSecret(Exception):
    """A reference that cannot be resolved; the text names it and no secret."""


def resolved(given: Mapping[str, str]) -> dict[str, str]:
    """Return the settings with references replaced by their values. Raises NoSecret."""
    return {name: _REFERENCE.sub(partial(_value, name), value) for name, value in given.items()}


def _value(name: str, found: re.Match[str]) -> str:
    provider, rest = found[1], found[2]
    if provider == "env":
        if rest not in os.environ:
            raise NoSecret(f"{name}: {found[0]}: the environment variable {rest} is not set")
        return os.environ[rest]
    path, colon, key = rest.rpartition(":")
    if not colon or not path or not key:
        shape = "${file:PATH:KEY}" if provider == "file" else "${directory:PATH:FILE}"
        raise NoSecret(f"{name}: {found[0]}: expected {shape}")
    if provider == "directory":
        return _text(name, found[0], Path(path, key)).strip()
    for line in _text(name, found[0], Path(path)).splitlines():
        its_key, equals, value = line.partition("=")
        if equals and its_key.strip() == key:
            return value.strip()
    raise NoSecret(f"{name}: {found[0]}: {path} has no line {key}=")


def _text(name: str, reference: str, path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise NoSecret(f"{name}: {reference}: {path} is larger than {_MOST_BYTES // 1024} KiB")
        return content.decode()
    except OSError as error:
        raise NoSecret(f"{name}: {reference}: {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise NoSecret(f"{name}: {reference}: {path} is not text") from error
