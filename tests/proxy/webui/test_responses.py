"""The web UI's files are complete, use no external resources, and are safe against markup in client names."""

import gzip
import hashlib
import re
from pathlib import Path

import pytest

from sluicegate.proxy.webui.responses import _KINDS, ON_DEMAND, asset
from tests.oracle.kafka_java import ROOT
from tests.structure.imports import cycle_in

FOLDER = ROOT / "proxy" / "webui" / "assets"
# Calls that interpret a string as markup or code.
UNSAFE = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|setAttribute\(\"on")


def test_exactly_the_files_in_the_assets_folder_are_served() -> None:
    assert {str(file.relative_to(FOLDER)) for file in FOLDER.rglob("*.*")} == set(_KINDS)
    for name in _KINDS:
        page = asset(f"/ui/{name}")
        assert page is not None
        assert page.body == (FOLDER / name).read_bytes()
        assert "default-src 'none'" in dict(page.headers)["Content-Security-Policy"]
    assert asset("/") == asset("/ui/index.html")
    compressed = asset("/ui/main.js", takes_gzip=True)
    assert compressed is not None
    assert dict(compressed.headers)["Content-Encoding"] == "gzip"
    assert gzip.decompress(compressed.body) == (FOLDER / "main.js").read_bytes()


def test_vendored_files_are_unchanged_and_have_licences() -> None:
    text = (FOLDER / "vendor" / "LICENSES.txt").read_text()
    listed = dict(re.findall(r"^(\S+\.(?:js|css)) .* ([0-9a-f]{64})$", text, re.MULTILINE))

    found = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in (FOLDER / "vendor").glob("*.*s*")}
    assert {name: digest for name, digest in found.items() if name != "LICENSES.txt"} == listed
    assert text.count("Permission is hereby granted") == 2  # MIT
    assert "Apache License" in text


def test_compressed_size_of_a_page_load_is_below_90_kb() -> None:
    """The limit applies to compressed bytes, most of which are uPlot's."""
    not_loaded = {"vendor/LICENSES.txt", *(f"{name}.js" for name in ON_DEMAND)}
    bodies = [asset(f"/ui/{name}", takes_gzip=True) for name in _KINDS if name not in not_loaded]
    assert sum(len(body.body) for body in bodies if body is not None) < 90_000


@pytest.mark.parametrize(
    "path", ["/ui/", "/ui/../access.py", "/ui/access.py", "/ui//style.css", "/index.html", "/ui/main.js/"]
)
def test_paths_outside_of_the_web_ui_folder_are_not_served(path: str) -> None:
    assert asset(path) is None


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.*")), ids=lambda file: file.name)
def test_assets_use_no_external_resources_and_no_unsafe_markup(file: Path) -> None:
    text = file.read_text().replace(
        '"https://docs.example.com/OWNER/clients-guide', ""
    )  # a link, which the browser does not load

    assert [found for found in re.findall(r"(?:https?:)?//[\w.-]+\.\w+", text) if "www.w3.org" not in found] == []
    assert UNSAFE.findall(text) == []
    assert not re.search(r"\son\w+=(?!\$\{)|style=(?!\$\{)|<script(?! type=\"module\" src=)", text)


def test_every_imported_script_exists() -> None:
    for file in FOLDER.glob("*.js"):
        for name in re.findall(r'from "\./([\w./]+)"', file.read_text()):
            assert (FOLDER / name).exists(), f"{file.name} imports {name}"
    assert set(re.findall(r'(?:src|href)="ui/([\w./]+)"', (FOLDER / "index.html").read_text())) <= set(_KINDS)


def test_scripts_have_no_import_cycle() -> None:
    graph = {file.name: set(re.findall(r'from "\./([\w.]+)"', file.read_text())) for file in FOLDER.glob("*.js")}

    assert cycle_in(graph) is None
