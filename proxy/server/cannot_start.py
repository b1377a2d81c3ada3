"""Why a proxy does not come up."""


class CannotStart(Exception):
    """The proxy cannot run; the text says what to change."""
