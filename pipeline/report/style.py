"""How a page looks. A string, because a cluster may have this code as a zip, where there are no files beside it."""

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
