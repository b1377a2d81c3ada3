"""Writes the first configuration: everything observed, nothing rejected, with words for who reads it next."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sluicegate.config.listen import NODE_ID
from sluicegate.config.values.address import HostPort
from sluicegate.protocol.integers import LONG_MAX
from sluicegate.proxy.bootstrap.grouping import grouped
from sluicegate.proxy.bootstrap.survey import Survey
from sluicegate.validation.cluster_settings import (
    AFTER_MAX,
    BEFORE_MAX,
    CLEANUP_POLICY,
    MAX_MESSAGE_BYTES,
    TIMESTAMP_TYPE,
    ClusterSettings,
)
from sluicegate.validation.policy import TimestampType

_PORTS_FROM = 19100
_LAST_PORT = 65535
_MOST_COMPLAINTS = 5
_SECRETS = ("password", "key_password")


def lines_of(
    surveyed: Survey, bootstrap: Sequence[HostPort], access: Mapping[str, Any], listen: HostPort
) -> Iterator[str]:
    """`access`: the keys `tls` and `sasl` that the cluster was asked with; no secret of theirs is written."""
    yield "# A first configuration, written by `sluicegate bootstrap`. It changes nothing: `mode: observe` forwards"
    yield "# every batch as it came, and says what would be rejected. Look at that for some days, mend the producers,"
    yield "# and then take `mode: observe` away, for one topic after the other (`mode: reject` in its entry) or all."
    yield "#   sluicegate check FILE            is the file right?"
    yield "#   sluicegate doctor --config FILE  is everything there that it needs?"
    yield "#   sluicegate run --config FILE"
    yield from _upstream(surveyed, bootstrap, access)
    yield from _listen(surveyed, listen)
    yield "admin:"
    yield '  listen: "127.0.0.1:9650"  # /metrics, /livez, /readyz'
    yield "violations:"
    yield "  file: violations.jsonl  # who sent what would be rejected"
    yield from _topics(surveyed)


def _upstream(surveyed: Survey, bootstrap: Sequence[HostPort], access: Mapping[str, Any]) -> Iterator[str]:
    yield "upstream:"
    yield f"  bootstrap: {json.dumps([str(address) for address in bootstrap])}"
    sasl, tls = access.get("sasl"), access.get("tls")
    if tls is not None:
        kept = {key: value for key, value in tls.items() if key not in _SECRETS}
        yield f"  tls: {json.dumps(kept)}"
        if "key_password" in tls:
            yield "  # The key is encrypted: add key_password_file, which names a file with its password."
    if sasl is not None:
        yield "  # The cluster wants logins. Clients bring their own; the proxy's, with which it asks for brokers and"
        yield "  # topics' settings, needs a file that holds the password alone:"
        shown = {"mechanism": sasl["mechanism"], "username": sasl["username"], "password_file": "/run/secrets/kafka"}
        yield f"  # sasl: {json.dumps(shown)}"
        yield "  # Until then these are the brokers, and the limits below are all that the proxy knows."
        yield "  topic_settings: false"
        yield "  brokers:"
        for node_id, address in sorted(surveyed.brokers.items()):
            yield f"    {node_id}: {json.dumps(str(address))}"
    else:
        yield "  # Topics' settings are read from the cluster too; the stricter of both holds (topic_settings: true)."


def _listen(surveyed: Survey, listen: HostPort) -> Iterator[str]:
    yield "listen:"
    yield f"  bootstrap: {json.dumps(str(listen))}  # producers' bootstrap.servers"
    highest = max(surveyed.brokers, default=0)
    base = max(1, min(_PORTS_FROM, _LAST_PORT - highest))
    yield f"  broker_port_base: {base}  # broker N listens at {base} + N; here brokers {_numbers(surveyed)}"
    if base + highest > _LAST_PORT:
        yield f"  # The brokers' ids are too high for ports of their own: use broker_host with {NODE_ID}, and TLS."
    told = listen.host if not listen.is_wildcard else "127.0.0.1"
    yield f"  advertised_host: {json.dumps(told)}  # what clients are told: a name that they can reach this proxy by"


def _numbers(surveyed: Survey) -> str:
    ids = [str(node_id) for node_id in sorted(surveyed.brokers)]
    return ", ".join(ids) if len(ids) <= 10 else f"{ids[0]} to {ids[-1]}"


def _topics(surveyed: Survey) -> Iterator[str]:
    found = grouped(surveyed.topics)
    yield "defaults:"
    yield "  mode: observe"
    yield f"  # As {found.usual_count} of the {len(surveyed.topics)} topics are set on the cluster."
    yield from _settings(found.usual, "  ")
    for complaint in surveyed.complaints[:_MOST_COMPLAINTS]:
        yield f"# Not told: {json.dumps(complaint)[1:-1]}"
    if surveyed.left_out > 0:
        yield f"# {surveyed.left_out} more topics are not in this file."
    if found.without_entry:
        yield f"# {found.without_entry} topics are set otherwise and have no entry here: a running proxy reads that."
    if found.entries:
        yield "topics:  # the first entry that matches a topic's name decides"
    for entry in found.entries:
        yield f"  - match: {json.dumps(entry.match)}  # {entry.count} {'topic' if entry.count == 1 else 'topics'}"
        yield from _settings(entry.settings, "    ")


def _settings(settings: ClusterSettings, indent: str) -> Iterator[str]:
    """All of them, so that an entry does not depend on what others say."""
    kind = settings.timestamp_type or TimestampType.CREATE_TIME
    yield f"{indent}{TIMESTAMP_TYPE}: {kind.value}"
    for key, bound in ((BEFORE_MAX, settings.before_max_ms), (AFTER_MAX, settings.after_max_ms)):
        yield f"{indent}{key}: {bound}  # {_in_words(bound)}"
    yield f"{indent}{CLEANUP_POLICY}: {'compact' if settings.compacted else 'delete'}"
    if settings.max_message_bytes is not None:
        yield f"{indent}{MAX_MESSAGE_BYTES}: {settings.max_message_bytes}"


def _in_words(bound_ms: int) -> str:
    if bound_ms == LONG_MAX:
        return "no bound"
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000)):
        if bound_ms >= size and bound_ms % size == 0:
            return f"{bound_ms // size} {unit}"
    return "ms"
