"""The files of the web UI: complete, without external resources, and safe against markup in client names."""

import re
from pathlib import Path

import pytest

from sluicegate.proxy.webui.responses import _KINDS, asset
from tests.oracle.kafka_java import ROOT

FOLDER = ROOT / "proxy" / "webui" / "assets"
# What makes markup or code of a text.
UNSAFE = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|setAttribute\(\"on")


def test_every_file_in_the_folder_is_served_and_no_other() -> None:
    assert {file.name for file in FOLDER.iterdir()} == set(_KINDS)
    for name in _KINDS:
        page = asset(f"/ui/{name}")
        assert page is not None
        assert page.body == (FOLDER / name).read_bytes()
        assert "default-src 'none'" in dict(page.headers)["Content-Security-Policy"]
    assert asset("/") == asset("/ui/index.html")


@pytest.mark.parametrize(
    "path", ["/ui/", "/ui/../access.py", "/ui/access.py", "/ui//style.css", "/index.html", "/ui/main.js/"]
)
def test_nothing_else_is(path: str) -> None:
    assert asset(path) is None


@pytest.mark.parametrize("file", sorted(FOLDER.iterdir()), ids=lambda file: file.name)
def test_no_external_resources_and_no_markup_from_texts(file: Path) -> None:
    text = file.read_text()

    assert [found for found in re.findall(r"(?:https?:)?//[\w.-]+\.\w+", text) if "www.w3.org" not in found] == []
    assert UNSAFE.findall(text) == []
    assert not re.search(r"\son\w+=|style=|<script(?! type=\"module\" src=)", text)


def test_every_imported_script_exists() -> None:
    for file in FOLDER.glob("*.js"):
        for name in re.findall(r'from "\./([\w.]+)"', file.read_text()):
            assert (FOLDER / name).exists(), f"{file.name} imports {name}"
    ids = set(re.findall(r'id="([\w-]+)"', (FOLDER / "index.html").read_text()))
    used = {name for file in FOLDER.glob("*.js") for name in re.findall(r'byId\("([\w-]+)"\)', file.read_text())}
    assert used <= ids
