"""Converts the scalars in AsyncAPI documents to JSON values, by YAML 1.2's core schema.

AsyncAPI documents are YAML 1.2, in which `on`, `off`, `yes` and `no` are strings.
"""

import math
import re
from typing import Any, Final

import yaml

from sluicegate.config.files.yaml_nodes import BadNode, check_tag

_STANDARD: Final = "tag:yaml.org,2002:"
_TAGS: Final = frozenset({"!", *(_STANDARD + kind for kind in ("bool", "int", "float", "null", "str", "timestamp"))})
_TEXTS: Final = frozenset({"!", _STANDARD + "timestamp"})
_NOTHING: Final = frozenset({"", "~", "null", "Null", "NULL"})
_FLAGS: Final = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGER = re.compile(r"[-+]?[0-9]+")
_OF_BASE = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_NUMBER = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_MOST_DIGITS = 1000


def json_value_of(node: yaml.ScalarNode) -> Any:
    """Return a scalar's value. Timestamps stay strings. Raises BadNode."""
    check_tag(node, _TAGS)
    text = str(node.value)
    is_plain_text = node.tag == f"{_STANDARD}str" and node.style is not None
    if node.tag in _TEXTS or is_plain_text:
        return text
    if text in _NOTHING:
        return None
    if text in _FLAGS:
        return _FLAGS[text]
    return _number(node, text)


def _number(node: yaml.ScalarNode, text: str) -> Any:
    if len(text) > _MOST_DIGITS:
        return text
    if _INTEGER.fullmatch(text):
        return int(text)
    if _OF_BASE.fullmatch(text):
        return int(text, 0)
    if _NUMBER.fullmatch(text):
        number = float(text)
        if not math.isfinite(number):
            raise BadNode(node, "a number that JSON does not have")
        return number
    return text
