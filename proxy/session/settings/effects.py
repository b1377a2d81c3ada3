"""The effects that the handler of topic settings yields in addition to those of the Produce handlers, as values.

`sluicegate.proxy.session.settings.effect_performer` performs them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from sluicegate.protocol.framing import Parts
from sluicegate.proxy.session.effect import Effect
from sluicegate.proxy.session.topic_settings import Failures, SettingsChange

T = TypeVar("T")
GiveWay = Callable[[], None]


@dataclass(frozen=True, slots=True)
class AskClientsBroker(Effect[bytearray]):
    """Send the client's broker a request on the client's connection. The result is the response.

    The client's request was complete at `arrived` (s).
    """

    parts: Parts
    correlation_id: int
    api_key: int
    arrived: float


@dataclass(frozen=True, slots=True)
class InBackground(Effect[T]):
    """Do work that takes long or blocks, and has no side effects, in the background. Raises its errors."""

    work: Callable[[GiveWay], T]


@dataclass(frozen=True, slots=True)
class AwaitFirstRead(Effect[None]):
    """Wait until this proxy knows the topic settings, for at most a few seconds after its start."""


@dataclass(frozen=True, slots=True)
class StoreSettings(Effect[Failures]):
    """Store changes of topic settings. The result contains the failure of each topic whose change failed."""

    changes: Sequence[SettingsChange]


@dataclass(frozen=True, slots=True)
class Deliver(Effect[None]):
    """Send the client the response to a request after the broker has responded. No other request is in flight."""

    response: Parts
