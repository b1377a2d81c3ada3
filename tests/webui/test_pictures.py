"""`make pictures` can write each picture of the pages."""

import struct
from pathlib import Path

import pytest

from tests.broker.ports import free_ports
from tests.webui.browser import needs_chromium
from tests.webui.pictures import FOLDER, PICTURES, take_all

pytestmark = needs_chromium


def size_of(picture: Path) -> tuple[int, int]:
    """Return the width and the height that a PNG file states."""
    width, height = struct.unpack(">II", picture.read_bytes()[16:24])
    return width, height


def test_each_picture_of_the_web_ui_has_a_view() -> None:
    assert {file.name for file in FOLDER.glob("web-ui-*.png")} == set(PICTURES)


@pytest.mark.long
def test_the_demo_has_every_view_of_the_pictures(tmp_path: Path) -> None:
    first = free_ports(16)

    take_all(tmp_path, 20, first, first + 1)

    assert {file.name for file in tmp_path.iterdir()} == set(PICTURES)
    assert {size_of(file)[0] for file in tmp_path.iterdir()} <= set(range(1100, 1200))
