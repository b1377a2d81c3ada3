"""The page: what was asked, tables, plots. Everything is within the file."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from jinja2 import Environment, StrictUndefined

_TEMPLATE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{ title }}</title>
<style>
:root { color-scheme: light; --ink: #1c2733; --soft: #5b6875; --line: #dde3e9; --accent: #0b6e99; }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); max-width: 75rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: .2rem; } h2 { font-size: 1.2rem; margin-top: 2.2rem; }
.lead { color: var(--soft); margin-top: 0; }
table { border-collapse: collapse; margin: .8rem 0; font-size: .85rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--soft); padding-bottom: .3rem; }
th, td { padding: .3rem .7rem .3rem 0; border-bottom: 1px solid var(--line); text-align: left; }
td, th { vertical-align: top; }
td { overflow-wrap: break-word; max-width: 20rem; }
td.short { white-space: nowrap; } td.long { min-width: 12rem; }
td.number { text-align: right; white-space: nowrap; } th.number { text-align: right; }
pre { background: #f4f6f8; padding: .8rem 1rem; overflow-x: auto; border-left: 3px solid var(--accent); }
figure { margin: 1rem 0; } figure svg { max-width: 100%; height: auto; overflow: visible; } .wide { overflow-x: auto; }
</style>
</head>
<body>
<h1>{{ title }}</h1>
<p class="lead">{{ lead }} Made {{ made }}.</p>
{% for section in sections %}
<h2>{{ section.title }}</h2>
{% if section.text %}<p>{{ section.text }}</p>{% endif %}
{% for plot in section.plots %}<figure>{{ plot | safe }}</figure>{% endfor %}
{% for table in section.tables %}
<div class="wide"><table>
{% if table.caption %}<caption>{{ table.caption }}</caption>{% endif %}

<thead><tr>{% for head in table.heads -%}
<th{{ ' class=number' if loop.index0 in table.numbers }}>{{ head }}</th>{% endfor %}</tr></thead>
<tbody>{% for row in table.shown %}
<tr>{% for cell in row -%}
<td class={{ 'number' if loop.index0 in table.numbers else length_of(cell) }}>{{ cell }}</td>{% endfor %}</tr>
{%- endfor %}</tbody>
</table></div>
{% endfor %}
{% if section.code %}<pre>{{ section.code }}</pre>{% endif %}
{% endfor %}
</body>
</html>
"""


_SHORT, _LONG = 24, 48


@dataclass(frozen=True, slots=True)
class Table:
    """Cells are text, or numbers, which stand at the right with their thousands apart."""

    caption: str
    heads: Sequence[str]
    rows: Sequence[Sequence[object]]

    @property
    def numbers(self) -> set[int]:
        """Which columns hold numbers."""
        return {
            i for i in range(len(self.heads)) if self.rows and all(isinstance(r[i], int | float) for r in self.rows)
        }

    @property
    def shown(self) -> list[list[str]]:
        """The cells as text."""
        return [[f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row] for row in self.rows]


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what belongs to it; `plots` are SVG, `code` is shown as it is."""

    title: str
    text: str = ""
    plots: Sequence[str] = ()
    tables: Sequence[Table] = ()
    code: str = ""


def page(title: str, lead: str, sections: Sequence[Section], made_at_ms: int) -> str:
    """The HTML."""
    made = datetime.fromtimestamp(made_at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(_TEMPLATE).render(
        title=title, lead=lead, sections=sections, made=made, length_of=_length_of
    )


def _length_of(cell: str) -> str:
    """A moment or a short name is one line, and a long one no column of its hyphens."""
    return "short" if len(cell) <= _SHORT else "long" if len(cell) > _LONG else "middling"
