"""Describes the proxy to a receiver: OpenTelemetry's resource and instrumentation scope."""

from socket import gethostname

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from sluicegate.config.model import Config
from sluicegate.proxy.reporting.build_info import VERSION

SCOPE = InstrumentationScope("sluicegate", VERSION)


def resource_of(config: Config, service_name: str) -> Resource:
    """Return the same for all workers of a proxy, and after a restart."""
    host = gethostname()
    return Resource(
        {
            "service.name": service_name,
            "service.version": VERSION,
            "service.instance.id": f"{host}:{config.listen.bootstrap.port}",
            "host.name": host,
        }
    )
