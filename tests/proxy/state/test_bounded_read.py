"""librdkafka drops a request that waits for a bootstrap connection, so a reader sends it again."""

import pytest
from confluent_kafka import KafkaError, KafkaException

from sluicegate.proxy.state.bounded_read import asked


class Cluster:
    """Fails with these errors in turn, then answers."""

    def __init__(self, *codes: int) -> None:
        self._errors = [KafkaException(KafkaError(code)) for code in codes]
        self.questions = 0

    def question(self) -> str:
        self.questions += 1
        if self._errors:
            raise self._errors.pop(0)
        return "answer"


def test_query_dropped_with_its_connection_is_sent_again() -> None:
    cluster = Cluster(KafkaError._DESTROY_BROKER)
    assert asked(cluster.question) == "answer"
    assert cluster.questions == 2


@pytest.mark.parametrize(
    "codes", [(KafkaError._TRANSPORT,), (KafkaError._DESTROY_BROKER, KafkaError._DESTROY_BROKER)], ids=str
)
def test_query_raises_other_errors_and_a_second_dropped_request(codes: tuple[int, ...]) -> None:
    cluster = Cluster(*codes)
    with pytest.raises(KafkaException) as raised:
        asked(cluster.question)
    assert raised.value.args[0].code() == codes[-1]
    assert cluster.questions == len(codes)
