"""Functions that packages have loaded are called natively, where they show them."""

import importlib

import pytest

from sluicegate.proxy.fastpath.paths import HAS_FAST_LANE

pytestmark = pytest.mark.skipif(not HAS_FAST_LANE, reason="nothing was compiled")


def test_the_packages_that_are_installed_here_show_them() -> None:
    libraries = importlib.import_module("sluicegate.protocol.records.codecs.loaded_libraries")

    assert libraries.found() == ["LZ4_decompress_safe", "crc32_iscsi"]
