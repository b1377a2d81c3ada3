"""What became of a batch: metrics, log lines, events, traces and the live view all have these words."""

from enum import StrEnum


class Outcome(StrEnum):
    """The outcome of a batch, by what the client was told."""

    ACCEPTED = "accepted"
    """The broker has stored the batch."""
    REJECTED = "rejected"
    """Nothing of the batch is stored, and the client's error is final; or the proxy has rejected it, and the client got
    no response (acks=0, or its connection ended).
    """
    RESEND = "resend"
    """The client was told to send the batch again."""
    UNKNOWN = "unknown"
    """The batch was forwarded, and no response tells whether it is stored (acks=0, or the connection ended before)."""


class Change(StrEnum):
    """How the proxy has changed a batch before it was forwarded."""

    MASKED = "masked"
    FIXED = "fixed"
    MARKED = "marked"


class Copies(StrEnum):
    """Whether the bad records of a batch are in the dead-letter topic."""

    QUARANTINED = "quarantined"
    """They are there, and the batch was rejected."""
    COPIED = "copied"
    """Copies of them are there, and the batch was forwarded."""
    NOT_STORED = "not_stored"
    """They could not be written, so the batch was neither forwarded nor finally rejected."""


class Waiver(StrEnum):
    """Why a batch was not validated, or why its violations were not enforced."""

    EXEMPT = "exempt"
    """Its client is exempt."""
    CHECKS_NONE = "checks_none"
    """Its topic has `checks: none`."""
    SUSPENDED = "suspended"
    """Enforcement is suspended for its topic."""
    OVER_BUDGET = "over_budget"
    """A rule was not evaluated, because the request exceeded a limit (`on_outage: forward`)."""
    INVALID_ACKS = "invalid_acks"
    """The broker rejects its request because of the value of acks."""
    INTERNAL_ERROR = "internal_error"
    """The proxy failed (`on_internal_error: forward`)."""
