"""Reads the proxy's configuration file as an option of jobs, for the owners of topics."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sluicegate.pipeline.commands.running import exit_with_reason

if TYPE_CHECKING:
    from sluicegate.config.model import Config

PolicyFile = Annotated[
    Path | None,
    typer.Option(
        "--policies", metavar="FILE", help="Configuration file of the proxy, which names the owners of topics."
    ),
]


def configuration_in(file: Path | None) -> "Config | None":
    """Return the configuration in a file; None without a file. An invalid file ends the command."""
    if file is None:
        return None
    from sluicegate.config.loading import ConfigError, load_file  # noqa: PLC0415  # only with a file of policies

    try:
        return load_file(file, os.environ).config
    except ConfigError as error:
        exit_with_reason(str(error))


def owners_of(config: "Config | None", topics: Sequence[str]) -> dict[str, str]:
    """Return the names of the owners, by topic, without topics that have no owner."""
    if config is None:
        return {}
    from sluicegate.validation.topic_patterns import TopicPatterns  # noqa: PLC0415  # only with a file of policies

    patterns = TopicPatterns([topic.match for topic in config.topics])
    places = {topic: patterns.first_match(topic) for topic in topics}
    found = {topic: None if place is None else config.topics[place].owner for topic, place in places.items()}
    owners = {topic: owner or config.defaults.owner for topic, owner in found.items()}
    return {topic: str(owner) for topic, owner in owners.items() if owner is not None}
