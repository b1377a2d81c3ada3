"""Defines the outcomes of a batch, which metrics, logs, events, traces and the live view share."""

from enum import StrEnum


class Outcome(StrEnum):
    """The outcome of a batch, according to the response that the client received."""

    ACCEPTED = "accepted"
    """The broker stored the batch."""
    REJECTED = "rejected"
    """No record of the batch was stored, and the client will not retry.

    The client received a final error, or no response at all (acks=0, or its connection ended).
    """
    RESEND = "resend"
    """The client received a retriable error and will send the batch again."""
    UNKNOWN = "unknown"
    """The batch was forwarded, but it is unknown whether it was stored (acks=0, or the connection ended early)."""


class Change(StrEnum):
    """A change that the proxy made to a batch before forwarding it."""

    MASKED = "masked"
    FIXED = "fixed"
    MARKED = "marked"


class Copies(StrEnum):
    """Whether a batch's bad records are in the dead-letter topic."""

    QUARANTINED = "quarantined"
    """The bad records are stored there, and the batch was rejected."""
    COPIED = "copied"
    """Copies of the bad records are stored there, and the batch was forwarded."""
    NOT_STORED = "not_stored"
    """The bad records could not be written. The batch was not forwarded, and the client received a retriable error."""


class Waiver(StrEnum):
    """The reason why a batch was not validated, or why its violations were not enforced."""

    EXEMPT = "exempt"
    """The client is exempt."""
    CHECKS_NONE = "checks_none"
    """The topic has `checks: none`."""
    SUSPENDED = "suspended"
    """Enforcement is suspended for the topic."""
    OVER_BUDGET = "over_budget"
    """A rule was not evaluated because the request exceeded a limit (`on_outage: forward`)."""
    INVALID_ACKS = "invalid_acks"
    """The broker rejects the request because of its acks value."""
    INTERNAL_ERROR = "internal_error"
    """The proxy failed to validate the batch (`on_internal_error: forward`)."""
