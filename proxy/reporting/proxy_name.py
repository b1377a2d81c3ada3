"""The name of this proxy in events, the web UI and OpenTelemetry (`service.instance.id`)."""

from socket import gethostname

from sluicegate.config.model import Config


def proxy_name(config: Config) -> str:
    """Return the host name and the bootstrap port, which are the same for all workers and after a restart."""
    return f"{gethostname()}:{config.listen.bootstrap.port}"
