"""Where tasks write their files by Arrow, with what Spark was told of the place."""

from collections.abc import Callable
from dataclasses import dataclass, field

from pyarrow import fs

_AS_ARROW = {"access.key": "access_key", "secret.key": "secret_key", "session.token": "session_token"}
_REGIONLESS = "us-east-1"
"""What a store with an endpoint of its own is told, where nobody says another."""
_PATIENCE: dict[str, str | bool | float] = {"connect_timeout": 30.0, "request_timeout": 200.0}
"""Seconds, as Hadoop waits. Arrow gives a store three in which nothing moves; a busy one takes longer over a part."""


class PlaceFails(Exception):
    """A place does not take a file; the text says which, and why."""


@dataclass(frozen=True, slots=True)
class Place:
    """A folder; `s3` are Arrow's options where it lies in S3 or what speaks as S3 does."""

    uri: str
    s3: dict[str, str | bool | float] = field(default_factory=dict, repr=False)

    def within(self, name: str) -> "Place":
        """A folder or file in it."""
        return Place(f"{self.uri.rstrip('/')}/{name}", self.s3)

    def file_system(self) -> tuple[fs.FileSystem, str]:
        """What writes there, and the path for it. Raises ValueError, OSError and ImportError where Arrow knows none."""
        scheme, _, rest = self.uri.partition(":")
        if scheme == "file":
            return fs.LocalFileSystem(), "/" + rest.lstrip("/")
        if scheme == "s3a" and self.s3:
            return fs.S3FileSystem(**self.s3, allow_delayed_open=True), rest.lstrip("/")
        found: tuple[fs.FileSystem, str] = fs.FileSystem.from_uri(f"s3:{rest}" if scheme == "s3a" else self.uri)
        return found


def place_of(uri: str, setting: Callable[[str], str | None]) -> Place:
    """`setting` is Hadoop's by its name, so that a place which Spark can write to needs not be told of twice."""
    scheme, _, rest = uri.partition("://")
    if scheme != "s3a":
        return Place(uri)
    bucket = rest.partition("/")[0]

    def told(name: str) -> str | None:
        return setting(f"fs.s3a.bucket.{bucket}.{name}") or setting(f"fs.s3a.{name}")

    options: dict[str, str | bool | float] = {}
    for name, arrows in _AS_ARROW.items():
        if value := told(name):
            options[arrows] = value
    region, endpoint = told("endpoint.region"), told("endpoint")
    if endpoint:
        encrypted = "https" if (told("connection.ssl.enabled") or "true") == "true" else "http"
        options["scheme"], _, options["endpoint_override"] = (
            endpoint.partition("://") if "://" in endpoint else (encrypted, "", endpoint)
        )
        options["force_virtual_addressing"] = (told("path.style.access") or "false") != "true"
        region = region or _REGIONLESS
    if region:
        options["region"] = region
    return Place(uri, options | _PATIENCE if options else {})
