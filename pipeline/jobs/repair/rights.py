"""The rights that a repair needs, and which of them its login lacks."""

from collections.abc import Collection, Iterable, Mapping

from sluicegate.pipeline.kafka.rights import Resource, Right, RightOperation, missing
from sluicegate.pipeline.topics import Topics
from sluicegate.pipeline.writing.record_writers import CannotWriteTopic

_NO_NAME = "NAME"


def for_progress(group_id: str, prefix: str = "") -> Right:
    """Return the right to keep progress in a group; `prefix`: see `Right`."""
    return Right(Resource.GROUP, group_id, RightOperation.READ, prefix)


def for_transactions(group_id: str, prefix: str = "") -> Right:
    """Return the right to a group's transactional ids, one for each partition."""
    return Right(Resource.TRANSACTIONAL_ID, f"{group_id}.0", RightOperation.WRITE, prefix or f"{group_id}.")


def for_reading(topics: Iterable[str]) -> list[Right]:
    """Return the rights to read topics and their settings."""
    return [
        Right(Resource.TOPIC, name, each)
        for name in topics
        for each in (RightOperation.READ, RightOperation.DESCRIBE_CONFIGS)
    ]


def for_writing(topics: Collection[str]) -> list[Right]:
    """Return the rights to write to topics."""
    return [Right(Resource.TOPIC, name, RightOperation.WRITE) for name in topics]


def for_clean_topics(topics: Topics, targets: Mapping[str, str]) -> list[Right]:
    """Return the rights to create missing clean topics and to write to all."""
    with topics.cluster() as cluster:
        there = cluster.topic_ids(targets.values())
    found: list[Right] = []
    for to in targets.values():
        if not there.get(to):  # invisible topics have no id either
            found.append(Right(Resource.TOPIC, to, RightOperation.CREATE))
        found += [*for_writing([to]), *for_reading([to])]
        group = f"sluicegate-repair.{to}."
        found += [for_progress(f"{group}0", group), for_transactions(f"{group}0", group)]
    return found


def lacking(topics: Topics, rights: Iterable[Right]) -> list[str]:
    """Return a sentence for each right that the login lacks, with the ACL that grants it."""
    with topics.cluster() as cluster:
        return [in_words(topics, right) for right in missing(cluster, rights)]


def in_words(topics: Topics, right: Right) -> str:
    """Return what the login of these topics lacks, and the ACL that grants it."""
    return right.in_words(f"User:{topics.settings.get('sasl.username', _NO_NAME)}")


def check(lacks: Collection[str]) -> None:
    """Raises CannotWriteTopic, which names all missing rights."""
    if lacks:
        raise CannotWriteTopic("nothing was written, because rights are missing:\n" + "\n".join(lacks))
