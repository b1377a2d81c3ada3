"""One producer of the proxy's own: librdkafka, which batches, connects and tries again in threads of its own.

The client is the package confluent-kafka, which only these features need: it is imported when something is to be
written, and `check_client` says at start when it is missing.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sluicegate.config.model import Upstream
from sluicegate.config.password import PasswordUnreadable
from sluicegate.proxy.writing.producer_settings import Settings, connection_settings

Header = tuple[str, bytes | None]
Told = Callable[[str | None], None]
"""Told once what became of a record: None, it is stored; else why not. Called within `serve`."""

_PASSWORD_SECONDS = 30.0


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

    `settings` go on top of those of the connection. `trouble`: what librdkafka last complained of, None: of nothing.
    """

    def __init__(self, upstream: Upstream, settings: Mapping[str, str | int | bool]) -> None:
        self._upstream = upstream
        self._settings = settings
        self._producer: Any = None
        self._ended: list[Any] = []  # failed for good, with records of which it has still to be told
        self._password: str | bool | int | None = None
        self._password_at = 0.0
        self.trouble: str | None = None

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
                self._ended.append(producer)
                self._producer = None
            raise CannotWrite(self._reason_of(error)) from None

    def serve(self, seconds: float) -> None:
        """Tell what has become of records, for at most this long where there is nothing to tell yet."""
        for ended in self._ended:
            ended.poll(seconds)
        self._ended = [ended for ended in self._ended if len(ended)]
        if self._producer is not None:
            self._renew_password()
            self._producer.poll(seconds)

    def _producer_now(self) -> Any:
        if self._producer is None:
            import confluent_kafka  # noqa: PLC0415

            try:
                settings: Settings = connection_settings(self._upstream)
                self._password = settings.get("sasl.password")
                self._password_at = time.monotonic()
                own: Any = {**settings, **self._settings, "error_cb": self._complains}
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
        self.trouble = str(error.str())

    def _reason_of(self, error: Any) -> str:
        """What librdkafka could not deliver in time it says only that of; what it complained of last says why."""
        import confluent_kafka  # noqa: PLC0415

        reason = str(error.str())
        if error.code() == confluent_kafka.KafkaError._MSG_TIMED_OUT and self.trouble is not None:
            return f"{reason} ({self.trouble})"
        return reason
