"""The section `topic_files`: the files of teams, and the topics of each (docs/policy-files.md)."""

from typing import Annotated, Any

from pydantic import BeforeValidator

from sluicegate.config.reference import json_schema_kinds as schema
from sluicegate.config.section import described, section
from sluicegate.config.values.kinds import TopicPatternList, WrittenFileName


@section
class TopicFile:
    """Files with entries of `topics`."""

    path: WrittenFileName = described(
        "name of a file, or a glob, as `policies/*.yaml`, relative to this file",
        misnomers=dict.fromkeys(("file", "files", "name"), "path: {value}"),
    )
    topics: TopicPatternList | None = described(
        "scope of the files: patterns as in `topics[].match`. An entry that is not provably within one of them is an "
        "error; none: all topics",
        default=None,
        misnomers=dict.fromkeys(("match", "scope", "topic"), "topics: [{value}]"),
    )


def _items(value: Any) -> Any:
    """One item is as good as a list of one, and a path as good as an item with it."""
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list):
        return items
    return [{"path": item} if isinstance(item, str) else item for item in items]


TopicFiles = Annotated[tuple[TopicFile, ...], BeforeValidator(_items), schema.OrTexts()]
