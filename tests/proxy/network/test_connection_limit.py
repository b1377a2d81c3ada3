"""The number of connections is limited by the limit on open descriptors."""

import resource

from sluicegate.config.limits import Limits
from sluicegate.proxy.network.connection_limit import most_connections


def test_the_connection_limit_leaves_two_descriptors_for_each_connection() -> None:
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)

    assert most_connections(Limits(max_connections=7)) == 7
    assert 2 * most_connections(Limits()) < descriptors
