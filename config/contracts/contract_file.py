"""Reads contracts of all kinds: Open Data Contract Standard contracts, and AsyncAPI documents."""

from collections.abc import Callable
from pathlib import Path as FilePath

from sluicegate.config.contracts.asyncapi.published_schemas import VERSION_KEY, problems_in
from sluicegate.config.contracts.asyncapi.references import References
from sluicegate.config.contracts.asyncapi.scalars import json_value_of
from sluicegate.config.contracts.asyncapi.topics import asyncapi_topics
from sluicegate.config.contracts.document import checked_contract, value_of
from sluicegate.config.contracts.topics import topics_of
from sluicegate.config.files.source import Source
from sluicegate.config.files.yaml_source import read_content, read_yaml
from sluicegate.config.values.contract import TopicContract

FindReferences = Callable[[Source, FilePath], References]
"""Returns an object that follows the references in an AsyncAPI document, given with its file."""


def contract_in_text(text: str, name: str) -> Source:
    """Return a contract's content, with its errors in `problems`. `name` is the name of its place, for messages."""
    source = read_yaml(text, name, value_of)
    return _checked(read_yaml(text, name, json_value_of) if _is_asyncapi(source) else source)


def contract_in_file(held: Source, file: FilePath) -> Source:
    """Return a contract's content, with its errors in `problems`. `held` is the file, read with `value_of`."""
    if held.content is None or not _is_asyncapi(held):
        return _checked(held)
    again = read_content(held.content, str(file), json_value_of)
    again.digests |= held.digests
    return _checked(again)


def topics_in(
    held: Source, file: FilePath, registry: str | None, mode: str, references: FindReferences = References
) -> list[TopicContract]:
    """Return each topic in a contract that has no problems. Errors are reported in `held.problems`.

    `registry` names the registry with the schemas of Avro and Protobuf records, or is None. `mode` is the mode of the
    rules. By default, references to files are errors.
    """
    if _is_asyncapi(held):
        return asyncapi_topics(references(held, file), file, registry, mode)
    return topics_of(held, file, registry, mode)


def missing_topics(held: Source) -> str:
    """Return why a contract has no topics."""
    if _is_asyncapi(held):
        return (
            "no channel uses the protocol kafka or kafka-secure: none has such a server or, without "
            "servers, a kafka binding"
        )
    return "the contract has neither a server of type kafka nor a schema of physicalType topic"


def _is_asyncapi(source: Source) -> bool:
    return VERSION_KEY in source.data


def _checked(source: Source) -> Source:
    if not _is_asyncapi(source):
        return checked_contract(source)
    if source.readable:
        source.problems += problems_in(source)
    return source
