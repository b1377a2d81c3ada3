"""How many bad records a judgement keeps of each kind and partition."""

_ALL = "all"
_MOST = 1000


class BadSamples(ValueError):
    """What was given is no such number; the text says what is."""


def samples_from(text: str) -> int | None:
    """What --samples says; None: all. Raises BadSamples."""
    if text == _ALL:
        return None
    if text.isascii() and text.isdigit() and len(text) <= len(str(_MOST)) and int(text) <= _MOST:
        return int(text)
    raise BadSamples(f"--samples {text}: expected a number from 0 to {_MOST}, or {_ALL}")
