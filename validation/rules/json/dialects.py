"""Translates JSON Schemas that registries accept but jsonschema-rs rejects.

The result has the meaning that Java's libraries give to the schema. Such schemas use draft 3, keywords in another
draft's form, unknown values of `$schema`, or patterns in Java's dialect.
"""

import re
from typing import Any, Final

from sluicegate.validation.rules.json.draft_3 import DRAFT_3, METASCHEMA_NAME
from sluicegate.validation.rules.schemas.content import Formats

_DRAFT_4, _DRAFT_7 = "http://json-schema.org/draft-04/schema#", "http://json-schema.org/draft-07/schema#"
_KNOWN: Final = re.compile(r"https?://json-schema\.org/(?:draft-0[467]/|draft/(?:2019-09|2020-12)/)?schema#?")
_NAMED: Final = frozenset(
    {"properties", "patternProperties", "definitions", "$defs", "dependentSchemas", "dependencies"}
)
_INNER: Final = frozenset(
    {"items", "additionalItems", "prefixItems", "contains", "unevaluatedItems", "additionalProperties"}
    | {"propertyNames", "unevaluatedProperties", "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "extends"}
)
_TEXTS: Final = ("title", "description", "$comment", "format", "$id")
_LIMITS: Final = (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum"))
_TIME_OF_DAY: Final = "^(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]$"  # in later drafts, times have a zone
_COLOUR_NAMES: Final = (
    "aqua|black|blue|fuchsia|gray|green|lime|maroon|navy|olive|orange|purple|red|silver|teal|white|yellow"
)
_PERCENT_OR_BYTE: Final = r"\s*[0-9]{1,3}%?\s*"
_COLOUR: Final = (
    rf"^(?i:#[0-9a-f]{{3}}|#[0-9a-f]{{6}}|{_COLOUR_NAMES}|rgb\({_PERCENT_OR_BYTE}(?:,{_PERCENT_OR_BYTE}){{2}}\))$"
)
_PATTERNS_OF_FORMATS: Final = {"time": _TIME_OF_DAY, "color": _COLOUR}
"""Draft 3's formats that later drafts lack or define differently. The colours are those of CSS 2.1."""
_OLD_FORMATS: Final = {"ip-address": "ipv4", "host-name": "hostname"}


class SeparatePatterns:
    """A separate document for patterns.

    Up to draft 7, jsonschema-rs also requires that a pattern is valid in ECMA-262. Patterns in Java's dialect may not
    be. Later drafts lack this requirement.
    """

    name: Final = "urn:sluicegate:patterns"

    def __init__(self) -> None:
        self._patterns: dict[str, Any] = {}

    def referring(self, pattern: str) -> dict[str, str]:
        """Return a schema that refers to a pattern."""
        key = str(len(self._patterns))
        self._patterns[key] = {"pattern": pattern}
        return {"$ref": f"{self.name}#/$defs/{key}"}

    def documents(self) -> dict[str, Any]:
        """Return the document with all patterns so far, by its name; an empty dict if there are no patterns."""
        document = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": self._patterns}
        return {self.name: document} if self._patterns else {}


def translated(schema: Any, formats: Formats = Formats.ASSERT, patterns: SeparatePatterns | None = None) -> Any:
    """Return a schema that jsonschema-rs can probably read. Does not modify the input.

    Moves patterns to `patterns`, if it is given. Raises RecursionError.
    """
    if not isinstance(schema, dict):
        return schema
    named = schema.get("$schema")
    text = named if isinstance(named, str) else ""
    has_old_limits = "draft-03" in text or "draft-04" in text
    dialect = _Dialect("draft-03" in text, has_old_limits, formats, patterns)
    made: dict[str, Any] = dialect.part(schema)
    made.pop("$schema", None)
    if dialect.is_draft_3:
        return {"$schema": _DRAFT_4, **made}
    if _KNOWN.fullmatch(text):
        return {"$schema": text, **made}
    # If no draft is declared, jsonschema-rs applies the newest, in which `items` is a single schema. Confluent's
    # libraries use draft 7.
    return {"$schema": _DRAFT_7, **made} if text or dialect.has_listed_items else made


class _Dialect:
    """One schema's draft. `has_old_limits` is whether exclusive limits are true or false, as in drafts 3 and 4."""

    def __init__(
        self, is_draft_3: bool, has_old_limits: bool, formats: Formats, patterns: SeparatePatterns | None
    ) -> None:
        self.is_draft_3 = is_draft_3
        self._formats = formats
        self._patterns = patterns
        self.has_listed_items = False
        self._has_old_limits = has_old_limits

    def part(self, schema: Any) -> Any:
        """Translate a schema and all schemas in it. Leaves other values unchanged."""
        if isinstance(schema, list):
            return [self.part(one) for one in schema]
        if not isinstance(schema, dict):
            return schema
        made = {keyword: self._value(keyword, value) for keyword, value in schema.items()}
        self.has_listed_items |= isinstance(made.get("items"), list)
        for keyword in _TEXTS:
            if keyword in made and not isinstance(made[keyword], str):
                del made[keyword]
        if isinstance(made.get("pattern"), str):
            made["pattern"] = rust_pattern(made["pattern"])
        if not self._has_old_limits:
            _with_numeric_limits(made)
        if self.is_draft_3:
            self._draft_3(made, schema)
        if made.get("items") == []:  # in this case, all items are additional
            rest = made.pop("additionalItems", True)
            made["items"] = {"not": {}} if rest is False else rest if isinstance(rest, dict) else {}
        _with_plain_types(made)
        _with_names(made)
        pattern = made.get("pattern")
        if self._patterns is not None and isinstance(pattern, str) and _INTERSECTION not in pattern:
            made["allOf"] = [*made.get("allOf", ()), self._patterns.referring(made.pop("pattern"))]
        return made

    def _value(self, keyword: str, value: Any) -> Any:
        if keyword in _INNER:
            return self.part(value)
        if keyword not in _NAMED or not isinstance(value, dict):
            return value
        parts = {name: self.part(one) for name, one in value.items()}
        return {rust_pattern(name): one for name, one in parts.items()} if keyword == "patternProperties" else parts

    def _draft_3(self, made: dict[str, Any], schema: dict[str, Any]) -> None:
        """Translate draft 3's keywords to draft 4's."""
        also: list[Any] = []
        extended = made.pop("extends", None)
        also += extended if isinstance(extended, list) else [extended] if isinstance(extended, dict) else []
        if "disallow" in made:
            also.append({"not": self.part({"type": made.pop("disallow")})})
        if "divisibleBy" in made:
            made["multipleOf"] = made.pop("divisibleBy")
        kinds = made.get("type")
        branches = [kind for kind in (kinds if isinstance(kinds, list) else [kinds]) if isinstance(kind, dict)]
        if branches and isinstance(kinds, list):
            also.append(
                {"anyOf": [self.part(one) if isinstance(one, dict) else self.part({"type": one}) for one in kinds]}
            )
            del made["type"]
        elif branches:
            also.append(self.part(made.pop("type")))
        dependencies = made.get("dependencies")
        if isinstance(dependencies, dict):
            made["dependencies"] = {name: [one] if isinstance(one, str) else one for name, one in dependencies.items()}
        if made.get("format") in _PATTERNS_OF_FORMATS:
            pattern = _PATTERNS_OF_FORMATS[made.pop("format")]
            also += [{"pattern": pattern}] if self._formats is Formats.ASSERT else []
        elif "format" in made:
            made["format"] = _OLD_FORMATS.get(made["format"], made["format"])
        name, _, place = str(made.get("$ref")).partition("#")
        if name == DRAFT_3:
            made["$ref"] = f"{METASCHEMA_NAME}#{place}" if place else METASCHEMA_NAME
        properties = schema.get("properties")
        if isinstance(properties, dict):
            made["required"] = [
                name for name, one in properties.items() if isinstance(one, dict) and one.get("required") is True
            ]
        if also:
            made["allOf"] = [*made.get("allOf", ()), *also]


def _with_numeric_limits(made: dict[str, Any]) -> None:
    """Replace `exclusiveMinimum: true` next to `minimum` by the number, as in draft 6 and later."""
    for exclusive, limit in _LIMITS:
        if isinstance(made.get(exclusive), bool) and made.pop(exclusive) and limit in made:
            made[exclusive] = made.pop(limit)


def _with_plain_types(made: dict[str, Any]) -> None:
    """Remove `any`, and types that are listed twice."""
    kinds = made.get("type")
    if kinds == "any" or (isinstance(kinds, list) and "any" in kinds):
        del made["type"]
    elif isinstance(kinds, list) and all(isinstance(kind, str) for kind in kinds):
        made["type"] = list(dict.fromkeys(kinds))


def _with_names(made: dict[str, Any]) -> None:
    """Remove duplicate names, and `required: true`, which has no meaning in a property's own schema after draft 3."""
    required = made.get("required")
    if isinstance(required, bool) or required == []:
        del made["required"]
    elif isinstance(required, list) and all(isinstance(name, str) for name in required):
        made["required"] = list(dict.fromkeys(required))


_TERMINATOR: Final = "(?:\\r?\\n|[\\r\u0085\u2028\u2029])?\\z"
# Matches a surrogate pair, a reference to a named group, an escape (with a hyphen that may follow it in a set), or the
# beginning or end of a set.
_TOKEN: Final = re.compile(
    r"\\u(?P<high>[dD][89abAB][0-9a-fA-F]{2})\\u(?P<low>[dD][c-fC-F][0-9a-fA-F]{2})|\\k<(?P<group>[^<>]+)>"
    r"|\\(?P<escaped>.)(?P<hyphen>-(?!\]))?|(?P<bracket>[\[\]])",
    re.DOTALL,
)
_GROUP: Final = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|\((?!\?)|\(\?P?<(?P<name>[^=!<>][^<>]*)>", re.DOTALL)
# The intersection of two sets in Java. jsonschema-rs reads the inner bracket as a character, so such a pattern stays
# unusable.
_INTERSECTION: Final = "&&["
_AT_END: Final = re.compile(r"\)*\Z")
_CONTROLS: Final = {"0": r"\x00", "b": r"\x08"}


def rust_pattern(pattern: str) -> str:
    r"""Convert a pattern from ECMA-262 or Java to Rust's syntax. Translates `\Z` (before a last line terminator),
    `[\w-.]`, `[\b]`, `\0`, `\k<name>` and surrogate pairs.
    """
    depth = 0
    made: list[str] = []
    begin = 0
    for token in _TOKEN.finditer(pattern):
        made.append(pattern[begin : token.start()])
        begin = token.end()
        bracket, escaped, hyphen = token["bracket"], token["escaped"], token["hyphen"]
        if bracket is not None:
            depth = depth + 1 if bracket == "[" else max(0, depth - 1)
            made.append(bracket)
        elif token["high"] is not None:
            made.append(f"\\u{{{_whole(token['high'], token['low']):x}}}")
        elif token["group"] is not None:
            made.append(_numbered(token["group"], pattern) or token[0])
        elif escaped == "Z" and depth == 0:
            is_last = _AT_END.match(pattern, token.end()) is not None
            made.append((_TERMINATOR if is_last else f"(?={_TERMINATOR})") + (hyphen or ""))
        elif hyphen and depth and escaped in "wWdDsS":
            made.append(f"\\{escaped}\\-")
        elif (escaped == "0" and not pattern[begin : begin + 1].isdigit()) or (escaped == "b" and depth):
            made.append(_CONTROLS[escaped] + (hyphen or ""))
        else:
            made.append(token[0])
    return "".join(made) + pattern[begin:]


def _whole(high: str, low: str) -> int:
    """Return the code point of a surrogate pair."""
    return 0x10000 + ((int(high, 16) - 0xD800) << 10) + int(low, 16) - 0xDC00


def _numbered(name: str, pattern: str) -> str | None:
    """Return a numbered reference for a named one; None if there is no group with that name."""
    names = [found["name"] for found in _GROUP.finditer(pattern) if found[0].startswith("(")]
    return f"(?:\\{names.index(name) + 1})" if name in names else None
