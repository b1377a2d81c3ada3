"""The catalogue of conditions: all reasons why a proxy is not `serving`, with advice for the operator.

`/readyz`, the web UI, `top`, `who`, the log, the metric `sluicegate_condition` and docs/conditions.md all use this
catalogue, so that they agree.
"""

from dataclasses import dataclass
from enum import Enum


class ServingState(Enum):
    """A proxy's state, best state first."""

    SERVING = "serving"
    NEEDS_ATTENTION = "needs attention"
    NOT_SERVING = "not serving"


@dataclass(frozen=True, slots=True)
class ConditionType:
    """What one kind of condition means.

    `lasts_seconds` is how long the condition remains after its last report. If it is None, the condition ends when its
    cause is gone. Only `ServingState.NOT_SERVING` fails readiness.
    """

    state: ServingState
    meaning: str
    begins: str
    ends: str
    advice: str
    lasts_seconds: float | None = None


def _not_serving(meaning: str, begins: str, ends: str, advice: str) -> ConditionType:
    return ConditionType(ServingState.NOT_SERVING, meaning, begins, ends, advice)


def _needs_attention(
    meaning: str, begins: str, ends: str, advice: str, lasts_seconds: float | None = None
) -> ConditionType:
    return ConditionType(ServingState.NEEDS_ATTENTION, meaning, begins, ends, advice, lasts_seconds)


_AT_A_LOOK = "at the next check"

_IF_SILENT = (
    "If the detail says `no response within`, a broker may run and hang: look at its process, host and load, and for a "
    "firewall that drops packets."
)


class Condition(Enum):
    """The conditions by name, most severe first. The names appear in metrics, logs and the API."""

    STARTING = "starting"
    DRAINING = "draining"
    EVENT_LOOP_STUCK = "event_loop_stuck"
    UPSTREAM_UNREACHABLE = "upstream_unreachable"
    UPSTREAM_NOT_A_BROKER = "upstream_not_a_broker"
    NO_BROKER_LISTED = "no_broker_listed"
    ROUTING_LOOP = "routing_loop"
    LISTENER_CLOSED = "listener_closed"
    CERTIFICATE_EXPIRED = "certificate_expired"
    STATE_UNKNOWN = "state_unknown"
    BROKER_UNREACHABLE = "broker_unreachable"
    BROKER_PORT_CLOSED = "broker_port_closed"
    QUARANTINE_FAILING = "quarantine_failing"
    REGISTRY_UNREACHABLE = "registry_unreachable"
    CLOCK_OFFSET = "clock_offset"
    CERTIFICATE_EXPIRES_SOON = "certificate_expires_soon"
    EVENTS_LOST = "events_lost"
    PROXY_LOGIN_REJECTED = "proxy_login_rejected"
    PROXY_LOGIN_MISSING = "proxy_login_missing"
    CONFIGURATION_REJECTED = "configuration_rejected"
    CONFIGURATION_MISSING = "configuration_missing"
    POLICY_FILE_MISSING = "policy_file_missing"
    FILE_UNUSABLE = "file_unusable"
    SCHEMA_UNUSABLE = "schema_unusable"
    PRINCIPAL_UNVERIFIED = "principal_unverified"
    STATE_UNREADABLE = "state_unreadable"
    STATE_RECORD_INVALID = "state_record_invalid"
    STATE_SNAPSHOT_FAILING = "state_snapshot_failing"
    TOPIC_SETTING_UNUSABLE = "topic_setting_unusable"
    ENFORCEMENT_SUSPENDED = "enforcement_suspended"
    WORKER_RESTARTED = "worker_restarted"
    WORKER_UNRESPONSIVE = "worker_unresponsive"

    @property
    def type(self) -> ConditionType:
        """The condition's meaning."""
        return TYPES[self]


TYPES = {
    Condition.STARTING: _not_serving(
        "The proxy has not checked the cluster yet.", "when the process starts", "after the first check", "Wait."
    ),
    Condition.DRAINING: _not_serving(
        "The proxy was asked to stop: it accepts no connections and completes the requests in flight.",
        "with SIGTERM or SIGINT",
        "when the process ends",
        "Nothing to do: clients reconnect to another replica, or to this one after its restart.",
    ),
    Condition.EVENT_LOOP_STUCK: _not_serving(
        "The event loop has not run for 10 s; with several workers, that of every worker. `/livez` fails too.",
        "after 10 s",
        "when the event loop runs again",
        "Restart the process, and report a bug with the log: nothing should block the event loop.",
    ),
    Condition.UPSTREAM_UNREACHABLE: _not_serving(
        "No address of `upstream.bootstrap` responds as a broker.",
        _AT_A_LOOK,
        "within 2 s after a broker responds",
        "Start the brokers, or correct `upstream.bootstrap`, DNS, firewall or `upstream.tls`; `sluicegate doctor` "
        f"shows the cause. {_IF_SILENT}",
    ),
    Condition.UPSTREAM_NOT_A_BROKER: _not_serving(
        "An address of `upstream.bootstrap` responds, but not as a Kafka broker (it may be a KRaft controller or an "
        "HTTP server), and no other address leads to a broker.",
        _AT_A_LOOK,
        "within 2 s after a broker responds",
        "Name the brokers' client listeners in `upstream.bootstrap`; `sluicegate doctor` shows what responds at each "
        "address.",
    ),
    Condition.NO_BROKER_LISTED: _not_serving(
        "A broker responds, but its Metadata lists no broker, so clients find no leader. All brokers are fenced, "
        "for example because the controllers have no quorum. The proxy cannot see this if the cluster requires a "
        "login and `upstream.sasl` is not set.",
        _AT_A_LOOK,
        "within 2 s after a broker is listed",
        "Check the controllers: `kafka-metadata-quorum.sh --bootstrap-controller HOST:PORT describe --status`.",
    ),
    Condition.ROUTING_LOOP: _not_serving(
        "A broker's address leads back to a listener of this proxy.",
        _AT_A_LOOK,
        _AT_A_LOOK,
        "Correct `upstream.bootstrap`, `upstream.brokers` or the broker's `advertised.listeners`.",
    ),
    Condition.LISTENER_CLOSED: _not_serving(
        "The proxy cannot open a port for any broker of the cluster.",
        _AT_A_LOOK,
        _AT_A_LOOK,
        "Free the ports, or change `listen`.",
    ),
    Condition.CERTIFICATE_EXPIRED: _not_serving(
        "The certificate that the proxy presents to clients has expired, so they do not connect.",
        _AT_A_LOOK,
        "at the next check after the file contains a valid certificate; no restart is needed",
        "Renew `listen.tls.certificate_file`.",
    ),
    Condition.BROKER_UNREACHABLE: _needs_attention(
        "A broker of the cluster does not respond at its address, or the cluster no longer lists it. Clients of "
        "its partitions wait for new leaders.",
        "within 10 s, or later in clusters with more than 20 brokers, because the proxy probes 20 brokers every 5 s",
        "within 5 s after the broker responds, or 24 h after its last response if the cluster does not list the broker",
        f"Start the broker, or correct its `advertised.listeners` or `upstream.brokers`. {_IF_SILENT} If the "
        "broker was removed for good, the condition ends after 24 h, or with a restart of the proxy.",
    ),
    Condition.BROKER_PORT_CLOSED: _needs_attention(
        "A broker of the cluster has no port for clients: the port cannot be opened, or `listen` has no port "
        "for the broker's id. Responses omit the broker, so clients cannot write to the partitions that it leads.",
        _AT_A_LOOK,
        "at the next check after the port is free, or the cluster no longer lists the broker",
        "Free the port, or change `listen.broker_port_base` or `listen.broker_port_map`.",
    ),
    Condition.QUARANTINE_FAILING: _needs_attention(
        "Bad records cannot be written to a dead-letter topic, so their producers retry and make no progress. "
        "The detail names the waiting clients and their topics.",
        "within 8 s after the first write that gets no result",
        "within 10 s after a write of any worker succeeds, or 60 s after the last failure if nothing is written",
        "Create the topic, permit `upstream.sasl` to write to the topic, or start its brokers. If you remove "
        "`quarantine` from the policy, the batches are rejected instead.",
    ),
    Condition.REGISTRY_UNREACHABLE: _needs_attention(
        "A schema registry does not respond, or its responses are not usable. Cached schemas stay in use. Records with "
        "other schemas have the outcome of `on_outage`: by default, their producers retry and make no progress. "
        "The detail names the failed look-up (a schema by id or one of its references, the subjects of a schema, "
        "or the newest schema of a subject), the waiting clients, and their topics.",
        "within 10 s after the first failed look-up",
        "within 15 s after the registry responds again: the proxy repeats the failed look-up",
        "Start the registry, or correct its `url`, login or permissions; `sluicegate doctor` shows the cause.",
    ),
    Condition.CLOCK_OFFSET: _needs_attention(
        "The clocks of the proxy's machine and of the cluster's active controller differ by 10 s or more, so "
        "records with correct timestamps may be rejected. The proxy cannot measure this if `upstream.sasl` may "
        "not describe the cluster.",
        "within 10 s",
        "within 10 s after the clocks agree",
        "Synchronise both machines with NTP. `sluicegate_clock_offset_seconds` has the offset.",
    ),
    Condition.CERTIFICATE_EXPIRES_SOON: _needs_attention(
        "A certificate that the proxy presents to clients, brokers, registries or the collector of `otel` expires "
        "soon. "
        "After the certificate for clients has expired, the proxy does not serve (`certificate_expired`). "
        "Brokers and other servers reject expired certificates too.",
        "14 days before the certificate expires; if it is valid for less than 70 days, after four fifths of that time",
        "at the next check after the file contains a renewed certificate; no restart is needed",
        "Renew the file that the detail names. `sluicegate_certificate_expires_timestamp_seconds` gives the expiry "
        "times of all certificates, including those of CAs.",
    ),
    Condition.EVENTS_LOST: _needs_attention(
        "Violation events, telemetry, entries of the history of changes or announcements to other proxies could not be "
        "written and are lost. Verdicts are not affected.",
        "within 2 s after the first loss",
        "within 10 s after a write of any worker succeeds, or 60 s after the last loss if nothing is written",
        "Free the disk of `violations.file`, create `violations.topic`, `state.history_topic` or "
        "`state.presence_topic` or permit writes to it, or start the collector of `otel.endpoint`; the detail gives "
        "the reason.",
    ),
    Condition.PROXY_LOGIN_REJECTED: _needs_attention(
        "The cluster rejects `upstream.sasl`, or the proxy has no token for it. Clients log in with their own "
        "credentials and are served, but topic settings are not read and quarantine and `violations.topic` cannot be "
        "written.",
        _AT_A_LOOK,
        _AT_A_LOOK,
        "Correct the mechanism, name or password, or replace the expired token; files with passwords and tokens are "
        "read again without a restart.",
    ),
    Condition.PROXY_LOGIN_MISSING: _needs_attention(
        "The cluster requires a login and `upstream.sasl` is not set: topic settings are not read, so only the "
        "limits of the file apply.",
        _AT_A_LOOK,
        "within `upstream.refresh_seconds` if the cluster no longer requires a login, or with the restart that "
        "sets `upstream.sasl`",
        "Set `upstream.sasl` to a principal that may describe configurations, or repeat the limits in the file.",
    ),
    Condition.CONFIGURATION_REJECTED: _needs_attention(
        "The newest configuration has an error; the previous policies stay in force.",
        "within 2 s after the file has changed",
        "when a correct file is loaded",
        "Correct the file: `sluicegate check FILE` names the key and the line.",
    ),
    Condition.CONFIGURATION_MISSING: _needs_attention(
        "The configuration file is missing. The policies stay in force, and a restart would fail.",
        "within 10 s",
        "within 10 s after it is back",
        "Restore the file, or mount its volume again.",
    ),
    Condition.POLICY_FILE_MISSING: _needs_attention(
        "A file of `topic_files` or `contracts` is missing, or a file with a schema or a key that a policy names "
        "is missing or unreadable: it was deleted, or renamed without its topics, or its volume is not mounted. "
        "The last policies, schema or key of the file stay in force, because its topics would have none. A "
        "restart reads the files as they are then.",
        "within 10 s",
        "within 10 s after the file, or another file with its topics, exists, or after no policy names the "
        "schema or the key any more; with a restart; for a policy file also with `sluicegate reload "
        "--accept-removed`",
        "Restore the file or the mount, or accept the removal with `sluicegate reload --accept-removed`. A file "
        "with `topics: []` removes its policies at once. To remove a schema or a key, first remove the policy "
        "that names its file: otherwise the proxy does not start again.",
    ),
    Condition.FILE_UNUSABLE: _needs_attention(
        "A file with a certificate, a key, a password, a token or HTTP headers, or a registry's folder, is missing, "
        "unreadable, or cannot be used. Its last content stays in use, also in workers that are restarted "
        "meanwhile. The proxy cannot start again until this is fixed.",
        "within 10 s",
        "within 10 s after the file can be used; no restart is needed",
        "Restore or correct the file that the detail names; `sluicegate check FILE` lists all such files.",
    ),
    Condition.SCHEMA_UNUSABLE: _needs_attention(
        "The newest schema of a subject that rules or sensitive fields can meet, or a rule inside it, cannot be used. "
        "Records written with the schema, and records to which that rule applies, have the outcome of "
        "`on_schema_error`. With sensitive fields, all records with an unusable schema are rejected.",
        "within 10 min after it is registered, or at the start",
        "within 10 min after a usable version is registered or the subject is deleted",
        "Register a corrected version. `sluicegate check --registry FILE` lists all such schemas with their reasons.",
    ),
    Condition.PRINCIPAL_UNVERIFIED: _needs_attention(
        "Policies name principals, and clients are connected whose principals the proxy cannot verify: their logins "
        "are not declared in `listen`, or name no principal. No exemption and no policy for a principal matches "
        "them.",
        "within 2 s after the login of such a client",
        "5 min after the last such client has disconnected",
        "The detail gives the reason. Declare how the brokers derive principals ([TLS and "
        "SASL](how-to/tls-and-sasl.md)), or "
        "name client ids in the policies.",
        300.0,
    ),
    Condition.STATE_UNKNOWN: _not_serving(
        "`state.topic` could not be read since the start, and no usable `state.snapshot_file` exists, so the "
        "proxy does not know the suspensions that apply to all proxies.",
        "at the start",
        "when the proxy has read the whole topic, within 5 s after the topic becomes readable",
        "The detail gives the reason. Create the topic ([shared state](shared-state.md#the-topic)), permit the proxy's "
        "login to read it, or start the brokers.",
    ),
    Condition.STATE_UNREADABLE: _needs_attention(
        "`state.topic` cannot be read. The last known state stays in force, and changes for all proxies are "
        "rejected. The detail gives the time of the last successful read.",
        "within 10 s",
        "within 5 s after the topic becomes readable",
        "The detail gives the reason. To suspend enforcement meanwhile, run `sluicegate suspend --this-proxy` for each "
        "proxy.",
    ),
    Condition.STATE_RECORD_INVALID: _needs_attention(
        "`state.topic` has a record that this version does not understand. The record has no effect.",
        "at once",
        "an hour after the last such record",
        "If the detail names a newer version, upgrade this proxy. Otherwise another program writes to the topic, which "
        "only the proxies' login may do ([shared state](shared-state.md#who-may-write)).",
        3600.0,
    ),
    Condition.STATE_SNAPSHOT_FAILING: _needs_attention(
        "`state.snapshot_file` cannot be written. If the proxy starts while `state.topic` cannot be read, it uses an "
        "older state, or none.",
        "at once",
        "after the next successful write, within 65 s",
        "Make its folder writable, or enlarge its volume.",
    ),
    Condition.TOPIC_SETTING_UNUSABLE: _needs_attention(
        "A topic setting (`sluicegate.*`) has no effect: `topic_policies` no longer delegates it, or its value is not "
        "valid for the configuration in force. The topic's other settings apply.",
        "when the settings or the configuration change",
        "when the setting is valid, delegated or deleted",
        "Delegate the key in `topic_policies`, or delete the setting with `kafka-configs.sh --alter --delete-config`. "
        "`sluicegate explain TOPIC` shows what applies ([topic settings](topic-policies.md)).",
    ),
    Condition.ENFORCEMENT_SUSPENDED: _needs_attention(
        "An operator has suspended enforcement (`sluicegate suspend`): violations are reported, and every batch "
        "is forwarded.",
        "at once",
        "at the suspension's end time, or with `sluicegate resume`; a suspension of one proxy also ends when it "
        "restarts",
        "`sluicegate resume` ends the suspension early. To observe permanently, set `mode: observe` in the file.",
    ),
    Condition.WORKER_RESTARTED: _needs_attention(
        "A worker process ended and was restarted.",
        "at once",
        "60 s after the last restart",
        "The log shows the worker's exit code. -9 usually means that the system killed it because memory was "
        "exhausted.",
        60.0,
    ),
    Condition.WORKER_UNRESPONSIVE: _needs_attention(
        "A worker does not report, because its event loop does not run or the process is stopped. Its clients "
        "may wait. Its figures and the conditions that only this worker sees are missing. The other workers serve "
        "clients.",
        "after 5 s without a report (in the web UI and `top` after 2 s)",
        "with the next report of the worker",
        "Take a stack trace of the process that the detail names (`py-spy dump`) for a bug report, then end that "
        "process. The proxy restarts it.",
    ),
}
