"""A registry that could not be asked."""

from sluicegate.proxy.network.bounded_socket import TooLarge
from sluicegate.proxy.network.http_failures import why_failed


class RegistryFailed(Exception):
    """A registry cannot be reached, rejects the login, or answers what cannot be used; the text says which.

    `wait_seconds`: how long it has asked to be left alone; 0: nothing said.
    """

    def __init__(self, words: str, wait_seconds: float = 0) -> None:
        super().__init__(words)
        self.wait_seconds = wait_seconds


class ResponseTooLarge(RegistryFailed):
    """One answer of it is more than is read; others need not be."""


def failed(error: Exception, seconds: float) -> RegistryFailed:
    """What went wrong, where `seconds` were given; nothing that the other side has sent."""
    made = ResponseTooLarge if isinstance(error, TooLarge) else RegistryFailed
    return made(why_failed(error, seconds))
