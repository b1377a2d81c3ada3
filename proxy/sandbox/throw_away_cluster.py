"""The brokers of `sluicegate sandbox --upstream`, which the caller starts and discards."""

from collections.abc import Iterable, Sequence

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from sluicegate.config.values.address import HostPort
from sluicegate.proxy.server.startup import CannotStart

_SECONDS = 10
_DEFAULT_OF_BROKER = -1


class ThrowAwayCluster:
    """Brokers without TLS or login."""

    def __init__(self, addresses: Sequence[HostPort]) -> None:
        self.bootstrap = list(map(str, addresses))
        self._admin = AdminClient({"bootstrap.servers": ",".join(self.bootstrap), "log_level": 0})

    def node_ids(self) -> list[int]:
        """Return the brokers' node ids. Blocks for at most 10 s. Raises CannotStart."""
        try:
            return sorted(self._admin.list_topics(timeout=_SECONDS).brokers)
        except KafkaException as error:
            named = ", ".join(self.bootstrap)
            raise CannotStart(f"--upstream {named}: no broker responds within {_SECONDS} s: {_text(error)}") from error

    def create_topics(self, names: Iterable[str]) -> None:
        """Create the topics that do not exist, with the broker's defaults. Raises CannotStart."""
        new = [NewTopic(name, _DEFAULT_OF_BROKER, _DEFAULT_OF_BROKER) for name in dict.fromkeys(names)]
        created = self._admin.create_topics(new, operation_timeout=_SECONDS) if new else {}
        for name, future in created.items():
            try:
                future.result(_SECONDS)
            except KafkaException as error:
                if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    raise CannotStart(f"topic {name} cannot be created: {_text(error)}") from error


def _text(error: KafkaException) -> str:
    return str(error.args[0].str())
