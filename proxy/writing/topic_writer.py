"""A producer for the proxy's own records, based on librdkafka, which batches, connects and retries in its own threads.

Its package confluent-kafka is an optional dependency. It is imported for the first record. If it is missing,
`check_client` reports that at the start. The producer connects to the brokers directly, never through the proxy's own
listeners.
"""

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from sluicegate.config.tls import UpstreamTls
from sluicegate.config.upstream import Sasl, Upstream
from sluicegate.config.values.extras import OR_IMAGE
from sluicegate.config.values.password import PasswordUnreadable
from sluicegate.proxy.network.tls.contexts import MemoryFiles
from sluicegate.proxy.tokens.cache import TokenMissing
from sluicegate.proxy.tokens.own_token import own_token

Header = tuple[str, bytes | None]
Settings = dict[str, str | int | bool]


@dataclass(frozen=True, slots=True)
class DeliveryFailure:
    """Why a record was not stored. If `is_lasting` is true, the same record fails until an operator intervenes."""

    reason: str
    is_lasting: bool = False


Delivered = Callable[[DeliveryFailure | None], None]
"""Called once for each record, within `serve`. The argument is None if the record is stored."""

_PASSWORD_SECONDS = 30.0
# librdkafka repeats an error that persists.
_ERROR_SECONDS = 60.0
# A new producer may also fail immediately, so at most one is created in this time.
_REST_SECONDS = 1.0
# Without a logger, librdkafka writes fatal errors to standard error at every log level.
_DISCARDED = logging.Logger("librdkafka", logging.CRITICAL + 1)


class ClientMissing(Exception):
    """confluent-kafka is not installed.

    The message contains the configuration key that needs it and the command that installs it.
    """


class RecordNotAccepted(Exception):
    """A record cannot be accepted. The message gives the reason. `is_lasting` is explained at `DeliveryFailure`."""

    def __init__(self, why: str, is_lasting: bool = False) -> None:
        super().__init__(why)
        self.is_lasting = is_lasting


class WriteQueueFull(RecordNotAccepted):
    """The queue of records for the cluster is full."""


def check_client(key: str) -> None:
    """Check that confluent-kafka is installed for the configuration key `key`. Raises ClientMissing."""
    try:
        import confluent_kafka  # noqa: F401, PLC0415  # whether the extra is installed
    except ImportError:
        raise ClientMissing(
            f"{key} needs the package confluent-kafka: pip install 'sluicegate[topic]', {OR_IMAGE}, or remove {key}"
        ) from None


class TopicWriter:
    """Writes records for one thread.

    It creates the producer at the first record, and again after a fatal error. `settings` contains librdkafka settings
    in addition to those for the connection.
    """

    def __init__(self, upstream: Upstream, settings: Mapping[str, str | int | bool]) -> None:
        self._upstream = upstream
        self._settings = settings
        self._producer: Any = None
        self._ended: list[Any] = []  # failed producers whose deliveries are not all reported
        self._password: str | bool | int | None = None
        self._password_at = 0.0
        self._error = ""  # librdkafka's last error
        self._error_at = 0.0
        self._ended_at = -_REST_SECONDS

    def write(
        self, topic: str, key: bytes | None, value: bytes | None, headers: list[Header], delivered: Delivered
    ) -> None:
        """Queue one record. Raises RecordNotAccepted, or WriteQueueFull if a later retry may succeed."""
        import confluent_kafka  # noqa: PLC0415  # the extra `topic`

        producer = self._producer_now()

        def on_delivery(error: Any, _message: object) -> None:
            delivered(None if error is None else DeliveryFailure(self._reason_of(error), _is_lasting(error)))

        try:
            producer.produce(topic, value, key, headers=headers, on_delivery=on_delivery)
        except BufferError:
            raise WriteQueueFull("the queue for the cluster is full") from None
        except confluent_kafka.KafkaException as failure:
            error = failure.args[0]
            if error.fatal() or error.code() == confluent_kafka.KafkaError._FATAL:
                self._end()
            raise RecordNotAccepted(self._reason_of(error), _is_lasting(error)) from None

    def serve(self, seconds: float) -> None:
        """Report deliveries. Wait at most `seconds` for the first one."""
        for ended in self._ended:
            self._poll(ended, seconds)
        self._ended = [ended for ended in self._ended if len(ended)]
        if self._producer is not None:
            self._renew_password()
            if not self._poll(self._producer, seconds):
                self._end()

    def _poll(self, producer: Any, seconds: float) -> bool:
        """Report one producer's deliveries.

        Return False after a fatal error, which librdkafka raises here once and does not report as an error.
        """
        import confluent_kafka  # noqa: PLC0415  # the extra `topic`

        try:
            producer.poll(seconds)
        except confluent_kafka.KafkaException as failure:
            self._on_error(failure.args[0])
            return False
        return True

    def _end(self) -> None:
        """Replace the producer after a fatal error."""
        self._ended.append(self._producer)
        self._producer = None
        self._ended_at = time.monotonic()

    def _producer_now(self) -> Any:
        if self._producer is None:
            import confluent_kafka  # noqa: PLC0415  # the extra `topic`

            if time.monotonic() - self._ended_at < _REST_SECONDS:
                raise RecordNotAccepted(self._error or "the producer failed a moment ago")
            try:
                with MemoryFiles() as copies:
                    settings = client_settings(self._upstream, copies, self._on_missing_token)
                    self._password = settings.get("sasl.password")
                    self._password_at = time.monotonic()
                    self._producer = confluent_kafka.Producer(
                        {**settings, **self._settings, "error_cb": self._on_error}
                    )
            except (PasswordUnreadable, OSError, ValueError) as error:
                raise RecordNotAccepted(str(error)) from None
            except confluent_kafka.KafkaException as error:
                raise RecordNotAccepted(f"upstream: {error.args[0].str()}") from None
        return self._producer

    def _renew_password(self) -> None:
        """Use a changed password file for new connections."""
        sasl = self._upstream.sasl
        now = time.monotonic()
        if (
            sasl is None
            or sasl.username is None
            or sasl.password_file is None
            or now - self._password_at < _PASSWORD_SECONDS
        ):
            return
        self._password_at = now
        try:
            password = sasl.current_password.get()
        except PasswordUnreadable:
            return  # keep the previous password; the cluster watch reports the error
        if password != self._password:
            self._password = password
            self._producer.set_sasl_credentials(sasl.username, password)

    def _on_missing_token(self, why: str) -> None:
        self._error, self._error_at = why, time.monotonic()

    def _on_error(self, error: Any) -> None:
        import confluent_kafka  # noqa: PLC0415  # the extra `topic`

        now, errors = time.monotonic(), confluent_kafka.KafkaError
        if error.code() == errors._AUTHENTICATION:
            self._password_at = -_PASSWORD_SECONDS  # the file may have changed
        # librdkafka sends this error after the one with the reason
        has_reason = error.code() != errors._ALL_BROKERS_DOWN
        if has_reason or now - self._error_at > _ERROR_SECONDS:
            self._error, self._error_at = str(error.str()), now

    def _reason_of(self, error: Any) -> str:
        """Return why a delivery failed. After a timeout or a fatal error, append librdkafka's last error."""
        import confluent_kafka  # noqa: PLC0415  # the extra `topic`

        reason = str(error.str())
        errors = confluent_kafka.KafkaError
        has_no_reason = error.code() in (errors._MSG_TIMED_OUT, errors._FATAL, errors._PURGE_QUEUE)
        if has_no_reason and self._error and time.monotonic() - self._error_at < _ERROR_SECONDS:
            return f"{reason} ({self._error})"
        return reason


def _is_lasting(error: Any) -> bool:
    """Return whether the same record would get this error again, from a broker or from librdkafka itself."""
    import confluent_kafka  # noqa: PLC0415  # the extra `topic`

    errors = confluent_kafka.KafkaError
    return error.code() in (
        errors.TOPIC_AUTHORIZATION_FAILED,
        errors.CLUSTER_AUTHORIZATION_FAILED,
        errors.TOPIC_EXCEPTION,
        errors.MSG_SIZE_TOO_LARGE,
        errors.INVALID_RECORD,
        errors.POLICY_VIOLATION,
    )


def client_settings(
    upstream: Upstream, copies: MemoryFiles, on_missing_token: Callable[[str], None] = lambda _: None
) -> dict[str, Any]:
    """Return the settings with which a librdkafka client connects to `upstream` with the proxy's own login.

    `on_missing_token` is called with the reason if there is no token. Raises PasswordUnreadable and OSError.
    """
    settings: dict[str, Any] = {**connection_settings(upstream, copies), "logger": _DISCARDED}
    if upstream.sasl is not None and settings.get("sasl.mechanism") == "OAUTHBEARER":
        settings["oauth_cb"] = partial(_token, upstream.sasl, upstream.connect_timeout_seconds, on_missing_token)
    return settings


def _token(
    sasl: Sasl, seconds: float, on_missing_token: Callable[[str], None], _: str
) -> tuple[str, float, str, dict[str, str]]:
    """Return the token, its expiry, the principal and the extensions for librdkafka.

    Brokers use the principal in the token. librdkafka asks again after 80 % of the token's lifetime, or 10 s after a
    failure, and logs in again before a broker's session ends (KIP-368).
    """
    try:
        token = own_token(sasl, seconds)
    except TokenMissing as error:
        on_missing_token(str(error))
        raise
    return token.value, token.until, "", sasl.extensions


def connection_settings(upstream: Upstream, copies: MemoryFiles) -> Settings:
    """Return the addresses, TLS and login of `upstream` as librdkafka settings.

    They contain the current passwords and certificates. Certificates are copied into `copies`, which librdkafka reads
    while it creates a producer. Raises PasswordUnreadable and OSError.
    """
    tls, sasl = upstream.tls, upstream.sasl
    settings: Settings = {
        "bootstrap.servers": ",".join(map(str, upstream.bootstrap)),
        "client.id": "sluicegate",
        "security.protocol": ("SASL_" if sasl is not None else "") + ("SSL" if tls is not None else "PLAINTEXT"),
        "socket.connection.setup.timeout.ms": max(1000, int(upstream.connect_timeout_seconds * 1000)),
        "reconnect.backoff.max.ms": 2000,
        "log_level": 0,  # no output to standard error, because delivery failures contain the reasons
    }
    if tls is not None:
        settings |= _tls_settings(tls, copies)
    if sasl is not None:
        settings["sasl.mechanism"] = sasl.mechanism
    if sasl is not None and sasl.username is not None:
        settings |= {"sasl.username": sasl.username, "sasl.password": sasl.current_password.get()}
    return settings


def _tls_settings(tls: UpstreamTls, copies: MemoryFiles) -> Settings:
    settings: Settings = {"ssl.endpoint.identification.algorithm": "https" if tls.verify_hostname else "none"}
    if tls.ca_file is not None:
        settings["ssl.ca.location"] = copies.copy_of(tls.ca_file)
    if tls.certificate_file is not None and tls.key_file is not None:
        settings["ssl.certificate.location"] = copies.copy_of(tls.certificate_file)
        settings["ssl.key.location"] = copies.copy_of(tls.key_file)
        password = tls.password_of_key.get()
        if password:
            settings["ssl.key.password"] = password
    return settings
