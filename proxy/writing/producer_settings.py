"""How the proxy's own producers reach the cluster: the section `upstream` in librdkafka's words.

They connect to the brokers themselves, as what the proxy asks the cluster does, and never through its listeners.
"""

from sluicegate.config.upstream import Upstream, UpstreamTls
from sluicegate.proxy.network.tls.memory_files import MemoryFiles

Settings = dict[str, str | int | bool]


def connection_settings(upstream: Upstream, copies: MemoryFiles) -> Settings:
    """Addresses, TLS and login; passwords and certificates as they are now. Raises PasswordUnreadable and OSError.

    Certificates are named as `copies`, which librdkafka reads while a producer is made.
    """
    tls, sasl = upstream.tls, upstream.sasl
    settings: Settings = {
        "bootstrap.servers": ",".join(map(str, upstream.bootstrap)),
        "client.id": "sluicegate",
        "security.protocol": ("SASL_" if sasl is not None else "") + ("SSL" if tls is not None else "PLAINTEXT"),
        "socket.connection.setup.timeout.ms": max(1000, int(upstream.connect_timeout_seconds * 1000)),
        "reconnect.backoff.max.ms": 2000,
        "log_level": 0,  # it would print to standard error by itself; what matters is told with what was not written
    }
    if tls is not None:
        settings |= _tls_settings(tls, copies)
    if sasl is not None:
        settings |= {
            "sasl.mechanism": sasl.mechanism,
            "sasl.username": sasl.username,
            "sasl.password": sasl.current_password.get(),
        }
    return settings


def _tls_settings(tls: UpstreamTls, copies: MemoryFiles) -> Settings:
    settings: Settings = {"ssl.endpoint.identification.algorithm": "https" if tls.verify_hostname else "none"}
    if tls.ca_file is not None:
        settings["ssl.ca.location"] = copies.copy_of(tls.ca_file)
    if tls.certificate_file is not None and tls.key_file is not None:
        settings["ssl.certificate.location"] = copies.copy_of(tls.certificate_file)
        settings["ssl.key.location"] = copies.copy_of(tls.key_file)
        password = tls.password_of_key.get()
        if password:
            settings["ssl.key.password"] = password
    return settings
