"""Creates certificates for tests: authorities and signed certificates, as PEM files for all client libraries."""

import subprocess
from datetime import datetime
from functools import cached_property
from pathlib import Path

import trustme
from cryptography.hazmat.primitives import serialization

from tests.oracle.java_program import java_command
from tests.oracle.kafka_java import KAFKA_NEW, ROOT, kafka_folder


class Authority:
    """A certificate authority for a test."""

    def __init__(self, folder: Path, name: str = "ca") -> None:
        self._ca = trustme.CA(organization_name=f"sluicegate tests {name}")
        self._folder = folder
        self.file = folder / f"{name}.pem"
        self._ca.cert_pem.write_to_path(self.file)

    def sign(self, name: str, *hosts: str, expires: datetime | None = None) -> "Certificate":
        """Return a certificate for host names or addresses with `name` as its common name."""
        made = self._ca.issue_cert(*(hosts or ("localhost", "127.0.0.1")), common_name=name, not_after=expires)
        chain = b"".join(blob.bytes() for blob in made.cert_chain_pems)
        key = serialization.load_pem_private_key(made.private_key_pem.bytes(), None).private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return Certificate(self._folder / name, chain, key)


class Certificate:
    """A certificate as files: `chain`, `key`, and `both` in one file for Kafka's PEM keystores."""

    def __init__(self, base: Path, chain: bytes, key: bytes) -> None:
        self.chain, self.key, self.both = (base.with_suffix(suffix) for suffix in (".crt", ".key", ".both"))
        self.chain.write_bytes(chain)
        self.key.write_bytes(key)
        self.both.write_bytes(key + chain)

    @cached_property
    def subject(self) -> str:
        """Return the distinguished name, which Kafka uses as principal."""
        program = java_command(kafka_folder(KAFKA_NEW), str(ROOT / "tests/oracle/CertificateSubject.java"))
        return subprocess.run([*program, str(self.chain)], capture_output=True, text=True, check=True).stdout.strip()

    @property
    def files(self) -> dict[str, str]:
        """Return the files under their keys of the proxy's configuration."""
        return {"certificate_file": str(self.chain), "key_file": str(self.key)}


def kafka_tls(certificate: Certificate, authority: Authority, client_auth: str) -> dict[str, str]:
    """Return the settings of a broker with this certificate that trusts the authority."""
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(certificate.both),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.file),
        "ssl.client.auth": client_auth,
    }
