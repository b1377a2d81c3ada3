"""Why somebody could not be asked over HTTP, in words for who runs the proxy; nothing that the other side has sent."""

import socket
import ssl
from http.client import BadStatusLine, IncompleteRead, RemoteDisconnected

from sluicegate.proxy.network.bounded_socket import TooLarge
from sluicegate.proxy.network.tls.contexts import words_of

# What OpenSSL says where nobody vouches for a certificate that is trusted here.
_UNKNOWN_ISSUER = frozenset({18, 19, 20, 21})


def why_failed(error: Exception, seconds: float) -> str:
    """What went wrong, where `seconds` were given."""
    if isinstance(error, TooLarge):
        return f"it sends {error}"
    if isinstance(error, TimeoutError):
        return f"no answer within {seconds:g} s"
    return _of_tls(error) if isinstance(error, ssl.SSLError) else _of_connection(error)


def _of_connection(error: Exception) -> str:
    for kind, words in _WORDS:
        if isinstance(error, kind):
            return words
    if isinstance(error, socket.gaierror):
        return f"its host name is not found ({error.strerror})"
    if isinstance(error, OSError):
        return error.strerror or str(error) or type(error).__name__
    return f"it answers what is not HTTP ({type(error).__name__})"


_WORDS = (
    (RemoteDisconnected, "it closed the connection without an answer"),
    (ConnectionResetError, "it closed the connection without an answer"),
    (BrokenPipeError, "it closed the connection without an answer"),
    (IncompleteRead, "it closed the connection in the middle of an answer"),
    (BadStatusLine, "it does not speak HTTP, or only HTTPS: look at its url"),
)


def _of_tls(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError) and error.verify_code in _UNKNOWN_ISSUER:
        return f"{words_of(error)}; name its CA in tls.ca_file"
    if error.reason == "WRONG_VERSION_NUMBER":
        return "it does not speak TLS: its url should begin with http:, or lead to another port"
    if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        return "it closed the connection within TLS; does it want another certificate of ours (tls.certificate_file)?"
    return words_of(error)
