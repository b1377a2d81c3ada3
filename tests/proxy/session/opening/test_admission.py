"""The maximum number of connections."""

import resource

from sluicegate.config.limits import Limits
from sluicegate.proxy.session.opening.admission import Admission, most_connections


def test_beyond_the_limit_nobody_enters_until_somebody_leaves() -> None:
    admission = Admission(2, None)
    assert admission.enter("a") is None
    assert admission.enter("b") is None

    assert admission.enter("c") == ("limits.max_connections", 2)
    admission.leave("a")
    assert admission.enter("c") is None


def test_one_address_cannot_take_the_places_of_others() -> None:
    admission = Admission(100, 2)
    for _ in range(2):
        assert admission.enter("greedy") is None

    assert admission.enter("greedy") == ("limits.max_connections_per_address", 2)
    assert admission.enter("other") is None


def test_there_are_descriptors_for_as_many_as_there_may_be() -> None:
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)

    assert most_connections(Limits(max_connections=7)) == 7
    assert 2 * most_connections(Limits()) < descriptors
