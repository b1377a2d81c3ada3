"""Opens the admin endpoint of a proxy, whether the proxy runs in one process or in several."""

from collections.abc import Callable

from sluicegate.config.model import Config
from sluicegate.proxy.admin.changes import Reload, changes_of
from sluicegate.proxy.admin.endpoint import NO_FURTHER_PAGES, AdminServer, FurtherPages, serve
from sluicegate.proxy.live.live_snapshot import LiveQuery
from sluicegate.proxy.live.live_state import LiveState
from sluicegate.proxy.reload.enforcement import Enforcement
from sluicegate.proxy.reload.topic_explanation import PolicyQuery
from sluicegate.proxy.reporting.metrics.counters import Snapshot
from sluicegate.proxy.state.shared_state import SharedState
from sluicegate.proxy.status.status import Status


def open_admin(
    config: Config,
    snapshot: Callable[[], Snapshot],
    status: Status,
    read_state: Callable[[LiveQuery], LiveState],
    query: PolicyQuery,
    enforcement: Enforcement,
    shared: SharedState | None,
    reload: Reload | None,
    pages: FurtherPages = NO_FURTHER_PAGES,
) -> AdminServer:
    """Open the endpoint at `admin.listen`, which must be set.

    The arguments are those of `changes_of`, which provides the changes, and of `serve`. Raises CannotListen.
    """
    assert config.admin.listen is not None
    changes = changes_of(config, query, enforcement, shared, read_state, reload)
    return serve(config, config.admin.listen, snapshot, status, read_state, query, changes, pages)
