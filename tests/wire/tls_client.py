"""Provides a `RawClient` over TLS."""

import ssl

from tests.wire.raw_client import RawClient


class TlsClient(RawClient):
    """One connection."""

    def __init__(self, address: str, context: ssl.SSLContext, timeout: float = 10) -> None:
        super().__init__(address, timeout)
        self.socket = context.wrap_socket(self.socket, server_hostname=address.rpartition(":")[0])
