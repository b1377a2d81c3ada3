"""Parses the claim from which Strimzi takes a user name (`oauth.username.claim`).

The claim is a name, or a JSONPath to one nested claim.
"""

import re

_MAX_DEPTH = 32
_STEP = re.compile(r"""\.?\[ *(?:'([^'\\]*)'|"([^"\\]*)"|(\d{1,9})) *\]|\.([A-Za-z_]\w*)""", re.ASCII)

ClaimPath = tuple[str | int, ...]


def claim_path(claim: str) -> ClaimPath:
    """Return the names and list indexes that lead to a claim. Raises ValueError.

    A string that starts with `[` is a path, for example `['user'].['id']`. Any other string is the name of one claim,
    including any dots.
    """
    text = claim.strip()
    if not text.startswith("["):
        return (text,)
    steps: list[str | int] = []
    position = 0
    while position < len(text):
        step = _STEP.match(text, position)
        if step is None or len(steps) == _MAX_DEPTH:
            raise ValueError(
                f"expected the path of one claim, such as ['user'].['id'], at most {_MAX_DEPTH} deep, without "
                f"wildcards and "
                "filters"
            )
        single, double, index, plain = step.groups()
        steps.append(int(index) if index is not None else next(e for e in (single, double, plain) if e is not None))
        position = step.end()
    return tuple(steps)
