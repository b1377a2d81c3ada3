"""UTF-8 can encode every text in a configuration, for records, headers, topic names, responses and logs."""

import dataclasses
import typing
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from sluicegate.config.files.yaml_source import read_yaml
from sluicegate.config.loading import ConfigError, load
from sluicegate.config.model import Config
from sluicegate.config.section import is_section

HALF = "a\ud800"
FILE = 'upstream: {bootstrap: ["127.0.0.1:9"]}\nlisten: {bootstrap: "127.0.0.1:9"}\n'
SENSITIVE = FILE + "topics:\n- match: t\n  sensitive: [{name: m, action: mask, fields: [%s], replacement: %s}]"


def text_keys_with_types(annotation: Any, path: str = "", above: tuple[Any, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Yield the path and the type of each text below `annotation`. Addresses and secrets are read as a whole."""
    if annotation is str:
        yield path, annotation
    elif typing.get_origin(annotation) is typing.Annotated:
        within = list(text_keys_with_types(typing.get_args(annotation)[0], path, above))
        yield from [(path, annotation)] if within and within[0][0] == path else within
    elif isinstance(annotation, type) and is_section(annotation):
        if annotation not in above:
            hints = typing.get_type_hints(annotation, include_extras=True)
            for each in dataclasses.fields(annotation):
                yield from text_keys_with_types(hints[each.name], f"{path}.{each.name}", (*above, annotation))
    else:
        for i, part in enumerate(typing.get_args(annotation)):
            yield from text_keys_with_types(part, f"{path}[{i}]", above)


TEXTS = [
    each for each in text_keys_with_types(Config) if not each[0].endswith("file")
]  # file names may have any encoding


def test_all_policy_text_keys_are_covered_by_the_surrogate_tests() -> None:
    paths = " ".join(path for path, _ in TEXTS)

    for expected in ("sensitive", "replacement", "quarantine", "owner", "patterns", "required", "cel"):
        assert expected in paths


@pytest.mark.parametrize("kind", [kind for _, kind in TEXTS], ids=[path for path, _ in TEXTS])
def test_rejects_text_with_lone_surrogate(kind: Any) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(kind).validate_python(HALF)


@pytest.mark.parametrize(("field", "replacement"), [("a", r'"\ud800"'), (r'"a\udfff"', "x")])
def test_lone_surrogate_error_is_reported_for_each_sensitive_key(field: str, replacement: str) -> None:
    with pytest.raises(ConfigError, match="a lone surrogate"):
        load(read_yaml(SENSITIVE % (field, replacement), "f"), {})


def test_replacement_may_be_empty_or_contain_any_unicode_character() -> None:
    for text in ("", "\U0001f600", "\0"):
        config = load(read_yaml(SENSITIVE % ("a", '"' + text.replace("\0", r"\0") + '"'), "f"), {}).config

        found = config.topics[0].sensitive
        assert found is not None and found[0].replacement == text
