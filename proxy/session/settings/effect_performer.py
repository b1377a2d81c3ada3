"""Performs the effects of the topic settings' handler: on connections, in the background, and on stored settings."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from sluicegate.proxy.scheduling.background_thread import BackgroundJob
from sluicegate.proxy.scheduling.fair_sharing import Account
from sluicegate.proxy.session.client.identity import ClientIdentity
from sluicegate.proxy.session.delivery import Delivery
from sluicegate.proxy.session.effect import Effect
from sluicegate.proxy.session.forwarding import Forwarding
from sluicegate.proxy.session.in_flight import InFlightRequest
from sluicegate.proxy.session.pause_reason import PauseReason
from sluicegate.proxy.session.produce.dependencies import ProduceDependencies
from sluicegate.proxy.session.request_runner import Perform, Resume, Wait
from sluicegate.proxy.session.settings.effects import (
    AskClientsBroker,
    AwaitFirstRead,
    Deliver,
    InBackground,
    StoreSettings,
)
from sluicegate.proxy.session.topic_settings import Requester, TopicSettings

_UNNAMED = "unknown"


class SettingEffects:
    """Performs the effects of one session's handler. `others` performs all other effects."""

    def __init__(
        self,
        shared: ProduceDependencies,
        stored: TopicSettings,
        identity: ClientIdentity,
        account: Account,
        forwarding: Forwarding,
        delivery: Delivery,
        others: Perform,
    ) -> None:
        self._shared = shared
        self._stored = stored
        self._identity = identity
        self._account = account
        self._forwarding = forwarding
        self._delivery = delivery
        self._others = others

    def perform(self, effect: Effect[Any]) -> object:
        """Perform an effect, as `sluicegate.proxy.session.request_runner.Perform` describes."""
        perform = _PERFORM.get(type(effect))
        return self._others(effect) if perform is None else perform(self, effect)

    def _ask_broker(self, effect: AskClientsBroker) -> Wait:
        def ask(resume: Resume) -> None:
            in_flight = InFlightRequest(effect.correlation_id, partial(_pass_on, resume))
            self._shared.clock.sent(effect.api_key, effect.arrived, in_flight)
            self._forwarding.parts(effect.parts, (in_flight,))

        return Wait(PauseReason.SETTINGS, ask)

    def _in_background(self, effect: InBackground[Any]) -> Wait:
        def ask(resume: Resume) -> None:
            self._shared.background.add(BackgroundJob(effect.work, self._account, partial(self._report, resume)))

        return Wait(PauseReason.SETTINGS, ask)

    def _report(self, resume: Resume, result: Any, error: BaseException | None) -> None:
        with suppress(RuntimeError):  # the event loop has ended
            self._shared.from_thread(resume, result, error)

    def _await_settings(self, _: AwaitFirstRead) -> Wait:
        return Wait(PauseReason.SETTINGS, lambda resume: self._stored.await_known(partial(resume, None)))

    def _store(self, effect: StoreSettings) -> Wait:
        identity = self._identity
        principal = identity.principal if identity.is_verified else None
        requester = Requester(principal or identity.client_id or _UNNAMED, identity.peer)
        return Wait(PauseReason.SETTINGS, partial(self._stored.commit, effect.changes, requester))

    def _deliver(self, effect: Deliver) -> None:
        self._delivery.deliver(effect.response)


def _pass_on(resume: Resume, response: bytearray) -> None:
    resume(response)


_PERFORM: dict[type, Callable[[SettingEffects, Any], object]] = {
    AskClientsBroker: SettingEffects._ask_broker,
    InBackground: SettingEffects._in_background,
    AwaitFirstRead: SettingEffects._await_settings,
    StoreSettings: SettingEffects._store,
    Deliver: SettingEffects._deliver,
}
