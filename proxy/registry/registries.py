"""The registries that the file names, ready to be asked. They, and what they know, outlive reloads of the rules."""

import ssl
from collections.abc import Callable, Mapping

from sluicegate.config.registries import Registry
from sluicegate.proxy.registry.http import Login, RegistryHttp
from sluicegate.proxy.registry.schema_registry import SchemaRegistry


class Registries:
    """Makes a registry once for what the file says of it."""

    def __init__(self) -> None:
        self._made: dict[tuple[str, Registry], SchemaRegistry] = {}

    def by_name(self, sections: Mapping[str, Registry]) -> dict[str, SchemaRegistry]:
        """Those of a file; those of the file before that are not among them are forgotten."""
        self._made = {
            (name, section): self._made.get((name, section)) or _made(name, section)
            for name, section in sections.items()
        }
        return {name: registry for (name, _), registry in self._made.items()}


def _made(name: str, section: Registry) -> SchemaRegistry:
    login = None if section.username is None else Login(section.username, section.current_password)
    http = RegistryHttp(section.url, login, _context_maker(section))
    return SchemaRegistry(name, http, section.refresh_seconds)


def _context_maker(section: Registry) -> Callable[[], ssl.SSLContext]:
    """Made anew for each connection, so that files that changed are used."""

    def make() -> ssl.SSLContext:
        tls = section.tls
        context = ssl.create_default_context(cafile=None if tls is None else tls.ca_file)
        if tls is not None and tls.certificate_file is not None:
            context.load_cert_chain(tls.certificate_file, tls.key_file)
        return context

    return make
