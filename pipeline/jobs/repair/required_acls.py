"""Lists the ACLs that a repair requires, and finds those that its login lacks."""

from collections.abc import Collection, Iterable, Mapping

from sluicegate.pipeline.kafka.acls import BrokerOperation, RequiredAcl, Resource, find_missing_acls
from sluicegate.pipeline.source.topics import Topics

ACLS_MISSING = "ACLs are missing"
_NO_NAME = "NAME"


def acl_for_progress(group_id: str, prefix: str = "") -> RequiredAcl:
    """Return the ACL that allows storing progress in a group. For `prefix` see `RequiredAcl`."""
    return RequiredAcl(Resource.GROUP, group_id, BrokerOperation.READ, prefix)


def acl_for_transactions(group_id: str, prefix: str = "") -> RequiredAcl:
    """Return the ACL for a group's transactional ids, one for each partition."""
    return RequiredAcl(Resource.TRANSACTIONAL_ID, f"{group_id}.0", BrokerOperation.WRITE, prefix or f"{group_id}.")


def acls_for_reading(topics: Iterable[str]) -> list[RequiredAcl]:
    """Return the ACLs that allow reading topics and their settings."""
    return [
        RequiredAcl(Resource.TOPIC, name, each)
        for name in topics
        for each in (BrokerOperation.READ, BrokerOperation.DESCRIBE_CONFIGS)
    ]


def acls_for_writing(topics: Collection[str]) -> list[RequiredAcl]:
    """Return the ACLs that allow writing to topics."""
    return [RequiredAcl(Resource.TOPIC, name, BrokerOperation.WRITE) for name in topics]


def acls_for_clean_topics(topics: Topics, targets: Mapping[str, str]) -> list[RequiredAcl]:
    """Return the ACLs that allow creating missing clean topics and writing to all of them."""
    with topics.cluster() as cluster:
        there = cluster.topic_ids(targets.values())
    found: list[RequiredAcl] = []
    for to in targets.values():
        if not there.get(to):  # topics that the login cannot see also have no id
            found.append(RequiredAcl(Resource.TOPIC, to, BrokerOperation.CREATE))
        found += [*acls_for_writing([to]), *acls_for_reading([to])]
        group = f"sluicegate-repair.{to}."
        found += [acl_for_progress(f"{group}0", group), acl_for_transactions(f"{group}0", group)]
    return found


def missing_acl_sentences(topics: Topics, required: Iterable[RequiredAcl]) -> list[str]:
    """Return a sentence for each ACL that the login lacks, with the command that adds it."""
    with topics.cluster() as cluster:
        return [acl_sentence(topics, acl) for acl in find_missing_acls(cluster, required)]


def acl_sentence(topics: Topics, acl: RequiredAcl) -> str:
    """Return a sentence about an ACL that the login lacks, with the command that grants it."""
    return acl.in_words(f"User:{topics.settings.get('sasl.username', _NO_NAME)}")
