"""Assembles one session's parts. Each part receives only the dependencies that it uses, and never the session."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from sluicegate.protocol.errors import SenderError
from sluicegate.protocol.framing import NO_HANDLER, FrameHandler, FrameReader, Parts
from sluicegate.protocol.headers import CORRELATION_ID_BYTES, HEAD_BYTES
from sluicegate.proxy.fastpath.paths import NO_FAST_PATHS, FastPaths, make_fast_paths
from sluicegate.proxy.responses.api_versions import cut_down_versions, versions_for_legacy_producers
from sluicegate.proxy.responses.mock_cluster import versions_with_rejected_apis
from sluicegate.proxy.scheduling.fair_sharing import Account
from sluicegate.proxy.session.broker_errors import BrokerErrors
from sluicegate.proxy.session.client.identity import ClientIdentity, SaslTracker
from sluicegate.proxy.session.connection import Connection, ConnectionOwner
from sluicegate.proxy.session.delivery import Delivery
from sluicegate.proxy.session.forwarding import Forwarding
from sluicegate.proxy.session.handlers.arrival import SessionOpening
from sluicegate.proxy.session.handlers.closing import SessionCloser
from sluicegate.proxy.session.handlers.dependencies import RequestDependencies, SessionDependencies
from sluicegate.proxy.session.handlers.login_handler import LoginHandler
from sluicegate.proxy.session.handlers.mock_cluster_handler import MockClusterHandler
from sluicegate.proxy.session.handlers.request_handler import ChangeHandler, RequestHandler
from sluicegate.proxy.session.handlers.response_handler import ResponseHandler
from sluicegate.proxy.session.handlers.topic_change_handler import TopicChangeHandler
from sluicegate.proxy.session.handlers.traced_handlers import TracedRequests, TracedResponses, trace_pause
from sluicegate.proxy.session.in_flight import InFlightQueue
from sluicegate.proxy.session.lifecycle import Lifecycle
from sluicegate.proxy.session.memory import first_requests_part, frames_part, responses_part
from sluicegate.proxy.session.pacing import SessionTurns
from sluicegate.proxy.session.pass_through import PassThrough
from sluicegate.proxy.session.produce.effect_performer import ProduceEffects
from sluicegate.proxy.session.produce.fast_outcomes import FastOutcomes
from sluicegate.proxy.session.produce.handler import ProduceHandler
from sluicegate.proxy.session.produce.intake import ProduceIntake
from sluicegate.proxy.session.produce.quarantining import ProvenPartitions
from sluicegate.proxy.session.produce.response_handler import ProduceResponseHandler
from sluicegate.proxy.session.produce.response_memory import ResponseMemory
from sluicegate.proxy.session.produce.stored_times import StoredTimes
from sluicegate.proxy.session.quotas.metering import Metering
from sluicegate.proxy.session.reports import SessionTrace
from sluicegate.proxy.session.request_runner import RequestRunner
from sluicegate.proxy.session.settings.effect_performer import SettingEffects
from sluicegate.proxy.session.settings.handler import TopicSettingHandler
from sluicegate.proxy.session.settings.setting_reports import SettingReports


@dataclass(frozen=True, slots=True)
class SessionParts:
    """The parts that the session itself calls."""

    identity: ClientIdentity
    account: Account
    queue: InFlightQueue
    client: Connection
    broker: Connection
    turns: SessionTurns
    runner: RequestRunner
    closer: SessionCloser
    delivery: Delivery
    arrival: SessionOpening
    metering: Metering
    requests: RequestHandler
    responses: ResponseHandler


def make_parts(
    given: SessionDependencies,
    ends: ConnectionOwner,
    lifecycle: Lifecycle,
    trace: SessionTrace | None,
    reject: Callable[[SenderError], None],
    request_settled: Callable[[], None],
) -> SessionParts:
    """Create a new session's parts.

    Both connections report their events to `ends`. The request runner calls `reject` and `request_settled`.
    """
    of_requests, of_produce = given.requests, given.requests.produce
    queue, identity, account = InFlightQueue(given.in_flight.total), ClientIdentity("?"), Account()

    from_client, from_broker = frames_part(given.read_buffer), responses_part(given.read_buffer)
    # A session that waits for a quota keeps the bytes of its first request that were read.
    first = first_requests_part(given.read_buffer) if of_requests.quotas.has_quotas else from_client
    most = given.limits.max_frame_bytes
    client_reader = FrameReader(NO_HANDLER, HEAD_BYTES, most, given.frames)
    broker_reader = FrameReader(NO_HANDLER, CORRELATION_ID_BYTES, most, given.frames)
    client = Connection(ends, client_reader, first, given.describe_client, given.loop)
    broker = Connection(ends, broker_reader, from_broker, given.describe_broker, given.loop)

    turns = SessionTurns(given.lateness, given.loop, client)
    sasl = SaslTracker(identity, of_requests.principals)
    pass_through = PassThrough(identity, sasl, of_requests.login, of_requests.rewriter)
    report = partial(_report_our_fault, given, identity, trace)
    runner = RequestRunner(client, broker, report, reject, request_settled)
    closer = SessionCloser(lifecycle, client, broker, runner, sasl, queue, given.loop)
    delivery = Delivery(client, broker, queue, closer.finish, trace)
    forwarding = Forwarding(broker, queue, given.frames, given.loop.call_soon)
    arrival = SessionOpening(given, identity, client, broker, runner.fail, trace)
    metering = Metering(client, identity, of_requests.quotas, given.loop, given.counts, given.log, given.admission.most)
    stored_times = StoredTimes(of_produce.scheduler.previous)
    outcomes = FastOutcomes(identity, of_produce.names.by_id, of_produce.validations, of_produce.broker_errors)
    proven = ProvenPartitions(of_produce.names, of_produce.now_ms)
    handler = ProduceHandler(of_produce, identity, metering, proven)
    response_handler = ProduceResponseHandler(of_produce.rewriter, of_produce.clock, identity, proven)
    report_unvalidated = partial(_report_unvalidated, given, identity)
    effects = ProduceEffects(
        of_produce,
        identity,
        account,
        metering,
        forwarding,
        delivery,
        stored_times,
        ResponseMemory(client),
        response_handler,
        report_unvalidated,
    )

    errors = BrokerErrors(identity, of_produce.broker_errors)
    fast_requests, fast_responses = NO_FAST_PATHS
    if trace is None:  # a traced session has no fast path
        fast_requests, fast_responses = _fast_paths(given, pass_through, queue, from_client, from_broker)
        if fast_requests is not None and fast_responses is not None:
            fast_requests.lead(client, broker, turns.pause_for_others)
            fast_responses.lead(client, errors, outcomes)
    produce = ProduceIntake(
        identity=identity,
        client=client,
        metering=metering,
        forwarding=forwarding,
        delivery=delivery,
        runner=runner,
        handler=handler,
        effects=effects,
        rules=of_produce.rules,
        clock=of_produce.clock,
        log=given.log,
        ordinary=of_produce.ordinary,
        fast=fast_requests,
        known_client_buffer=from_client if first is not from_client else None,
    )
    login = LoginHandler(
        identity,
        sasl,
        forwarding,
        delivery,
        runner,
        produce,
        given.counts,
        of_produce.clock,
        given.log,
        _offered_versions(of_requests),
    )
    changes = _change_handler(given, identity, account, forwarding, delivery, runner, effects)
    requests = RequestHandler(
        shared=of_requests,
        identity=identity,
        client=client,
        broker=broker,
        sasl=sasl,
        pass_through=pass_through,
        arrival=arrival,
        turns=turns,
        forwarding=forwarding,
        runner=runner,
        login=login,
        produce=produce,
        changes=changes,
        errors=errors,
    )
    responses = ResponseHandler(
        client,
        broker,
        queue,
        delivery,
        turns,
        of_requests.budget,
        of_produce.clock,
        given.counts,
        errors,
        outcomes,
        runner,
    )
    from_requests: FrameHandler = requests
    from_responses: FrameHandler = responses
    if trace is not None:
        from_requests = TracedRequests(requests, identity, trace)
        from_responses = TracedResponses(responses, identity, trace)
        client.report_pauses(partial(trace_pause, trace, "client"))
        broker.report_pauses(partial(trace_pause, trace, "broker"))
    client_reader.deliver_to(from_requests, fast_requests)
    broker_reader.deliver_to(from_responses, fast_responses)
    return SessionParts(
        identity=identity,
        account=account,
        queue=queue,
        client=client,
        broker=broker,
        turns=turns,
        runner=runner,
        closer=closer,
        delivery=delivery,
        arrival=arrival,
        metering=metering,
        requests=requests,
        responses=responses,
    )


def _offered_versions(shared: RequestDependencies) -> Callable[[int, bytearray], Parts]:
    """Return the function that creates a client's ApiVersions response from the broker's own."""
    if shared.mock_advice is not None:
        return versions_with_rejected_apis
    return versions_for_legacy_producers if shared.produce.scheduler.converts_legacy else cut_down_versions


def _change_handler(
    given: SessionDependencies,
    identity: ClientIdentity,
    account: Account,
    forwarding: Forwarding,
    delivery: Delivery,
    runner: RequestRunner,
    effects: ProduceEffects,
) -> ChangeHandler | None:
    """Create the handler of requests that change topics. Return None if they are forwarded unread."""
    shared, perform, settings = given.requests.produce, effects.perform, None
    stored, mock_advice = shared.topic_settings, given.requests.mock_advice
    if mock_advice is not None:
        return MockClusterHandler(mock_advice, identity, runner, effects, given.counts, shared.clock, given.log)
    if stored is not None:
        perform = SettingEffects(shared, stored, identity, account, forwarding, delivery, perform).perform
        reports = SettingReports(identity, given.counts, given.log)
        settings = TopicSettingHandler(stored, identity, shared.clock, reports)
    elif not shared.own_topics:
        return None
    return TopicChangeHandler(shared, identity, runner, perform, settings, given.counts, given.log)


def _fast_paths(
    given: SessionDependencies,
    pass_through: PassThrough,
    queue: InFlightQueue,
    from_client: memoryview,
    from_broker: memoryview,
) -> FastPaths:
    """Create the fast paths for requests and for responses."""
    return make_fast_paths(
        validate=given.requests.produce.ordinary,
        counts=given.path_counts,
        room=given.fast_path_buffer,
        pass_through=pass_through,
        queue=queue,
        max_in_flight=given.limits.max_in_flight,
        max_frame_bytes=given.limits.max_frame_bytes,
        lateness=given.lateness,
        client_buffer=from_client,
        wider_buffer=given.read_buffer,
        broker_buffer=from_broker,
    )


def _report_our_fault(
    given: SessionDependencies, identity: ClientIdentity, trace: SessionTrace | None, error: BaseException
) -> None:
    """Report an internal error that closes the connection."""
    if trace is not None:
        trace.session_ending("proxy: internal error")
    given.log.internal_error(identity, error)
    given.counts.internal_errors["closed"] += 1


def _report_unvalidated(given: SessionDependencies, identity: ClientIdentity, error: BaseException) -> None:
    """Report an internal error that caused a request to be forwarded unvalidated."""
    given.log.forwarded_unvalidated(identity, error)
    given.counts.internal_errors["forwarded"] += 1
