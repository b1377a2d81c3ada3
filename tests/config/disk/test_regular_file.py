"""Only regular files are read, without waiting for other kinds of files. During a replacement, either the old or the
new file is read."""

import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from sluicegate.config.disk.deadline import FileUnreadable
from sluicegate.config.disk.regular_file import read_file
from sluicegate.config.values.password import Password, PasswordUnreadable
from tests.config.reading import SMALLEST, load_text

KIB = 1 << 10


def make_fifo(path: Path) -> None:
    os.mkfifo(path)


def link_to_a_fifo(path: Path) -> None:
    os.mkfifo(path.with_name("fifo"))
    path.symlink_to("fifo")


def listening_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


KINDS: dict[str, tuple[Callable[[Path], None], str]] = {
    "FIFO": (make_fifo, "expected a regular file, found a FIFO"),
    "link to a FIFO": (link_to_a_fifo, "expected a regular file, found a FIFO"),
    "socket": (listening_socket, "expected a regular file, found a socket"),
    "device without end": (lambda path: path.symlink_to("/dev/zero"), "expected a regular file, found a device"),
    "device without content": (lambda path: path.symlink_to("/dev/null"), "expected a regular file, found a device"),
    "folder": (Path.mkdir, "Is a directory"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_only_regular_files_are_read(kind: str, tmp_path: Path) -> None:
    make, reason = KINDS[kind]
    path = tmp_path / "file"
    make(path)

    with pytest.raises(FileUnreadable) as raised:
        read_file(path, KIB)

    assert raised.value.strerror == reason


def test_a_file_above_the_size_limit_is_not_read_further(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with path.open("wb") as file:
        file.truncate(1 << 40)  # a sparse file without any data on the disk

    assert read_file(path, 3 * KIB) == bytes(3 * KIB + 1)


def test_file_replaced_during_a_read_is_never_read_as_a_mixture(tmp_path: Path) -> None:
    path = tmp_path / "file"
    contents = [letter * (3 << 20) for letter in (b"a", b"b")]
    path.write_bytes(contents[0])
    ended = threading.Event()

    def replace_again_and_again() -> None:
        while not ended.is_set():
            for content in contents:
                (tmp_path / "new").write_bytes(content)
                (tmp_path / "new").replace(path)

    replacing = threading.Thread(target=replace_again_and_again)
    replacing.start()
    try:
        found = {read_file(path, 4 << 20) for _ in range(30)}
    finally:
        ended.set()
        replacing.join()

    assert found <= set(contents)


def test_password_is_read_again_after_its_folder_link_changes(tmp_path: Path) -> None:
    for name in ("..1", "..2"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "password").write_text(name)
    (tmp_path / "..data").symlink_to("..1")
    (tmp_path / "password").symlink_to("..data/password")
    password = Password("a.password_file", None, str(tmp_path / "password"))
    assert password.get() == "..1"

    (tmp_path / "..new").symlink_to("..2")
    (tmp_path / "..new").replace(tmp_path / "..data")

    assert password.get() == "..2"


def test_rejects_password_file_that_is_a_fifo_with_its_key(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "password")

    with pytest.raises(PasswordUnreadable) as raised:
        Password("upstream.sasl.password_file", None, str(tmp_path / "password")).get()

    assert str(raised.value) == (
        f"upstream.sasl.password_file: {tmp_path}/password cannot be read: expected a regular file, found a FIFO"
    )


def test_rejects_topic_file_that_is_a_fifo(tmp_path: Path) -> None:
    from sluicegate.config.loading import ConfigError, load_file  # noqa: PLC0415

    os.mkfifo(tmp_path / "team.yaml")
    main = tmp_path / "c.yml"
    main.write_text(SMALLEST + "topic_files: '*.yaml'\n")

    with pytest.raises(ConfigError) as raised:
        load_file(main, {})

    assert [str(problem) for problem in raised.value.problems] == [
        f"{tmp_path}/team.yaml: cannot be read: expected a regular file, found a FIFO"
    ]
    (tmp_path / "team.yaml").unlink()
    assert load_text(SMALLEST).config.topics == ()
