"""Writes the groups of a topic of dead letters as one HTML file, which loads nothing and runs no script."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from sluicegate.proxy.cli.console import end
from sluicegate.proxy.cli.dead_letter_access import USAGE
from sluicegate.proxy.cli.dead_letter_tables import counted
from sluicegate.proxy.reporting.bounded_text import printable
from sluicegate.proxy.server.clock import now_ms
from sluicegate.proxy.watching.formatting import iso_time, record_time

_MOST_NAMED = 10
_MOST_GROUPS = 200
_HEAD = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; --line: #8885; --bar: #c2410c; }}
body {{ font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 62rem; padding: 0 1rem; }}
h1 {{ font-size: 1.4rem; }}
article {{ border: 1px solid var(--line); border-radius: 6px; margin: 1rem 0; padding: .75rem 1rem; }}
h2 {{ font-size: 1.05rem; margin: 0; overflow-wrap: anywhere; }}
p {{ margin: .35rem 0; overflow-wrap: anywhere; }}
dl {{ display: grid; grid-template-columns: 8rem 1fr; gap: .1rem .75rem; margin: .5rem 0 0; }}
dt {{ opacity: .7; }}
dd {{ margin: 0; overflow-wrap: anywhere; }}
code, h2, dd, p {{ unicode-bidi: isolate; }}
code {{ font: .9em ui-monospace, monospace; }}
.count {{ float: right; font-variant-numeric: tabular-nums; margin-left: 1rem; }}
.bar {{ background: var(--line); clear: both; height: 4px; margin: .4rem 0; }}
.bar div {{ background: var(--bar); height: 4px; }}
</style>
</head>
<body>
<main>
"""


def write_report(file: Path, content: Mapping[str, Any]) -> None:
    """Write the file. `content` is the JSON of `show`. Ends the command if the file cannot be written."""
    try:
        with file.open("w", encoding="utf-8", errors="replace") as written:
            written.writelines(groups_html(content, now_ms()))
    except OSError as error:
        end([f"{file}: {error.strerror}"], USAGE)


def groups_html(content: Mapping[str, Any], made_ms: int) -> Iterator[str]:
    """Yield the parts of the file. `content` is the JSON of `show`, and `made_ms` the present time."""
    groups: Sequence[Mapping[str, Any]] = content["groups"]
    letters = sum(group["letters"] for group in groups)
    topic = _text(content["topic"])
    yield _HEAD.format(title=f"Dead letters of {topic}")
    yield f"<h1>Dead letters of {topic}</h1>\n<p>{counted(letters, 'dead letter')} in {counted(len(groups), 'group')}"
    if content["not_letters"]:
        yield f"; {content['not_letters']:,} other records"
    yield f". Made at {iso_time(made_ms)}.</p>\n"
    for group in groups[:_MOST_GROUPS]:
        yield from _group(group, letters)
    if len(groups) > _MOST_GROUPS:
        yield f"<p>{len(groups) - _MOST_GROUPS:,} smaller groups are not listed; --json lists all.</p>\n"
    yield "</main>\n</body>\n</html>\n"


def _group(group: Mapping[str, Any], letters: int) -> Iterator[str]:
    rules = f" (rule {', '.join(group['rules'])})" if group["rules"] else ""
    share = 100 * group["letters"] / letters
    yield f'<article id="{_text(group["id"])}">\n<span class="count">{group["letters"]:,} ({share:.0f} %)</span>\n'
    yield f"<h2>{_text((group['error'] or 'no error') + rules)}</h2>\n"
    yield f'<div class="bar"><div style="width: {share:.1f}%"></div></div>\n'
    if group["text"]:
        yield f"<p>{_text(group['text'])}</p>\n"
    yield "<dl>\n"
    for name, value in _facts(group):
        if value:
            yield f"<dt>{name}</dt><dd>{value}</dd>\n"
    yield "</dl>\n</article>\n"


def _facts(group: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield names and values, which are HTML."""
    example = group["example"]
    yield "Group", f"<code>{_text(group['id'])}</code>"
    yield "Stage", _text(group["stage"] or "")
    yield "Time", f"{record_time(group['first_ms'])} to {record_time(group['last_ms'])}"
    yield "Formats", _counts(group["formats"])
    yield "From topics", _counts(group["from_topics"])
    yield "Clients", _counts({name: count for name, count in group["clients"].items() if name})
    yield "Schema ids", _counts(group["schema_ids"])
    yield "Example", f"partition {example['partition']}, offset {example['offset']}"
    for part in ("key", "value"):
        shown = (example["contents"] or {}).get(part)
        if shown is not None:
            yield part.capitalize(), f"<code>{_text(shown['text'])}</code> ({shown['size']:,} bytes)"


def _counts(counts: Mapping[str, int]) -> str:
    ordered = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    named = ", ".join(f"{_text(name)} {count:,}" for name, count in ordered[:_MOST_NAMED])
    return named + (f" and {len(ordered) - _MOST_NAMED} more" if len(ordered) > _MOST_NAMED else "")


def _text(text: str) -> str:
    """Return a text that anyone may have written as HTML, without control characters."""
    return escape(printable(text))
