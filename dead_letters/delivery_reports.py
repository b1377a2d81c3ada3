"""Serves the delivery reports of confluent-kafka's producer, and raises its fatal errors as exceptions."""

import sys
from collections.abc import Callable, Sequence

from confluent_kafka import KafkaError, KafkaException


def serve(call: Callable[[], object], failed: Sequence[KafkaError]) -> None:
    """Call a function that serves delivery reports, which append their errors to `failed`. Raises KafkaException.

    confluent-kafka raises a fatal error either as a bare KafkaError, which is not an exception, or as the cause of a
    SystemError. It also runs delivery reports while that error is pending, which can discard the error. The SystemError
    then has no cause.
    """
    try:
        call()
    except:
        error: object = sys.exc_info()[1]
        fatal: object = error
        if isinstance(error, SystemError):
            fatal = error.__cause__ or next(iter(failed), None)
        if isinstance(fatal, KafkaError):
            raise KafkaException(fatal) from None
        if isinstance(fatal, KafkaException):
            raise fatal from None
        raise
