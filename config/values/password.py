"""Reads passwords and other secrets, from the configuration or from a file that may change while the proxy runs."""

from dataclasses import dataclass, field
from pathlib import Path

from sluicegate.config.disk.kept_files import ReadContent, read_kept

_MAX_BYTES = 64 << 10


@dataclass(frozen=True, slots=True)
class SecretText:
    """A secret from the configuration. `str` and `repr` do not show it."""

    _text: str = field(repr=False)

    def get_secret_value(self) -> str:
        """Return the secret itself."""
        return self._text

    def __str__(self) -> str:
        return "**********"


class PasswordUnreadable(Exception):
    """Raised for a password file that cannot be used. The message contains the key, file and reason, but no content."""

    def __init__(self, key: str, message: str) -> None:
        super().__init__(f"{key}: {message}")
        self.key = key
        self.message = message


@dataclass(frozen=True, slots=True)
class Password:
    """A password, a file with a password, or neither. `key` is the configuration key of the file, for messages."""

    key: str
    value: SecretText | None
    file: str | None

    def get(self, read: ReadContent = read_kept) -> str:
        """Return the current password. It is empty if neither a password nor a file is set.

        Reads the file each time. While the file is missing or unreadable, its last content is used, unless `read` is
        `read_current`. Line ends at the end are removed. Reading may block for seconds, so do not call this in an event
        loop. Raises PasswordUnreadable.
        """
        if self.file is None:
            return "" if self.value is None else self.value.get_secret_value()
        try:
            content = read(Path(self.file), _MAX_BYTES)
        except OSError as error:
            raise PasswordUnreadable(self.key, f"{self.file} cannot be read: {error.strerror}") from error
        try:
            password = content.decode().rstrip("\r\n")
        except UnicodeDecodeError:
            raise PasswordUnreadable(self.key, f"{self.file} is not UTF-8") from None
        if len(content) > _MAX_BYTES or "\0" in password:
            raise PasswordUnreadable(self.key, f"{self.file} does not contain a password")
        if not password:
            raise PasswordUnreadable(self.key, f"{self.file} is empty")
        return password


def check_one_source(key: str, value: SecretText | None, file: str | None) -> None:
    """Raise ValueError if both the value and the file are set."""
    if value is not None and file is not None:
        raise ValueError(f"{key} and {key}_file cannot be combined")
