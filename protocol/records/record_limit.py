"""Limits how many records the batches in one Produce request may state in total (`limits.max_request_records`)."""

from sluicegate.protocol.errors import TooManyRecords
from sluicegate.protocol.produce_request import ProduceRequest
from sluicegate.protocol.records.record_batch import stated_record_count


def check_record_count(request: ProduceRequest, most: int | None) -> None:
    """Raise TooManyRecords if the batches in a request state more than `most` records in total.

    None means no limit. Only headers are read. A batch whose number of records differs from the stated number is
    rejected during validation.
    """
    if most is None:
        return
    left = most
    for t, topic in enumerate(request.topics):
        for p in range(len(topic.partitions)):
            records = request.records(t, p)
            if records is not None:
                left -= stated_record_count(records)
            if left < 0:
                raise TooManyRecords(
                    f"Produce v{request.version}: more records than limits.max_request_records ({most}) allows for one "
                    "request: raise it, or let the producer send less at once"
                )
