"""Defines settings of brokers with one listener, for clients and other brokers, that requires TLS or a login."""

from typing import Final

SCRAM_LOGIN: Final = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
_PLAIN: Final = "org.apache.kafka.common.security.plain.PlainLoginModule required"
_BEARER: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"


def security_settings(protocol: str, *mechanisms: str, **logins: str) -> dict[str, str]:
    """Return the settings for a security protocol, and with SASL for the mechanisms; brokers use the first one.

    `logins`: the login module of each mechanism, by its name in lower case with underscores, as `scram_sha_256`.
    """
    settings = {
        "listener.security.protocol.map": f"CONTROLLER:PLAINTEXT,PLAINTEXT:{protocol}",
        "inter.broker.listener.name": "PLAINTEXT",
    }
    if not mechanisms:
        return settings
    return settings | {
        "sasl.mechanism.inter.broker.protocol": mechanisms[0],
        "sasl.enabled.mechanisms": ",".join(mechanisms),
        **{
            f"listener.name.plaintext.{name.replace('_', '-')}.sasl.jaas.config": login
            for name, login in logins.items()
        },
    }


def plain_login(**passwords: str) -> str:
    """Return the login module of a broker that knows these users, and logs in at others as the first one."""
    name, password = next(iter(passwords.items()))
    users = " ".join(f'user_{user}="{each}"' for user, each in passwords.items())
    return f'{_PLAIN} username="{name}" password="{password}" {users};'


def bearer_login(claim: str = "sub") -> str:
    """Return the login module of a broker that takes unsecured tokens (RFC 7515, A.5), and the principal from a claim.

    It logs in at others as `broker`.
    """
    claims = " ".join(f'unsecuredLoginStringClaim_{each}="broker"' for each in dict.fromkeys(("sub", claim)))
    return f'{_BEARER} {claims} unsecuredValidatorPrincipalClaimName="{claim}";'
