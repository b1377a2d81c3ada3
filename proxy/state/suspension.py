"""A suspension of enforcement by one proxy or by all proxies of a cluster."""

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum

ALL_TOPICS = "all topics"


class SuspensionScope(Enum):
    """The proxies to which a suspension applies. The values appear in the API."""

    PROXY = "proxy"
    CLUSTER = "cluster"


@dataclass(frozen=True, slots=True)
class Suspension:
    """A suspension of enforcement for `topic` until `until_ms` (Unix time, ms). `topic` is None for all topics."""

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
    """Format a time (Unix time, ms) in ISO 8601, in UTC, with seconds."""
    return datetime.fromtimestamp(time_ms // 1000, UTC).isoformat().replace("+00:00", "Z")
