"""Makes strings from a peer safe for logs, events, labels and terminals.

Such strings are client ids, software names, principals, mechanisms, brokers' error messages, and illegal topic names.
"""

import re

MAX_CHARACTERS = 256
_MAX_BYTES_OF_A_CHARACTER = 4
# The C0, DEL and C1 control characters, text direction marks, line separators and lone surrogates.
_UNFIT = re.compile("[\\x00-\\x1f\\x7f-\\x9f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069\\ufeff\\ud800-\\udfff]")


def client_text(received: str | bytes, at_most: int = MAX_CHARACTERS) -> str:
    """Return `received` as one line of at most `at_most` characters.

    A longer string is truncated and ends with … and its full length. Control characters are escaped. Bytes are decoded
    as UTF-8.
    """
    if isinstance(received, bytes):
        unit, looked_at = "bytes", at_most * _MAX_BYTES_OF_A_CHARACTER
        text = received[:looked_at].decode("utf-8", "replace")
    else:
        unit, looked_at = "characters", at_most
        text = received[:looked_at]
    if not text.isprintable():
        text = _UNFIT.sub(_escape, text)
    if len(received) <= looked_at and len(text) <= at_most:
        return text
    end = f"… ({len(received)} {unit})"
    return text[: at_most - len(end)] + end


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
