"""Provides one real registry for all tests in a process, and a silent registry."""

import socket
from collections.abc import Iterator

import pytest

from tests.registry.apicurio import Apicurio


@pytest.fixture(scope="session")
def registry_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Apicurio]:
    registry = Apicurio(tmp_path_factory.mktemp("registry"))
    try:
        yield registry
    finally:
        registry.stop()


@pytest.fixture(scope="module")
def apicurio(registry_process: Apicurio) -> Apicurio:
    """Return the running registry, which may contain subjects from other files."""
    return registry_process if registry_process.process is not None else registry_process.start()


@pytest.fixture
def silent_url() -> Iterator[str]:
    """Yield the URL of a server that accepts connections and never responds."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
