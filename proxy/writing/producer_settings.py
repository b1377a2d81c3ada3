"""How the proxy's own producers reach the cluster: the section `upstream` in librdkafka's words.

They connect to the brokers themselves, as what the proxy asks the cluster does, and never through its listeners.
"""

from sluicegate.config.upstream import Upstream, UpstreamTls

Settings = dict[str, str | int | bool]


def connection_settings(upstream: Upstream) -> Settings:
    """Addresses, TLS and login; passwords as they are now. Raises PasswordUnreadable."""
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
        settings |= _tls_settings(tls)
    if sasl is not None:
        settings |= {
            "sasl.mechanism": sasl.mechanism,
            "sasl.username": sasl.username,
            "sasl.password": sasl.current_password.get(),
        }
    return settings


def _tls_settings(tls: UpstreamTls) -> Settings:
    settings: Settings = {"ssl.endpoint.identification.algorithm": "https" if tls.verify_hostname else "none"}
    if tls.ca_file is not None:
        settings["ssl.ca.location"] = tls.ca_file
    if tls.certificate_file is not None and tls.key_file is not None:
        settings |= {"ssl.certificate.location": tls.certificate_file, "ssl.key.location": tls.key_file}
        password = tls.password_of_key.get()
        if password:
            settings["ssl.key.password"] = password
    return settings
