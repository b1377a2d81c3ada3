"""A suspension of enforcement, of one proxy or of all proxies of a cluster."""

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum

ALL_TOPICS = "all topics"


class SuspensionScope(Enum):
    """The proxies that a suspension applies to; values as the API has them."""

    PROXY = "proxy"
    CLUSTER = "cluster"


@dataclass(frozen=True, slots=True)
class Suspension:
    """Enforcement is suspended for `topic` (None: all topics) until `until_ms` (Unix time, ms)."""

    topic: str | None
    reason: str
    until_ms: int
    scope: SuspensionScope = SuspensionScope.PROXY
    actor: str = ""

    def __str__(self) -> str:
        until = time_text(self.until_ms)
        text = f"enforcement is suspended for {self.topic or ALL_TOPICS} until {until}: {self.reason}"
        return text if self.scope is SuspensionScope.PROXY else f"{text} (all proxies, by {self.actor})"


def time_text(time_ms: int) -> str:
    """Return a time (Unix time, ms) in ISO 8601, UTC, to the second."""
    return datetime.fromtimestamp(time_ms // 1000, UTC).isoformat().replace("+00:00", "Z")
