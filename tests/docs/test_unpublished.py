"""Pages for users state that nothing has been published, until one command of the first release removes this."""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SCRIPT = "scripts/release/unpublished.py"


def run_script(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, root / SCRIPT, *arguments], capture_output=True, text=True, check=False)


def test_each_page_has_its_note_about_the_unpublished_package() -> None:
    done = run_script(ROOT, "--check")

    assert done.returncode == 0, done.stderr


def test_the_first_release_removes_every_note_about_the_unpublished_package(tmp_path: Path) -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    for file in (ROOT / SCRIPT, *pages):
        (tmp_path / file.relative_to(ROOT)).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, tmp_path / file.relative_to(ROOT))

    assert run_script(tmp_path, "--published").returncode == 0

    copies = [tmp_path / page.relative_to(ROOT) for page in pages if page.name != "release.md"]
    assert [
        file.name for file in copies if "published yet" in file.read_text() or "not published" in file.read_text()
    ] == []
    assert run_script(tmp_path, "--check").returncode == 1
