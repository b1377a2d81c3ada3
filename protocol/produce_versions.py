"""The first Produce version with each field or rule, from Kafka's ProduceRequest.json and ProduceResponse.json."""

THROTTLE_SINCE = 1
APPEND_TIME_SINCE = 2
ONE_BATCH_SINCE = 3
"""Exactly one batch of magic 2 per partition, and a transactional id (KIP-98)."""
LOG_START_SINCE = 5
ZSTD_SINCE = 7
RECORD_ERRORS_SINCE = 8
"""Record errors and an error message (KIP-467)."""
FLEXIBLE_SINCE = 9
"""Compact types and tagged fields (KIP-482)."""
NODE_ENDPOINTS_SINCE = 10
"""Node endpoints (KIP-951)."""
TOPIC_ID_SINCE = 13
"""Topic ids instead of names (KIP-516)."""
