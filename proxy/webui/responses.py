"""The admin endpoint's HTTP responses: text, JSON, and the web UI's files in the package."""

import gzip
import json
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files

TEXT = "text/plain; charset=utf-8"
_FOLDER = "assets"
_GZIP_LEVEL = 6
_HTML, _CSS, _SCRIPT, _IMAGE = "text/html", "text/css", "text/javascript", "image/svg+xml"
_SCRIPTS = (
    "main", "route", "store", "stream", "format", "html", "parts", "chart", "distances", "examples", "fixes",
    "topic_policy", "history", "overview", "fleet", "clients", "topics", "violations", "connections", "policy",
    "policy_changes", "read_by_days", "recorded_violations", "shared_changes", "shared_fleet",
    "vendor/preact", "vendor/htm", "vendor/uplot",
)  # fmt: skip
ON_DEMAND = ("letters", "letter_hours")
"""Scripts for single views, which the page loads when the view is opened."""
_KINDS = {
    "index.html": _HTML,
    "style.css": _CSS,
    "icon.svg": _IMAGE,
    "vendor/uplot.css": _CSS,
    "vendor/LICENSES.txt": "text/plain",
    **{f"{name}.js": _SCRIPT for name in (*_SCRIPTS, *ON_DEMAND)},
}
# The browser may use only the package's own files, so names from clients cannot run, load or send anything.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types 'none'"
)
SAFE = (
    ("Content-Security-Policy", _POLICY),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cache-Control", "no-store"),
)


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """A response with a status, a body and headers."""

    status: int
    body: bytes
    headers: tuple[tuple[str, str], ...] = (("Content-Type", TEXT),)


Slow = Callable[[], HttpResponse]
"""Returns a response, possibly after some time, so an event loop must not call it."""


def json_response(value: object) -> HttpResponse:
    """Return a value as JSON, with status 200."""
    return HttpResponse(200, json.dumps(value).encode(), (("Content-Type", "application/json"), *SAFE))


def text_response(status: int, text: str, *headers: tuple[str, str]) -> HttpResponse:
    """Return a response with one line for people."""
    return HttpResponse(status, f"{text}\n".encode(), (("Content-Type", TEXT), *headers))


def asset(path: str, takes_gzip: bool = False) -> HttpResponse | None:
    """Return the web UI's file at `path`, or None if there is none."""
    name = "index.html" if path == "/" else path.removeprefix("/ui/")
    kind = _KINDS.get(name)
    if kind is None or path not in ("/", f"/ui/{name}"):
        return None
    content = files("sluicegate.proxy.webui").joinpath(_FOLDER, *name.split("/")).read_bytes()
    headers = (("Content-Type", f"{kind}; charset=utf-8"), ("Vary", "Accept-Encoding"), *SAFE)
    if takes_gzip:
        return HttpResponse(200, gzip.compress(content, _GZIP_LEVEL), (*headers, ("Content-Encoding", "gzip")))
    return HttpResponse(200, content, headers)
