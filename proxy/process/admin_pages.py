"""What the admin endpoint answers: /metrics, /livez and /readyz."""

import gzip

from sluicegate.proxy.page.answer import Page, Slow, text_page
from sluicegate.proxy.process.health import Health
from sluicegate.proxy.reporting.exposition import takes_gzip, wanted_by
from sluicegate.proxy.reporting.metrics import Look


class AdminPages:
    """Finds the page for a request."""

    def __init__(self, metrics: Look, health: Health) -> None:
        self._look = metrics
        self._health = health

    def find(self, method: str, path: str, headers: dict[str, str]) -> Page | Slow | None:
        """The page, or what makes it; None: it is none of these. Names of headers are in lower case."""
        if method not in ("GET", "HEAD"):
            return text_page(405, "only GET and HEAD are answered", ("Allow", "GET, HEAD"))
        match path.partition("?")[0]:
            case "/metrics":
                return lambda: self._metrics(headers.get("accept", ""), headers.get("accept-encoding", ""))
            case "/livez":
                return _state(self._health.not_live())
            case "/readyz":
                return _state(self._health.not_ready, self._health.trouble, self._health.bad_config)
        return None

    def _metrics(self, accept: str, accept_encoding: str) -> Page:
        write, content_type = wanted_by(accept)
        body, headers = write(self._look()), (("Content-Type", content_type),)
        if takes_gzip(accept_encoding):
            return Page(200, gzip.compress(body, 1), (*headers, ("Content-Encoding", "gzip")))
        return Page(200, body, headers)


def _state(problem: str | None, *troubles: str | None) -> Page:
    lines = [problem or "ok", *(f"but: {trouble}" for trouble in troubles if trouble is not None)]
    return text_page(200 if problem is None else 503, "\n".join(lines))
