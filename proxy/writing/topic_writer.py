"""One producer of the proxy's own: librdkafka, which batches, connects and tries again in threads of its own.

The client is the package confluent-kafka, which only these features need: it is imported when something is to be
written, and `check_client` says at start when it is missing.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sluicegate.config.upstream import Upstream
from sluicegate.config.values.password import PasswordUnreadable
from sluicegate.proxy.network.tls.memory_files import MemoryFiles
from sluicegate.proxy.writing.producer_settings import Settings, connection_settings

Header = tuple[str, bytes | None]
Told = Callable[[str | None], None]
"""Told once what became of a record: None, it is stored; else why not. Called within `serve`."""

_PASSWORD_SECONDS = 30.0
# What is older is over, or is complained of again.
_TROUBLE_SECONDS = 60.0
# A producer that has failed for good may fail again at once: of new ones, so many are made and no more.
_REST_SECONDS = 1.0
# Of a fatal error librdkafka would write to standard error by itself, at its lowest level too.
_NOBODY_READS = logging.Logger("librdkafka", logging.CRITICAL + 1)


class ClientMissing(Exception):
    """confluent-kafka is not installed; the text says what needs it and how to have it."""


class CannotWrite(Exception):
    """A record cannot be handed over now; the text says why."""


class NoRoom(CannotWrite):
    """As many records wait for the cluster as may."""


def check_client(key: str) -> None:
    """`key` of the configuration asks for something to be written. Raises ClientMissing."""
    try:
        import confluent_kafka  # noqa: F401, PLC0415
    except ImportError:
        raise ClientMissing(
            f"{key} needs the package confluent-kafka: pip install 'sluicegate[topic]', or leave {key} out"
        ) from None


class TopicWriter:
    """For one thread. The producer is made with the first record, and made anew where it has failed for good.

    `settings` go on top of those of the connection.
    """

    def __init__(self, upstream: Upstream, settings: Mapping[str, str | int | bool]) -> None:
        self._upstream = upstream
        self._settings = settings
        self._producer: Any = None
        self._ended: list[Any] = []  # failed for good, with records of which it has still to be told
        self._password: str | bool | int | None = None
        self._password_at = 0.0
        self._trouble = ""  # what librdkafka last complained of
        self._trouble_at = 0.0
        self._ended_at = -_REST_SECONDS

    def write(self, topic: str, key: bytes | None, value: bytes | None, headers: Sequence[Header], told: Told) -> None:
        """Hand over one record. Raises CannotWrite, NoRoom where it may be tried again when some have been stored."""
        import confluent_kafka  # noqa: PLC0415

        producer = self._producer_now()

        def delivered(error: Any, _message: object) -> None:
            told(None if error is None else self._reason_of(error))

        try:
            producer.produce(topic, value, key, headers=list(headers), on_delivery=delivered)
        except BufferError:
            raise NoRoom("too much waits for the cluster already") from None
        except confluent_kafka.KafkaException as failure:
            error = failure.args[0]
            if error.fatal() or error.code() == confluent_kafka.KafkaError._FATAL:
                self._end()
            raise CannotWrite(self._reason_of(error)) from None

    def serve(self, seconds: float) -> None:
        """Tell what has become of records, for at most this long where there is nothing to tell yet."""
        for ended in self._ended:
            self._poll(ended, seconds)
        self._ended = [ended for ended in self._ended if len(ended)]
        if self._producer is not None:
            self._renew_password()
            if not self._poll(self._producer, seconds):
                self._end()

    def _poll(self, producer: Any, seconds: float) -> bool:
        """Whether it can go on; its fatal error is raised here, once, and not complained of."""
        import confluent_kafka  # noqa: PLC0415

        try:
            producer.poll(seconds)
        except confluent_kafka.KafkaException as failure:
            self._complains(failure.args[0])
            return False
        return True

    def _end(self) -> None:
        """The producer has failed for good."""
        self._ended.append(self._producer)
        self._producer = None
        self._ended_at = time.monotonic()

    def _producer_now(self) -> Any:
        if self._producer is None:
            import confluent_kafka  # noqa: PLC0415

            if time.monotonic() - self._ended_at < _REST_SECONDS:
                raise CannotWrite(self._trouble or "the producer has failed a moment ago")
            try:
                with MemoryFiles() as copies:
                    settings: Settings = connection_settings(self._upstream, copies)
                    self._password = settings.get("sasl.password")
                    self._password_at = time.monotonic()
                    own: Any = {**settings, **self._settings, "error_cb": self._complains, "logger": _NOBODY_READS}
                    self._producer = confluent_kafka.Producer(own)
            except (PasswordUnreadable, OSError, ValueError) as error:
                raise CannotWrite(str(error)) from None
            except confluent_kafka.KafkaException as error:
                raise CannotWrite(f"upstream: {error.args[0].str()}") from None
        return self._producer

    def _renew_password(self) -> None:
        """A password file may have changed; a new one counts from the next connection on."""
        sasl = self._upstream.sasl
        now = time.monotonic()
        if sasl is None or sasl.password_file is None or now - self._password_at < _PASSWORD_SECONDS:
            return
        self._password_at = now
        try:
            password = sasl.current_password.get()
        except PasswordUnreadable:
            return  # the one before stands; what asks the cluster tells of it
        if password != self._password:
            self._password = password
            self._producer.set_sasl_credentials(sasl.username, password)

    def _complains(self, error: Any) -> None:
        import confluent_kafka  # noqa: PLC0415

        now, errors = time.monotonic(), confluent_kafka.KafkaError
        if error.code() == errors._AUTHENTICATION:
            self._password_at = -_PASSWORD_SECONDS  # the file may have another one by now
        says_why = error.code() != errors._ALL_BROKERS_DOWN  # which comes behind why they are
        if says_why or now - self._trouble_at > _TROUBLE_SECONDS:
            self._trouble, self._trouble_at = str(error.str()), now

    def _reason_of(self, error: Any) -> str:
        """Of what was not delivered in time, or failed for good, librdkafka says only that; what it complained of last
        says why.
        """
        import confluent_kafka  # noqa: PLC0415

        reason = str(error.str())
        errors = confluent_kafka.KafkaError
        says_little = error.code() in (errors._MSG_TIMED_OUT, errors._FATAL, errors._PURGE_QUEUE)
        if says_little and self._trouble and time.monotonic() - self._trouble_at < _TROUBLE_SECONDS:
            return f"{reason} ({self._trouble})"
        return reason
