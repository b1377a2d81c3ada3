"""Defines the outcomes of a batch, which metrics, log lines, events, traces and the live view share."""

from enum import StrEnum


class Outcome(StrEnum):
    """The outcome of a batch, by the response that the client received."""

    ACCEPTED = "accepted"
    """The broker has stored the batch."""
    REJECTED = "rejected"
    """No record of the batch is stored, and the client's error is final. The client may also have received no response
    (acks=0, or its connection ended).
    """
    RESEND = "resend"
    """The client received a retriable error, so it sends the batch again."""
    UNKNOWN = "unknown"
    """The batch was forwarded, but no response shows whether it was stored (acks=0, or the connection ended first).
    """


class Change(StrEnum):
    """How the proxy has changed a batch before forwarding it."""

    MASKED = "masked"
    FIXED = "fixed"
    MARKED = "marked"


class Copies(StrEnum):
    """Whether the bad records of a batch are in the dead-letter topic."""

    QUARANTINED = "quarantined"
    """The bad records are stored there, and the batch was rejected."""
    COPIED = "copied"
    """Copies of the bad records are stored there, and the batch was forwarded."""
    NOT_STORED = "not_stored"
    """The bad records could not be written, so the batch was neither forwarded nor finally rejected."""


class Waiver(StrEnum):
    """The reason why a batch was not validated, or why its violations were not enforced."""

    EXEMPT = "exempt"
    """The client is exempt."""
    CHECKS_NONE = "checks_none"
    """The topic has `checks: none`."""
    SUSPENDED = "suspended"
    """Enforcement is suspended for the topic."""
    OVER_BUDGET = "over_budget"
    """A rule was not evaluated, because the request exceeded a limit (`on_outage: forward`)."""
    INVALID_ACKS = "invalid_acks"
    """The broker rejects the request because of its value of acks."""
    INTERNAL_ERROR = "internal_error"
    """The proxy failed (`on_internal_error: forward`)."""
