"""The folder that tasks write files to by Arrow, with Spark's own settings for it."""

from collections.abc import Callable
from dataclasses import dataclass, field

from pyarrow import fs

_AS_ARROW = {"access.key": "access_key", "secret.key": "secret_key", "session.token": "session_token"}
_REGIONLESS = "us-east-1"
"""Region for a store with its own endpoint, unless one is set."""
_TIMEOUTS: dict[str, str | bool | float] = {"connect_timeout": 30.0, "request_timeout": 200.0}
"""Seconds, as in Hadoop. Arrow's default of three is too short for a busy store."""


class OutputFolderError(Exception):
    """A file cannot be written; the text names it and the reason."""


@dataclass(frozen=True, slots=True)
class OutputFolder:
    """A folder. `s3`: Arrow's options if it is in S3 or a compatible store."""

    uri: str
    s3: dict[str, str | bool | float] = field(default_factory=dict, repr=False)

    def within(self, name: str) -> "OutputFolder":
        """Return a folder or file in it."""
        return OutputFolder(f"{self.uri.rstrip('/')}/{name}", self.s3)

    def file_system(self) -> tuple[fs.FileSystem, str]:
        """Return Arrow's file system and the path in it. Raises ValueError, OSError and ImportError if Arrow
        has none.
        """
        scheme, _, rest = self.uri.partition(":")
        if scheme == "file":
            return fs.LocalFileSystem(), "/" + rest.lstrip("/")
        if scheme == "s3a" and self.s3:
            return fs.S3FileSystem(**self.s3, allow_delayed_open=True), rest.lstrip("/")
        found: tuple[fs.FileSystem, str] = fs.FileSystem.from_uri(f"s3:{rest}" if scheme == "s3a" else self.uri)
        return found


def output_folder(uri: str, setting: Callable[[str], str | None]) -> OutputFolder:
    """Return the folder with the credentials that Spark uses; `setting` returns a Hadoop setting by name."""
    scheme, _, rest = uri.partition("://")
    if scheme != "s3a":
        return OutputFolder(uri)
    bucket = rest.partition("/")[0]

    def hadoop(name: str) -> str | None:
        return setting(f"fs.s3a.bucket.{bucket}.{name}") or setting(f"fs.s3a.{name}")

    options: dict[str, str | bool | float] = {}
    for name, arrow_name in _AS_ARROW.items():
        if value := hadoop(name):
            options[arrow_name] = value
    region, endpoint = hadoop("endpoint.region"), hadoop("endpoint")
    if endpoint:
        encrypted = "https" if (hadoop("connection.ssl.enabled") or "true") == "true" else "http"
        options["scheme"], _, options["endpoint_override"] = (
            endpoint.partition("://") if "://" in endpoint else (encrypted, "", endpoint)
        )
        options["force_virtual_addressing"] = (hadoop("path.style.access") or "false") != "true"
        region = region or _REGIONLESS
    if region:
        options["region"] = region
    return OutputFolder(uri, options | _TIMEOUTS if options else {})
