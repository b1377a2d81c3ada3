"""A scrape shows what sessions wait for and how they progress, even for several workers together."""

from sluicegate.proxy.reporting.metrics.counters import gauges_of_all
from sluicegate.proxy.server.open_sessions import ConnectionStats
from sluicegate.proxy.session.pause_reason import PauseReason
from tests.bounds.frames import good_batch, sized_produce_request
from tests.proxy.session.playbook import NOW, Playbook

MIB = 1 << 20


def census_of(play: Playbook) -> ConnectionStats:
    return ConnectionStats(play.parts.budget, play.parts.dependencies.fast_path_buffer, play.parts.quarantine_memory)


def count_sessions(connection_stats: ConnectionStats, *plays: Playbook) -> ConnectionStats:
    for play in plays:
        connection_stats.count(play.session)
    connection_stats.end_round()
    return connection_stats


def test_a_client_without_requests_opens_no_broker_connection() -> None:
    play = Playbook()

    gauges = count_sessions(census_of(play), play).gauges()

    assert (gauges.connections, gauges.upstream, gauges.paused) == ({"connecting": 1}, {}, {})


def test_a_session_is_paused_while_its_broker_connects() -> None:
    play = Playbook()
    play.broker_comes = False
    play.from_client(sized_produce_request(9, {b"t": [(0, good_batch(NOW))]}, -1, 1))

    gauges = count_sessions(census_of(play), play).gauges()

    assert gauges.upstream == {("bootstrap", "connecting"): 1}
    assert gauges.paused == {("client", "connecting"): 1}


def test_connected_session_counts_as_open_with_its_pause_reasons() -> None:
    play = Playbook()
    play.from_client(sized_produce_request(9, {b"t": [(0, good_batch(NOW))]}, -1, 1))
    play.session.client.pause(PauseReason.MEMORY)
    play.session.broker.pause(PauseReason.PEER_BACKPRESSURE)

    gauges = count_sessions(census_of(play), play).gauges()

    assert (gauges.connections, gauges.upstream) == ({"open": 1}, {("bootstrap", "open"): 1})
    assert gauges.paused == {("client", "memory"): 1, ("broker", "peer_backpressure"): 1}


def test_gauges_show_the_last_complete_round_of_counting() -> None:
    play = Playbook()
    connection_stats = count_sessions(census_of(play), play)

    connection_stats.count(play.session)
    connection_stats.count(play.session)

    assert connection_stats.gauges().connections == {"connecting": 1}
    connection_stats.end_round()
    assert connection_stats.gauges().connections == {"connecting": 2}


def test_gauges_have_memory_in_use_and_its_budget() -> None:
    play = Playbook(SLUICEGATE__LIMITS__MAX_BUFFERED_BYTES="512MiB")
    connection_stats = census_of(play)
    claim = play.parts.quarantine_memory.claim(1000)

    gauges = connection_stats.gauges()

    assert claim is not None
    assert gauges.buffered_bytes["quarantine"] == 1000
    assert gauges.budget_bytes["small_requests"] == 128 * MIB
    assert set(gauges.buffered_bytes) == set(gauges.budget_bytes)


def test_brokers_beyond_500_share_one_series() -> None:
    play = Playbook()
    play.from_client(sized_produce_request(9, {b"t": [(0, good_batch(NOW))]}, -1, 1))
    connection_stats = census_of(play)
    for number in range(600):
        connection_stats.count_broker(f"broker {number}", "open")
    connection_stats.end_round()

    upstream = connection_stats.gauges().upstream

    assert len(upstream) == 501
    assert upstream["other", "open"] == 100


def test_gauges_of_all_workers_are_summed() -> None:
    plays = [Playbook(), Playbook()]
    all_gauges = [count_sessions(census_of(play), play).gauges() for play in plays]

    total = gauges_of_all(all_gauges)

    assert total.connections == {"connecting": 2}
    assert total.budget_bytes["small_requests"] == 2 * all_gauges[0].budget_bytes["small_requests"]
    assert total.resident_bytes == sum(gauges.resident_bytes for gauges in all_gauges)
