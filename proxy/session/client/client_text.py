"""Text that a peer names itself, made fit for logs, events, labels and terminals.

Client ids, software names, principals, mechanisms, a broker's reasons, and topic names that no broker could have.
"""

import re

MAX_CHARACTERS = 256
_MAX_BYTES_OF_A_CHARACTER = 4
# C0, DEL and C1; what orders text from right to left or back; separators that end a line; lone surrogates.
_UNFIT = re.compile("[\\x00-\\x1f\\x7f-\\x9f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069\\ufeff\\ud800-\\udfff]")


def client_text(said: str | bytes, at_most: int = MAX_CHARACTERS) -> str:
    """`at_most` characters of what was said, in one line: what is cut ends with … and the true length.

    Control characters and their like are shown as escapes. Bytes are read as UTF-8, and only as many as may be shown.
    """
    if isinstance(said, bytes):
        unit, looked_at = "bytes", at_most * _MAX_BYTES_OF_A_CHARACTER
        text = said[:looked_at].decode("utf-8", "replace")
    else:
        unit, looked_at = "characters", at_most
        text = said[:looked_at]
    if not text.isprintable():
        text = _UNFIT.sub(_escape, text)
    if len(said) <= looked_at and len(text) <= at_most:
        return text
    end = f"… ({len(said)} {unit})"
    return text[: at_most - len(end)] + end


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
