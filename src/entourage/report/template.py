"""The template of a page: HTML without script, for screens of any width, light or dark, and for paper."""

__all__ = ["PAGE"]

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{ title }}</title>
<style>
:root { color-scheme: light dark; --ink: #1c2430; --soft: #566171; --line: #d9dee5; --paper: #fff; --card: #f4f6f9;
        --best: #0b6e4f; --link: #1a56b0; --plain: #1c2430; --any: #1a56b0; --context: #b3261e; --relative: #8a6100;
        --context-free: #5b6675; }
@media screen and (prefers-color-scheme: dark) {
  :root { --ink: #e6e9ee; --soft: #a3adbb; --line: #333c48; --paper: #14181f; --card: #1d232c;
          --best: #5fd3a6; --link: #8ab8ff; --plain: #e6e9ee; --any: #8ab8ff; --context: #ff8f86; --relative: #e3b341;
          --context-free: #a3adbb; }
}
* { box-sizing: border-box; }
body { font: 16px/1.55 system-ui, sans-serif; color: var(--ink); background: var(--paper);
       max-width: 54rem; margin: 2rem auto; padding: 0 1rem; overflow-wrap: break-word; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .6rem; }
h2 { margin: 2.4rem 0 .4rem; font-size: 1.2rem; }
p { margin: .6rem 0; }
a { color: var(--link); }
a:focus-visible, summary:focus-visible, .wide:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
.headline { font-size: 1.25rem; line-height: 1.4; font-weight: 600; }
.lead, figcaption, caption, .intervals small { color: var(--soft); }
.note { border-left: 4px solid var(--relative); background: var(--card); padding: .5rem .9rem; margin: .8rem 0; }
.note ul { margin: 0; padding-left: 1.1rem; } .note li:only-child { list-style: none; margin-left: -1.1rem; }
.live { border-left: 4px solid var(--link); background: var(--card); padding: .5rem .9rem; margin: .8rem 0; }
.live a { font-weight: 600; }
nav ul { list-style: none; display: flex; flex-wrap: wrap; gap: .2rem 1.1rem; padding: .6rem 0; margin: 1rem 0 0;
         border: solid var(--line); border-width: 1px 0; }
nav a { display: inline-block; padding: .15rem 0; text-decoration: none; } nav a:hover { text-decoration: underline; }
.wide { overflow-x: auto; margin: .8rem 0; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .35rem .6rem; border-bottom: 1px solid var(--line); text-align: right; vertical-align: bottom; }
td { white-space: nowrap; }
.text { text-align: left; } td.text { white-space: normal; overflow-wrap: anywhere; min-width: 7rem; }
th:first-child, td:first-child { text-align: left; }
td.best { font-weight: 700; color: var(--best); }
details { margin: .8rem 0; } summary { cursor: pointer; color: var(--link); width: fit-content; }
figure { margin: 1rem 0; }
img { max-width: 100%; height: auto; border-radius: 6px; background: #fff; }
.intervals { width: 100%; margin: .8rem 0; table-layout: fixed; }
.intervals caption { text-align: left; padding: .2rem 0; }
.intervals th, .intervals td { padding: .1rem .4rem; vertical-align: middle; border: 0; white-space: normal; }
.intervals th { text-align: left; font-weight: 400; } .intervals thead th { color: var(--soft); font-size: .875rem; }
.intervals .names { width: 28%; padding-left: 0; }
.intervals .numbers { width: 30%; text-align: right; padding-right: 0; }
.intervals td.numbers { font-size: .9375rem; }
.intervals small { display: block; font-size: .8125rem; line-height: 1.3; }
.intervals .best { font-weight: 700; }
.intervals .plot { position: relative; }
.intervals .plot > svg { position: absolute; inset: 0; width: 100%; height: 100%; overflow: visible; }
.intervals tbody tr { height: 34px; } .intervals .axis { height: 24px; }
.intervals .plot svg svg { overflow: visible; }
.intervals text { font-size: 12px; fill: var(--soft); text-anchor: middle; }
.grid { stroke: var(--line); stroke-width: 1; } .zero { stroke: var(--soft); stroke-width: 1.5; }
.bar { stroke: var(--own); stroke-width: 3; stroke-linecap: round; } .point { fill: var(--own); }
.mark { fill: none; stroke: var(--ink); stroke-width: 1.75; }
{% for look in looks %}.look-{{ look }} { --own: var(--{{ look }}); }
{% endfor %}
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; padding: 0; margin: .3rem 0;
          font-size: .875rem; }
.legend svg { width: 15px; height: 15px; margin-right: .4rem; vertical-align: -2px; }
@media screen and (max-width: 40rem) {
  body { margin: 1rem auto; }
  .intervals tbody tr { display: grid; grid-template-columns: 1fr auto; align-items: end; }
  .intervals tfoot tr, .intervals tbody .plot { display: block; grid-column: 1 / -1; order: 3; }
  .intervals tfoot td:not(.plot), .intervals thead { display: none; } .intervals tfoot .plot { display: block; }
  .intervals .names, .intervals .numbers { width: auto; } .intervals .plot { padding: 0; }
  .intervals tbody tr, .intervals .axis { height: auto; } .intervals .plot { height: 22px; }
  .intervals th, .intervals td { padding: .1rem 0; } .intervals small { margin-right: .6rem; }
  .intervals tbody tr { padding-top: .35rem; } .wide table { font-size: .875rem; }
  .wide th, .wide td { padding: .35rem .4rem; }
}
@media print {
  @page { margin: 16mm; }
  body { font-size: 10.5pt; max-width: none; margin: 0; padding: 0; }
  nav, .live.offer { display: none; } a { color: inherit; text-decoration: none; }
  h2, caption, summary { break-after: avoid; } h2 { margin-top: 1.4rem; }
  figure, tr, .note, .intervals { break-inside: avoid; }
  .intervals td.numbers { font-size: .875rem; }
  .wide { overflow: visible; } table:not(.intervals) { font-size: 8.5pt; } td { white-space: normal; }
  img { max-height: 11cm; } summary { color: inherit; list-style: none; }
  details::details-content { content-visibility: visible; display: block; height: auto; }
  .note, .live, .bar, .point { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
</style>
</head>
<body>
{% macro grid(table) %}
<div class="wide" tabindex="0" role="region" aria-label="{{ table.header | select | join(', ') }}"><table>
<thead><tr>{% for cell in table.header -%}
<th scope="col"{% if table.is_text(loop.index0) %} class="text"{% endif %}>{{ cell }}</th>
{%- endfor %}</tr></thead>
<tbody>
{% for row in table.rows %}
<tr>{% for cell in row %}{% if cell is string %}<td>{{ cell }}</td>
{%- else %}<td class="{{ cell[1] }}">{{ cell[0] }}</td>{% endif %}{% endfor %}</tr>
{% endfor %}
</tbody></table></div>
{% endmacro %}
{% macro upright(look, x, end) -%}
<line class="{{ look }}" x1="{{ x }}%" x2="{{ x }}%" y1="0" y2="{{ end }}"/>
{%- endmacro %}
{% macro path(look, x, shape) -%}
<svg x="{{ x }}%" y="50%"><path class="{{ look }}" d="{{ shape }}"/></svg>
{%- endmacro %}
{% macro key(look, shape) -%}
<svg viewBox="-8 -8 16 16" aria-hidden="true"><path class="{{ look }}" d="{{ shape }}"/></svg>
{%- endmacro %}
{% macro vertical(plot) %}
{% for x, _ in plot.ticks %}{{ upright("grid", x, "100%") }}{% endfor %}
{% if plot.at_zero is not none %}{{ upright("zero", plot.at_zero, "100%") }}{% endif %}
{% endmacro %}
{% macro intervals(plot) %}
<table class="intervals" role="table">
<caption>{{ plot.what }}</caption>
<thead role="rowgroup"><tr role="row"><th role="columnheader" scope="col" class="names">{{ plot.names }}</th>
<td class="plot" aria-hidden="true"></td>
<th role="columnheader" scope="col" class="numbers">{{ plot.numbers }}</th></tr></thead>
<tbody role="rowgroup">
{% for line in plot.lines %}{% set drawn = plot.drawn(line) %}
<tr role="row" class="look-{{ line.look }}">
<th role="rowheader" scope="row" class="names{{ ' best' if line.best }}">{{ line.name }}
{%- if line.note %}<small>{{ line.note }}</small>{% endif %}</th>
<td class="plot" aria-hidden="true"><svg>{{ vertical(plot) }}
{%- if drawn.bar -%}
<line class="bar" x1="{{ drawn.bar[0] }}%" x2="{{ drawn.bar[1] }}%" y1="50%" y2="50%"/>
{%- endif %}
{%- if drawn.point is not none %}{{ path("point", drawn.point, drawn.shape) }}{% endif %}
{%- for x, shape in drawn.marks %}{{ path("mark", x, shape) }}{% endfor %}
</svg></td>
<td role="cell" class="numbers{{ ' best' if line.best }}">{{ line.text }}
{%- if line.beside %}<small>{{ line.beside }}</small>{% endif %}</td></tr>
{% endfor %}
</tbody>
<tfoot aria-hidden="true"><tr class="axis"><td></td><td class="plot"><svg>
{%- for x, text in plot.ticks %}{{ upright("grid", x, "5") }}<text x="{{ x }}%" y="18">{{ text }}</text>{% endfor -%}
</svg></td><td></td></tr></tfoot>
</table>
{% if plot.legend or plot.marks %}
<ul class="legend">
{% for look, name in plot.legend %}
<li class="look-{{ look }}">{{ key("point", plot.shape_of(look)) }}{{ name }}</li>
{% endfor %}
{% for mark in plot.marks %}
<li>{{ key("mark", plot.shape_of(mark.shape)) }}{{ mark.name }}</li>
{% endfor %}
</ul>
{% endif %}
{% endmacro %}
<header>
<h1>{{ title }}</h1>
{% if headline %}<p class="headline">{{ headline }}</p>{% endif %}
<p class="lead">{{ lead }}</p>
{% if notes %}
<div class="note" role="note"><ul>{% for note in notes %}<li>{{ note }}</li>{% endfor %}</ul></div>
{% endif %}
{% if live %}
<p class="live{{ '' if live.href else ' offer' }}">
{%- if live.href %}<a href="{{ live.href }}">{{ live.name }}</a> {% endif %}{{ live.text }}</p>
{% endif %}
</header>
{% if sections | length > 2 %}
<nav aria-label="Contents"><ul>
{% for section in sections %}
<li><a href="#{{ ids[loop.index0] }}">{{ section.title }}</a></li>
{% endfor %}
</ul></nav>
{% endif %}
<main>
{% for section in sections %}
<section id="{{ ids[loop.index0] }}">
<h2>{{ section.title }}</h2>
{% if section.text %}<p>{{ section.text }}</p>{% endif %}
{% for plot in section.plots %}{{ intervals(plot) }}{% endfor %}
{% if section.table %}{{ grid(section.table) }}{% endif %}
{% for picture in section.pictures %}
<figure><img alt="{{ picture[2] or picture[1] }}" src="data:image/png;base64,{{ picture[0] | embed }}">
<figcaption>{{ picture[1] }}</figcaption></figure>
{% endfor %}
{% for name, table in section.folded %}
<details><summary>{{ name }}</summary>
{{ grid(table) }}</details>
{% endfor %}
</section>
{% endfor %}
</main>
</body>
</html>
"""
