"""What a worker holds of its own. Other proxies would share its pages too: it runs alone."""

from bench import memory


def test_a_further_worker_shares_most_of_what_it_has_loaded() -> None:
    assert memory.measure().further_worker <= 15 << 20
