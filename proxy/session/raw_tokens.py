"""SASL tokens without headers (SaslHandshake v0), told apart from the Kafka requests that come behind them."""

from sluicegate.protocol.headers import HEAD_BYTES, read_request_head

# Far above every API key and version there is, and below what SASL tokens begin with.
_API_KEYS_END = 512
_VERSIONS_END = 32


def may_be_request(size: int, head: bytes) -> bool:
    """Whether a frame among raw SASL tokens opens like a Kafka request, of whatever API and version.

    No token does: PLAIN, SCRAM and OAUTHBEARER tokens begin with text (or a NUL and text), GSSAPI's with 0x60 or 0x05.
    """
    if size < HEAD_BYTES or len(head) < HEAD_BYTES:
        return False
    api_key, version, _ = read_request_head(head)
    return 0 <= api_key < _API_KEYS_END and 0 <= version < _VERSIONS_END
