"""The site is built from the pages with `--strict`, and loads nothing from the internet."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.docs.blocks import PAGES
from tests.oracle.kafka_java import ROOT

_LOADED = re.compile(r"<(?:script|img|iframe|link)\b[^>]*?(?:src|href)=\"?(https?://[^\" >]+)")
_LINK = re.compile(r"\]\((?!https?://)([^)#\s]*)(?:#([^)\s]+))?\)")
_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def build_site(root: Path, site: Path) -> "subprocess.CompletedProcess[str]":
    """Build the site as `make docs` does. Not with `--quiet`, which hides warnings from `--strict` too."""
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", site],
        cwd=root,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def built_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site. The build fails if a link or an anchor has no target."""
    folder = tmp_path_factory.mktemp("site")
    done = build_site(ROOT, folder)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize("link", ["no-such-page.md", "design.md#no-such-anchor"])
def test_a_link_without_a_target_is_an_error(link: str, tmp_path: Path) -> None:
    for file in ("mkdocs.yml", "pyproject.toml"):
        shutil.copy(ROOT / file, tmp_path)
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    with (tmp_path / "docs" / "index.md").open("a") as page:
        page.write(f"\n[a link]({link})\n")

    done = build_site(tmp_path, tmp_path / "site")

    assert done.returncode != 0
    assert link in done.stderr


def test_the_site_has_every_page(built_site: Path) -> None:
    pages = {page.relative_to(ROOT / "docs").with_suffix(".html") for page in PAGES if page.name != "README.md"}
    assert {page for page in pages if not (built_site / page).exists()} == set()


def test_each_page_shows_the_version(built_site: Path) -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    shown = re.compile(rf"sluicegate {re.escape(version)}, \d{{4}}-\d\d-\d\d\b")
    assert [page.name for page in built_site.rglob("*.html") if not shown.search(page.read_text())] == []


def test_links_between_pages_are_rendered_as_links(built_site: Path) -> None:
    lost, pages = [], [page for page in PAGES if page.is_relative_to(ROOT / "docs")]
    for page in pages:
        shown = (built_site / page.relative_to(ROOT / "docs")).with_suffix(".html")
        targets = {target for target, _ in _LINK.findall(_FENCED.sub("", page.read_text()))}
        between = {target for target in targets if (page.parent / target).resolve() in pages}
        html = shown.read_text().partition("<article")[2].partition("</article>")[0]
        lost += [(page.name, target) for target in between if f"{Path(target).stem}.html" not in html]
    assert lost == []


def test_the_site_loads_no_external_resource(built_site: Path) -> None:
    loaded = {(page.name, link) for page in built_site.rglob("*.html") for link in _LOADED.findall(page.read_text())}
    assert loaded == set()


def test_lists_and_tables_of_pages_are_rendered_as_such(built_site: Path) -> None:
    """The site's Markdown may render as a line of text what GitHub renders as a list."""
    text = re.compile(r"<p>(?:(?!</p>).)*\n(?:[-*] |\d+\. |\|)", re.DOTALL)
    assert [page.name for page in built_site.rglob("*.html") if text.search(page.read_text())] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_of_a_page_has_a_target_in_the_repository(page: Path) -> None:
    lost = []
    for target, anchor in _LINK.findall(_FENCED.sub("", page.read_text())):
        file = (page.parent / target).resolve() if target else page
        if not file.exists() or (anchor and file.suffix == ".md" and anchor not in anchors_of(file)):
            lost.append(f"{target}#{anchor}")
    assert lost == []


def anchors_of(page: Path) -> set[str]:
    """Return the anchors of a page's headings as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", _FENCED.sub("", page.read_text()), re.MULTILINE)
    plain = (re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower() for heading in headings)
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in plain}
