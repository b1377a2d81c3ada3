"""Builds the HTML report: finding, recommendation, plots and tables in one file."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from jinja2 import Environment, StrictUndefined

from sluicegate.pipeline.report.plots import Plot, as_css
from sluicegate.pipeline.report.wording import Conclusion

STYLE = """\
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, sans-serif; background: var(--ground); color: var(--ink); margin: 0; }
main { max-width: 75rem; margin: 0 auto; padding: 1.2rem 1rem 3rem; overflow-wrap: break-word; }
h1 { font-size: 1.1rem; margin: 0; color: var(--soft); font-weight: 600; }
h2 { font-size: 1.2rem; margin: 2.2rem 0 .4rem; }
.found { font-size: 1.35rem; line-height: 1.35; margin: .3rem 0 .8rem; }
.to-do { background: var(--panel); border-left: 4px solid var(--accent); padding: .7rem 1rem; margin: .8rem 0; }
.about, figcaption, caption { color: var(--soft); font-size: .9rem; }
table { border-collapse: collapse; margin: .8rem 0; font-size: .85rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; padding-bottom: .3rem; }
caption span { display: inline-block; position: sticky; left: 0; max-width: min(100%, calc(100vw - 2rem)); }
th, td { padding: .3rem .7rem .3rem 0; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
td { max-width: 20rem; } th { overflow-wrap: normal; }
td.short { white-space: nowrap; } td.middling { min-width: 9rem; } td.long { min-width: 12rem; }
td.number { text-align: right; white-space: nowrap; } th.number { text-align: right; }
pre { background: var(--panel); padding: .8rem 1rem; overflow-x: auto; border-left: 4px solid var(--accent); }
figure { margin: 1rem 0; }
figure svg { width: 100%; min-width: 36rem; max-width: 54rem; height: auto; overflow: visible; display: block; }
.wide { overflow-x: auto; }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
@media print { .wide { overflow: visible; } }
"""


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
<p class="found">{{ conclusion.found }}</p>
<p class="to-do"><strong>What to do.</strong> {{ conclusion.to_do }}</p>
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
<figcaption>{{ plot.description }}</figcaption>
</figure>
{% endfor %}
{% for table in section.tables %}
<div class="wide" tabindex="0" role="group" aria-label="{{ section.title }}{{ ": " ~ table.caption if table.caption }}">
<table>
{% if table.caption %}<caption><span>{{ table.caption }}</span></caption>{% endif %}

<thead><tr>{% for head in table.heads -%}
<th scope="col"{{ ' class=number' if loop.index0 in table.numbers }}>{{ head }}</th>{% endfor %}</tr></thead>
<tbody>{% for row in table.cells_as_text %}
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
    """A table in the report. Cells are strings, or numbers, which are right-aligned and have thousands separators."""

    caption: str
    heads: Sequence[str]
    rows: Sequence[Sequence[object]]

    @property
    def numbers(self) -> set[int]:
        """Return the indices of columns that contain only numbers."""
        return {
            i for i in range(len(self.heads)) if self.rows and all(isinstance(r[i], int | float) for r in self.rows)
        }

    @property
    def cells_as_text(self) -> list[list[str]]:
        """Return the cells as text."""
        return [[f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row] for row in self.rows]


@dataclass(frozen=True, slots=True)
class ReportSection:
    """A section of the report: a heading with text, plots and tables. `code` is shown preformatted."""

    title: str
    text: str = ""
    plots: Sequence[Plot] = ()
    tables: Sequence[Table] = ()
    code: str = ""


def page(title: str, conclusion: Conclusion, about: str, sections: Sequence[ReportSection], made_at_ms: int) -> str:
    """Return the HTML. `about` contains notes that explain the figures and list omissions."""
    made = datetime.fromtimestamp(made_at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(_TEMPLATE).render(
        title=title,
        conclusion=conclusion,
        about=about,
        sections=sections,
        made=made,
        length_of=_length_of,
        colours=as_css(),
        style=STYLE,
    )


def _length_of(cell: str) -> str:
    """Return a cell's CSS class. Short cells stay on one line; long cells get a minimum width."""
    return "short" if len(cell) <= _SHORT else "long" if len(cell) > _LONG else "middling"
