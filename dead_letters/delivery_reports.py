"""Serves the delivery reports of confluent-kafka's producer, with its fatal errors as exceptions."""

import sys
from collections.abc import Callable, Sequence

from confluent_kafka import KafkaError, KafkaException


def serve(call: Callable[[], object], failed: Sequence[KafkaError]) -> None:
    """Call a function that serves delivery reports, which add to `failed`. Raises KafkaException.

    The binding raises a fatal error as a KafkaError, which is not an exception, or as the cause of a SystemError. It
    runs delivery reports while that error is pending, which can lose it: then the SystemError has no cause.
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
