"""Passwords, given as such or in a file that may change while the proxy runs."""

from dataclasses import dataclass
from pathlib import Path

from sluicegate.config.files.regular_file import read_file
from sluicegate.config.values.secret import SecretText

_MAX_BYTES = 64 << 10


class PasswordUnreadable(Exception):
    """A password's file cannot be used; the text names the key, the file and the reason, never what is in it."""

    def __init__(self, key: str, message: str) -> None:
        super().__init__(f"{key}: {message}")
        self.key = key
        self.message = message


@dataclass(frozen=True, slots=True)
class Password:
    """A password, the file that holds it, or neither. `key` is the one of the file, for messages."""

    key: str
    value: SecretText | None
    file: str | None

    def get(self) -> str:
        """The password as it is now: the file is read each time, so a new one is used at once. Empty without either.

        Line ends behind it are not part of it. A file may take seconds: not for an event loop. Raises
        PasswordUnreadable.
        """
        if self.file is None:
            return "" if self.value is None else self.value.get_secret_value()
        try:
            content = read_file(Path(self.file), _MAX_BYTES)
        except OSError as error:
            raise PasswordUnreadable(self.key, f"{self.file} cannot be read: {error.strerror}") from error
        try:
            password = content.decode().rstrip("\r\n")
        except UnicodeDecodeError:
            raise PasswordUnreadable(self.key, f"{self.file} is not UTF-8") from None
        if len(content) > _MAX_BYTES or "\0" in password:
            raise PasswordUnreadable(self.key, f"{self.file} does not hold a password")
        if not password:
            raise PasswordUnreadable(self.key, f"{self.file} is empty")
        return password


def check_one(key: str, value: SecretText | None, file: str | None) -> None:
    """Raises ValueError where both are given."""
    if value is not None and file is not None:
        raise ValueError(f"{key} and {key}_file exclude each other")
