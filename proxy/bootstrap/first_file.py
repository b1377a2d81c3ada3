"""Writes a first configuration in observe mode, with explanatory comments."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sluicegate.config.listen import NODE_ID
from sluicegate.config.values.address import HostPort
from sluicegate.protocol.integers import LONG_MAX
from sluicegate.proxy.bootstrap.grouping import grouped
from sluicegate.proxy.bootstrap.survey import TopicSurvey
from sluicegate.validation.cluster_settings import (
    AFTER_MAX,
    BEFORE_MAX,
    CLEANUP_POLICY,
    MAX_MESSAGE_BYTES,
    TIMESTAMP_TYPE,
    ClusterSettings,
)
from sluicegate.validation.policy import TimestampType

_BROKERS_AFTER = 8
"""The distance from the bootstrap port to broker 0's port, for example from 19092 to 19100."""

_LAST_PORT = 65535
_MOST_COMPLAINTS = 5
_SECRETS = ("password", "key_password", "client_secret")
_IN_FILE = "/run/secrets/kafka"


def lines_of(
    surveyed: TopicSurvey, bootstrap: Sequence[HostPort], access: Mapping[str, Any], listen: HostPort
) -> Iterator[str]:
    """Yield the lines of the file.

    `access` contains the connection's keys `tls` and `sasl`. Secrets are not written.
    """
    yield "# A first configuration, written by `sluicegate bootstrap`. It rejects nothing: `mode: observe` forwards"
    yield "# every batch unchanged and reports violations. Read the reports for some days and correct the producers."
    yield "# Then remove `mode: observe`, or set `mode: reject` for one topic after another."
    yield "#   sluicegate check FILE            check this file"
    yield "#   sluicegate doctor --config FILE  check everything that it depends on"
    yield "#   sluicegate run --config FILE     run the proxy"
    yield from _upstream(surveyed, bootstrap, access)
    yield from _listen(surveyed, listen)
    yield from _principals(access.get("sasl"))
    yield "admin:"
    yield '  listen: "127.0.0.1:9650"  # /metrics, /livez, /readyz'
    yield "violations:"
    yield "  file: violations.jsonl  # one line for each violating batch"
    yield from _topics(surveyed)


def _upstream(surveyed: TopicSurvey, bootstrap: Sequence[HostPort], access: Mapping[str, Any]) -> Iterator[str]:
    yield "upstream:"
    addresses = dict.fromkeys([*bootstrap, *(address for _, address in sorted(surveyed.brokers.items()))])
    yield f"  bootstrap: {json.dumps([str(address) for address in addresses])}"
    sasl, tls = access.get("sasl"), access.get("tls")
    if tls is not None:
        kept = {key: value for key, value in tls.items() if key not in _SECRETS}
        yield f"  tls: {json.dumps(kept)}"
        if "key_password" in tls:
            yield "  # The key is encrypted: add key_password_file, which names a file with its password."
    if sasl is not None:
        yield "  # The cluster requires logins. Clients use their own. The proxy needs one to read brokers and topics'"
        yield f"  # settings, with its {'token' if 'token_file' in sasl else 'secret'} in a file:"
        yield f"  # sasl: {json.dumps(_without_secrets(sasl))}"
        yield "  # Without it, the proxy uses these brokers and the limits below."
        yield "  topic_settings: false"
        yield "  brokers:"
        for node_id, address in sorted(surveyed.brokers.items()):
            yield f"    {node_id}: {json.dumps(str(address))}"
    else:
        yield "  # The proxy also reads topics' settings from the cluster; stricter ones apply (topic_settings: true)."


def _without_secrets(sasl: Mapping[str, Any]) -> dict[str, Any]:
    """Return the login's keys, with a file name in place of each secret."""
    shown = {name: value for name, value in sasl.items() if name not in _SECRETS}
    if "password" in sasl:
        shown["password_file"] = _IN_FILE
    if "client_secret" in sasl:
        shown["client_secret_file"] = _IN_FILE
    return shown | {name: _without_secrets(sasl[name]) for name in ("oauth", "tls") if name in sasl}


def _listen(surveyed: TopicSurvey, listen: HostPort) -> Iterator[str]:
    yield "listen:"
    yield f"  bootstrap: {json.dumps(str(listen))}  # producers' bootstrap.servers"
    highest = max(surveyed.brokers, default=0)
    base = max(1, min(listen.port + _BROKERS_AFTER, _LAST_PORT - highest))
    yield f"  broker_port_base: {base}  # broker N listens at {base} + N; here brokers {_numbers(surveyed)}"
    if base + highest > _LAST_PORT:
        yield f"  # The broker ids are too high for one port each: use broker_host with {NODE_ID}, and TLS."
    advertised = listen.host if not listen.is_wildcard else "127.0.0.1"
    yield f"  advertised_host: {json.dumps(advertised)}  # the host name that clients connect to"


def _principals(sasl: Mapping[str, Any] | None) -> Iterator[str]:
    """Yield a commented-out declaration of principals, with a question that only the brokers' operator can answer."""
    if sasl is None:
        return
    if sasl["mechanism"] == "OAUTHBEARER":
        yield "  # Which claim of a token is the client's principal at the brokers? It is their setting"
        yield "  # sasl.oauthbearer.sub.claim.name (by default sub). Until the next line is set, principals of logins"
        yield "  # are unverified: no exemption matches them. `sluicegate doctor` compares it with the brokers."
        yield "  # sasl.oauthbearer.sub.claim.name: sub"
        return
    yield "  # Are the user names of logins the clients' principals at the brokers? They are if the brokers have the"
    yield "  # default principal.builder.class and do not set sasl.server.callback.handler.class. They are not if users"
    yield "  # are tokens or keys of service accounts. Until the next line is set, principals of logins are unverified:"
    yield "  # no exemption matches them. `sluicegate doctor` compares it with the brokers. Name the mechanisms"
    yield "  # that clients use."
    yield f"  # user_name_is_principal: [{sasl['mechanism']}]"


def _numbers(surveyed: TopicSurvey) -> str:
    return ", ".join(str(node_id) for node_id in sorted(surveyed.brokers))


def _topics(surveyed: TopicSurvey) -> Iterator[str]:
    found = grouped(surveyed.topics)
    yield "defaults:"
    yield "  mode: observe"
    if surveyed.topics:
        yield f"  # The settings of {found.usual_count} of the {len(surveyed.topics)} topics on the cluster."
        yield from _settings(found.usual, "  ")
    else:
        none = "The settings of topics are unknown" if surveyed.left_out else "The cluster has no topics yet"
        yield f"  # {none}. A running proxy reads the settings of each topic."
    for complaint in surveyed.complaints[:_MOST_COMPLAINTS]:
        yield f"# Unknown: {json.dumps(complaint)[1:-1]}"
    if surveyed.left_out > 0:
        yield f"# {surveyed.left_out} more topics are not in this file."
    if found.without_entry:
        yield f"# {found.without_entry} topics have other settings and no entry here: a running proxy reads them."
    if found.entries:
        yield "topics:  # the first matching entry applies"
    for entry in found.entries:
        yield f"  - match: {json.dumps(entry.match)}  # {entry.count} {'topic' if entry.count == 1 else 'topics'}"
        yield from _settings(entry.settings, "    ")


def _settings(settings: ClusterSettings, indent: str) -> Iterator[str]:
    """Yield all settings, so that an entry does not depend on other entries."""
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
