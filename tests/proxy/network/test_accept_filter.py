"""The connection rate of one address is limited, at times that the test sets."""

from sluicegate.proxy.network.accept_filter import AddressRate


def test_connections_above_the_rate_of_an_address_are_rejected() -> None:
    rate = AddressRate(3)

    assert [rate.allows("192.0.2.1", 5.0) for _ in range(4)] == [True, True, True, False]
    assert rate.allows("192.0.2.2", 5.0)


def test_a_rejected_attempt_does_not_count_against_the_rate() -> None:
    rate = AddressRate(2)
    come = [rate.allows("192.0.2.1", 0.0) for _ in range(1000)]
    assert come.count(True) == 2

    assert not rate.allows("192.0.2.1", 0.4)
    assert rate.allows("192.0.2.1", 0.5)
    assert not rate.allows("192.0.2.1", 0.5)


def test_connections_within_the_rate_are_accepted() -> None:
    rate = AddressRate(10)

    assert all(rate.allows("192.0.2.1", tenth / 10) for tenth in range(1000))


def test_the_number_of_remembered_addresses_is_bounded() -> None:
    rate = AddressRate(1, most_addresses=100)

    assert all(rate.allows(f"192.0.2.{number}", 0.0) for number in range(1000))

    assert len(rate) == 100
    assert not rate.allows("192.0.2.999", 0.0)
