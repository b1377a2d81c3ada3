"""Issues bearer tokens with a signature (RS256, RFC 7515), and defines settings of a broker that checks them with keys
(RFC 7517)."""

import json
import time
import uuid
from base64 import urlsafe_b64encode
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.hashes import SHA256

_ISSUER, _AUDIENCE = "https://tokens.test", "kafka"
_VALIDATOR = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"


class SigningKey:
    """A key that signs tokens; `name` is its id (`kid`), in each token and in a file of keys."""

    def __init__(self, name: str = "") -> None:
        self.name = name or uuid.uuid4().hex
        self._key = generate_private_key(public_exponent=65537, key_size=2048)

    def token(self, subject: str, lasts_seconds: float = 3600, **claims: Any) -> str:
        """Return a token for the broker of `validation_settings`."""
        now = int(time.time())
        times = {"iat": now, "exp": now + int(lasts_seconds)}
        held = {"sub": subject, "iss": _ISSUER, "aud": _AUDIENCE, **times, **claims}
        parts = [_encoded(json.dumps(part).encode()) for part in ({"alg": "RS256", "kid": self.name}, held)]
        signature = self._key.sign(".".join(parts).encode(), PKCS1v15(), SHA256())
        return ".".join([*parts, _encoded(signature)])

    def key_set(self) -> str:
        """Return the public key as a set of keys."""
        public = self._key.public_key().public_numbers()
        numbers = {name: _encoded(_bytes_of(value)) for name, value in (("n", public.n), ("e", public.e))}
        return json.dumps({"keys": [{"kty": "RSA", "use": "sig", "alg": "RS256", "kid": self.name, **numbers}]})


def validation_settings(keys: Path, claim: str) -> dict[str, str]:
    """Return a broker's settings: tokens need a signature of a key in the file, and `claim` is the principal."""
    return {
        "listener.name.plaintext.oauthbearer.sasl.server.callback.handler.class": _VALIDATOR,
        "sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
        "sasl.oauthbearer.expected.issuer": _ISSUER,
        "sasl.oauthbearer.expected.audience": _AUDIENCE,
        "sasl.oauthbearer.sub.claim.name": claim,
    }


def allow_url_option(url: str) -> str:
    """Return the option of Java with which Kafka asks this URL for tokens or keys; since 4.0 it asks no other."""
    return f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={url}"


def _bytes_of(number: int) -> bytes:
    return number.to_bytes((number.bit_length() + 7) // 8, "big")


def _encoded(part: bytes) -> str:
    return urlsafe_b64encode(part).rstrip(b"=").decode()
