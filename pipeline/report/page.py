"""The page: what was found, what to do, then plots and tables. Everything is within the file."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from jinja2 import Environment, StrictUndefined

from sluicegate.pipeline.report.answer import Answer
from sluicegate.pipeline.report.colours import as_css
from sluicegate.pipeline.report.plots import Plot
from sluicegate.pipeline.report.style import STYLE

_TEMPLATE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{ title }}</title>
<style>
{{ colours | safe }}
{{ style | safe }}</style>
</head>
<body>
<main>
<h1>{{ title }}</h1>
<p class="found">{{ answer.found }}</p>
<p class="to-do"><strong>What to do.</strong> {{ answer.to_do }}</p>
<p class="about">{{ about }} Made {{ made }}.</p>
{% for section in sections %}
<section>
<h2>{{ section.title }}</h2>
{% if section.text %}<p>{{ section.text }}</p>{% endif %}
{% for plot in section.plots %}
<figure>
<div class="wide" tabindex="0" role="group" aria-label="{{ section.title }}: {{ plot.title }}">
{{ plot.svg | safe }}
</div>
<figcaption>{{ plot.says }}</figcaption>
</figure>
{% endfor %}
{% for table in section.tables %}
<div class="wide" tabindex="0" role="group" aria-label="{{ section.title }}{{ ": " ~ table.caption if table.caption }}">
<table>
{% if table.caption %}<caption><span>{{ table.caption }}</span></caption>{% endif %}

<thead><tr>{% for head in table.heads -%}
<th scope="col"{{ ' class=number' if loop.index0 in table.numbers }}>{{ head }}</th>{% endfor %}</tr></thead>
<tbody>{% for row in table.shown %}
<tr>{% for cell in row -%}
<td class={{ 'number' if loop.index0 in table.numbers else length_of(cell) }}>{{ cell }}</td>{% endfor %}</tr>
{%- endfor %}</tbody>
</table></div>
{% endfor %}
{% if section.code %}
<pre tabindex="0" role="group" aria-label="{{ section.title }}">{{ section.code }}</pre>
{% endif %}
</section>
{% endfor %}
</main>
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
    """A heading and what belongs to it; `code` is shown as it is."""

    title: str
    text: str = ""
    plots: Sequence[Plot] = ()
    tables: Sequence[Table] = ()
    code: str = ""


def page(title: str, answer: Answer, about: str, sections: Sequence[Section], made_at_ms: int) -> str:
    """The HTML. `about`: what one must know to read the figures, and what was left out."""
    made = datetime.fromtimestamp(made_at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(_TEMPLATE).render(
        title=title,
        answer=answer,
        about=about,
        sections=sections,
        made=made,
        length_of=_length_of,
        colours=as_css(),
        style=STYLE,
    )


def _length_of(cell: str) -> str:
    """A moment or a short name is one line, and a long one no column of its hyphens."""
    return "short" if len(cell) <= _SHORT else "long" if len(cell) > _LONG else "middling"
