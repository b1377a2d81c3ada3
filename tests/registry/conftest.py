"""One real registry for the tests of a file, and a silent one."""

import socket
from collections.abc import Iterator

import pytest

from tests.registry.apicurio import Apicurio


@pytest.fixture(scope="module")
def apicurio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Apicurio]:
    registry = Apicurio(tmp_path_factory.mktemp("registry"))
    try:
        yield registry.start()
    finally:
        registry.stop()


@pytest.fixture
def silent_url() -> Iterator[str]:
    """Whoever connects is never answered."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
