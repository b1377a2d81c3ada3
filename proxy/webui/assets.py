"""The page's files: one HTML file, one style sheet and a few scripts, as they lie in the package."""

from importlib.resources import files

from sluicegate.proxy.webui.response import Response

_FOLDER = "assets"
_HTML, _CSS, _SCRIPT, _IMAGE = "text/html", "text/css", "text/javascript", "image/svg+xml"
_SCRIPTS = (
    "main", "stream", "elements", "words", "flow", "tables", "distances", "policy",
)  # fmt: skip
_KINDS = {"index.html": _HTML, "page.css": _CSS, "icon.svg": _IMAGE, **{f"{name}.js": _SCRIPT for name in _SCRIPTS}}
# Own files and nothing else: whatever a client calls itself, no browser runs it, loads it or sends it anywhere.
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


def asset(path: str) -> Response | None:
    """The file that a path asks for; None: there is none."""
    name = "index.html" if path == "/" else path.removeprefix("/page/")
    kind = _KINDS.get(name)
    if kind is None or path not in ("/", f"/page/{name}"):
        return None
    content = files("sluicegate.proxy.webui").joinpath(_FOLDER, name).read_bytes()
    return Response(200, content, (("Content-Type", f"{kind}; charset=utf-8"), *SAFE))
