"""Returns how to install optional libraries, for messages. Imports nothing."""

from typing import Final

OR_IMAGE: Final = "or use the image with -rules in its tag"
"""How to get the extras `rules` and `topic` if pip cannot install them."""
RULES_EXTRA: Final = f"pip install 'sluicegate[rules]', {OR_IMAGE}"
"""How to get the libraries for content rules."""
