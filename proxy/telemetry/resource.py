"""Who it is that tells: OpenTelemetry's resource."""

from socket import gethostname

from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from sluicegate.config.model import Config
from sluicegate.proxy.reporting.build_info import VERSION
from sluicegate.proxy.telemetry.attributes import attributes_of

SCOPE = InstrumentationScope(name="sluicegate", version=VERSION)


def resource_of(config: Config, service_name: str) -> Resource:
    """The same for all workers of a proxy, and after a restart."""
    host = gethostname()
    return Resource(
        attributes=attributes_of(
            {
                "service.name": service_name,
                "service.version": VERSION,
                "service.instance.id": f"{host}:{config.listen.bootstrap.port}",
                "host.name": host,
            }
        )
    )
