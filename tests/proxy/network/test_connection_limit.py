"""The number of connections that the limit of open descriptors allows."""

import resource

from sluicegate.config.limits import Limits
from sluicegate.proxy.network.connection_limit import most_connections


def test_there_are_descriptors_for_as_many_as_there_may_be() -> None:
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)

    assert most_connections(Limits(max_connections=7)) == 7
    assert 2 * most_connections(Limits()) < descriptors
