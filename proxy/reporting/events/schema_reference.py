"""Generates the JSON Schema of violation events.

`python -m sluicegate.proxy.reporting.events.schema_reference > docs/violation-event.schema.json` writes the file.
"""

import json
import sys

from sluicegate.validation.event_schema import json_schema


def schema_text() -> str:
    """Return the text of the file."""
    return json.dumps(json_schema(), indent=2) + "\n"


if __name__ == "__main__":
    sys.stdout.write(schema_text())
