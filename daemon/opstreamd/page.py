"""The page at "/": what the daemon is, where its metrics are, and who publishes."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from string import Template

from opstreamd import __version__
from opstreamd.collector import Row

_PAGE = Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>opstreamd</title>
<style>
:root { color-scheme: light dark;
  --ink: #1c2128; --ground: #fff; --line: #d8dde3; --quiet: #5b6672; --accent: #0b63b0; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e3e7eb; --ground: #16191d; --line: #363d46; --quiet: #9aa5b1; --accent: #7cb8f2; }
}
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 3rem auto; padding: 0 1rem;
  color: var(--ink); background: var(--ground); }
h1 { margin: 0; font-size: 1.6rem; }
p, footer { color: var(--quiet); }
a { color: var(--accent); }
nav a { margin-right: 1.2rem; }
div { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: .4rem .8rem .4rem 0; border-bottom: 1px solid var(--line);
  text-align: left; overflow-wrap: anywhere; }
th { font-weight: 600; white-space: nowrap; }
.number { text-align: right; white-space: nowrap; }
.departed { color: var(--quiet); }
</style>
</head>
<body>
<h1>opstreamd</h1>
<p>How long every operator of every model on this machine's Ascend NPUs takes. Version $version.</p>
<nav><a href="$metrics">Metrics</a><a href="/-/healthy">Healthy</a><a href="/-/ready">Ready</a></nav>
<h2>Publishers</h2>
$publishers
</body>
</html>
""")

_TABLE = Template("""<div><table>
<thead><tr><th>App</th><th>Kind</th><th>State</th><th>User</th><th>Process</th><th class="number">Records read</th>\
<th class="number">Rejected</th><th>Id</th></tr></thead>
<tbody>
$rows
</tbody>
</table></div>""")

_ROW = Template(
    '<tr class="$state"><td>$app</td><td>$kind</td><td>$words</td><td>$uid</td><td>$pid</td>'
    '<td class="number">$read</td><td class="number">$rejected</td><td><code>$id</code></td></tr>'
)

_NOBODY = "<p>Nobody yet. They appear here as soon as their processes run.</p>"


def render(rows: Sequence[Row], *, telemetry_path: str) -> str:
    lines = "\n".join(_row(row) for row in rows)
    return _PAGE.substitute(
        version=escape(__version__),
        metrics=escape(telemetry_path),
        publishers=_TABLE.substitute(rows=lines) if rows else _NOBODY,
    )


def _row(row: Row) -> str:
    publisher = row.publisher
    state = words = "live"
    if row.departed_seconds is not None:
        state, words = "departed", f"departed {row.departed_seconds:.0f} s ago"
    return _ROW.substitute(
        state=state,
        app=escape(publisher.app),
        kind=publisher.kind.name.lower(),
        words=words,
        uid=publisher.peer.uid,
        pid=publisher.peer.pid or "not visible",
        read=f"{row.records_read:,}",
        rejected=f"{row.records_rejected:,}",
        id=publisher.id[:8],
    )
