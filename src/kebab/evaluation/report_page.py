"""A run as one HTML file that needs nothing else: no script, no font, no network. What it quotes is escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from kebab.evaluation.metrics import is_better_lower
from kebab.evaluation.misses import Miss, counted_reasons
from kebab.wire.evaluation import EvalQueryV1, EvalReportV1

MOST_BYTES = 5_000_000
_HITS_SHOWN = (10, 5, 3, 1, 0)
"""How many hits of each query are listed: fewer of them when the page would be too large."""
_LONGEST_QUERY = 200
_LONGEST_NAME = 120
_LONGEST_ANSWER = 400
_BAR, _GAP, _LABEL, _WIDTH = 18, 6, 190, 640
_COLUMN, _HEIGHT, _FOOT = 44, 150, 34
_STYLE = """
:root{color-scheme:light dark;--ink:#1c1c1e;--paper:#fff;--line:#d8d8dc;
--soft:#6a6a70;--bar:#3a6ea5;--good:#1d7a3f;--bad:#b3261e}
@media(prefers-color-scheme:dark){:root{--ink:#ececee;--paper:#17171a;--line:#3a3a40;
--soft:#a0a0a8;--bar:#7fb0e6;--good:#6fcf8e;--bad:#ff8a80}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);
max-width:1100px;margin:2rem auto;padding:0 1rem}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}
table{border-collapse:collapse;width:100%}
th,td{border-bottom:1px solid var(--line);padding:.25rem .5rem;
text-align:left;vertical-align:top}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}
figure{margin:1rem 2rem 1rem 0;display:inline-block;max-width:100%}figcaption{color:var(--soft)}
svg{max-width:100%;height:auto;font:12px system-ui,sans-serif}
svg text{fill:var(--ink)}.bar{fill:var(--bar)}.soft{color:var(--soft)}.good{color:var(--good)}.bad{color:var(--bad)}
ol,ul{margin:.25rem 0;padding-left:1.75rem}summary{cursor:pointer}.wide{overflow-x:auto}code{overflow-wrap:anywhere}
"""


def report_page(
    report: EvalReportV1, misses: Mapping[str, Sequence[Miss]] | None, *, most_bytes: int = MOST_BYTES
) -> str:
    """`misses` is None when nothing could be said about them. Only lists of hits give way to keep the page small."""
    page = ""
    for shown in _HITS_SHOWN:
        page = _page(report, misses, shown)
        if len(page.encode("utf-8")) <= most_bytes:
            break
    return page


def _page(report: EvalReportV1, misses: Mapping[str, Sequence[Miss]] | None, hits_shown: int) -> str:
    title = f"Evaluation of {report.golden.name}"
    parts = [
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">',
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>",
        f"<h1>{escape(title)}</h1>",
        _summary(report),
        "<h2>Metrics</h2>",
        _metrics(report),
        _charts(report),
        "<h2>Misses</h2>",
        _misses(misses),
        _wrong_answers(report),
        "<h2>Queries</h2>",
        _queries(report, misses or {}, hits_shown),
        "<h2>Configuration</h2>",
        _configuration(report),
        "</body></html>\n",
    ]
    return "\n".join(parts)


def _summary(report: EvalReportV1) -> str:
    configuration, index = report.configuration, report.index
    commits = ", ".join(f"{source.name} at {source.commit[:10]}" for source in index.sources if source.commit)
    mode = configuration.options.get("mode", "hybrid")
    sentence = (
        f"{report.golden.queries:,} queries, {mode}, k = {configuration.k}, on {index.documents:,} documents"
        f"{f' ({commits})' if commits else ''}. Index {index.index_version}, {configuration.program}."
    )
    return f"<p>{escape(sentence)}</p>"


def _metrics(report: EvalReportV1) -> str:
    slices = [*report.by_lang, *report.by_type]
    head = "".join(f'<th class="n">{escape(name)}' for name in ("all", "queries", *(part.name for part in slices)))
    rows = [
        f"<tr><td>{escape(name)}{' <span class=soft>lower is better</span>' if is_better_lower(name) else ''}<td "
        f'class="n">{value:.4f}'
        f'<td class="n">{report.counted.get(name, 0):,}' + "".join(_number(part.metrics.get(name)) for part in slices)
        for name, value in report.metrics.items()
    ]
    return f'<div class="wide"><table><tr><th>metric{head}{"".join(rows)}</table></div>'


def _number(value: float | None) -> str:
    return f'<td class="n">{"–" if value is None else f"{value:.4f}"}'


def _charts(report: EvalReportV1) -> str:
    k = report.configuration.k
    judged = [query for query in report.queries if f"ndcg@{k}" in query.metrics]
    by_slice = {
        part.name: part.metrics[f"ndcg@{k}"]
        for part in (*report.by_lang, *report.by_type)
        if f"ndcg@{k}" in part.metrics
    }
    first = [_first_rank(query, k) for query in judged]
    ranks = [*((str(rank), first.count(rank)) for rank in range(1, min(k, 20) + 1)), ("none", first.count(None))]
    tenths = [min(9, int(query.metrics[f"ndcg@{k}"] * 10)) for query in judged]
    spread = [(f".{tenth}", tenths.count(tenth)) for tenth in range(10)]
    return "\n".join(
        [
            _bars("All queries", {name: value for name, value in report.metrics.items() if not is_better_lower(name)}),
            _bars(f"nDCG@{k} by language of the query and type of the document", by_slice),
            _columns("Rank of the first right hit", ranks),
            _columns(f"nDCG@{k} of the queries, from .0 to .9 and above", spread),
        ]
    )


def _first_rank(query: EvalQueryV1, k: int) -> int | None:
    reciprocal = query.metrics.get(f"mrr@{k}", 0.0)
    return round(1 / reciprocal) if reciprocal else None


def _misses(misses: Mapping[str, Sequence[Miss]] | None) -> str:
    if misses is None:
        return '<p class="soft">Not explained: the index is not the one of this run any more.</p>'
    if not misses:
        return "<p>Everything that was expected was found.</p>"
    meanings = {
        "not indexed": "not in the index, or in no passage of it",
        "filtered": "left out by the filters of the run",
        "ranked low": "there, and other passages stand before it",
        "not matched": "there, and nothing of the question leads to it",
        "chunk boundary": "expected lines are spread over several passages, and only some of those were found",
    }
    rows = [
        f'<tr><td>{reason}<td class="n">{count:,}<td class="soft">{meanings[reason]}'
        for reason, count in counted_reasons(misses.values()).items()
    ]
    return f'<table><tr><th>reason<th class="n">expected<th>which means{"".join(rows)}</table>'


def _wrong_answers(report: EvalReportV1) -> str:
    """Questions that were refused although there is an answer, or answered although there is none."""
    asked = [query for query in report.queries if query.answer is not None]
    refused = sum(query.answer is not None and query.answer.refused and not query.unanswerable for query in asked)
    invented = sum(query.answer is not None and not query.answer.refused and query.unanswerable for query in asked)
    if not asked:
        return ""
    counts = f"{refused:,} refused that can be answered, {invented:,} given that cannot"
    return f"<p>Answers: {counts}, of {len(asked):,} questions.</p>"


def _queries(report: EvalReportV1, misses: Mapping[str, Sequence[Miss]], hits_shown: int) -> str:
    k = report.configuration.k
    names = [
        name for name in (f"ndcg@{k}", f"recall@{k}", f"mrr@{k}", f"citation_line_recall@{k}") if name in report.metrics
    ]
    with_answers = report.configuration.asked
    worst_first = sorted(report.queries, key=lambda query: (query.metrics.get(f"ndcg@{k}", 2.0), query.id))
    head = "".join(f'<th class="n">{escape(name)}' for name in names) + ("<th>answer" if with_answers else "")
    left_out = (
        ""
        if hits_shown == _HITS_SHOWN[0]
        else f" To keep the page small, {hits_shown or 'no'} hits of each are listed."
    )
    rows = [
        _row(query, names, misses.get(query.id, ()), hits_shown, with_answers=with_answers) for query in worst_first
    ]
    table = f"<table><tr><th>id<th>query<th>lang{head}{''.join(rows)}</table>"
    return f'<p class="soft">The worst first.{left_out}</p><div class="wide">{table}</div>'


def _row(
    query: EvalQueryV1, names: Sequence[str], misses: Sequence[Miss], hits_shown: int, *, with_answers: bool
) -> str:
    figures = "".join(
        '<td class="n">' + ("–" if name not in query.metrics else f"{query.metrics[name]:.3f}") for name in names
    )
    text = escape(_cut(query.query, _LONGEST_QUERY))
    inside = _expectation(query, misses) + _hits(query, hits_shown) + (_answer_text(query) if hits_shown else "")
    asked = f"<details><summary>{text}</summary>{inside}</details>" if inside else text
    answer = _answer(query) if with_answers else ""
    return f"<tr><td>{escape(_cut(query.id, 40))}<td>{asked}<td>{escape(query.lang)}{figures}{answer}"


def _expectation(query: EvalQueryV1, misses: Sequence[Miss]) -> str:
    why = {miss.name: f"{miss.reason}: {miss.detail}" for miss in misses}
    lines = []
    for thing in query.expected:
        found = f"rank {thing.rank}" if thing.rank is not None else "not found"
        reason = f' <span class="bad">{escape(why[thing.name])}</span>' if thing.name in why else ""
        lines.append(f"<li>{escape(_cut(thing.name, _LONGEST_NAME))}: {found}{reason}")
    return f"<ul>{''.join(lines)}</ul>" if lines else ""


def _hits(query: EvalQueryV1, shown: int) -> str:
    if not shown or not query.hits:
        return ""
    lines = [
        f"<li{' class=good' if hit.grade else ''}>{escape(_cut(hit.citation, _LONGEST_NAME))}"
        for hit in query.hits[:shown]
    ]
    return f"<ol>{''.join(lines)}</ol>"


def _answer_text(query: EvalQueryV1) -> str:
    if query.answer is None or query.answer.text is None:
        return ""
    text, quoted = query.answer.text, ", ".join(query.answer.quoted)
    shown, cited = (escape(_cut(part, _LONGEST_ANSWER)) for part in (text, quoted))
    return f"<p>{shown}</p><p class=soft>{cited}</p>"


def _answer(query: EvalQueryV1) -> str:
    answer = query.answer
    if answer is None:
        return "<td>–"
    right = answer.refused == query.unanswerable
    said = (
        f"refused ({answer.refusal_reason})"
        if answer.refused
        else f"{answer.supported} of {answer.claims} claims supported"
    )
    return f'<td class="{"good" if right else "bad"}">{escape(said)}'


def _configuration(report: EvalReportV1) -> str:
    configuration = report.configuration
    values = {"golden set": report.golden.sha256, "index": report.index.sha256, "hits": configuration.hits}
    values |= {f"option {name}": value for name, value in configuration.options.items()}
    rows = [
        f"<tr><td>{escape(name)}<td><code>{escape(str(value))}</code>"
        for name, value in {**values, **configuration.settings}.items()
    ]
    title = "Everything that has a say in what is found"
    return f"<details><summary>{title}</summary><table>{''.join(rows)}</table></details>"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


# --- charts as SVG: colours are the page's, by class, so that they follow light and dark


def _bars(title: str, values: Mapping[str, float]) -> str:
    """Shares from 0 to 1, one bar below the other."""
    rows = []
    room = _WIDTH - _LABEL - 60
    for number, (name, value) in enumerate(values.items()):
        top = number * (_BAR + _GAP)
        length = max(0.0, min(1.0, value)) * room
        rows.append(
            f'<text x="{_LABEL - 8}" y="{top + 13}" text-anchor="end">{escape(name)}</text>'
            f'<rect class="bar" x="{_LABEL}" y="{top}" width="{length:.1f}" height="{_BAR}"/>'
            f'<text x="{_LABEL + length + 6:.1f}" y="{top + 13}">{value:.3f}</text>'
        )
    return _chart(title, _WIDTH, max(1, len(values)) * (_BAR + _GAP), rows)


def _columns(title: str, counts: Sequence[tuple[str, int]]) -> str:
    """How many of each, side by side."""
    most = max((count for _, count in counts), default=0) or 1
    rows = []
    for number, (name, count) in enumerate(counts):
        left, height = number * _COLUMN, count / most * (_HEIGHT - 20)
        middle = left + _COLUMN / 2
        rows.append(
            f'<rect class="bar" x="{left + 4}" y="{_HEIGHT - height:.1f}" width="{_COLUMN - 8}" height="{height:.1f}"/>'
            f'<text x="{middle:.0f}" y="{_HEIGHT - height - 5:.1f}" text-anchor="middle">{count:,}</text>'
            f'<text x="{middle:.0f}" y="{_HEIGHT + 16}" text-anchor="middle">{escape(name)}</text>'
        )
    return _chart(title, max(1, len(counts)) * _COLUMN, _HEIGHT + _FOOT, rows)


def _chart(title: str, width: int, height: int, parts: Sequence[str]) -> str:
    name, drawn = escape(title), "".join(parts)
    return (
        f"<figure><figcaption>{name}</figcaption>"
        f'<svg role="img" aria-label="{name}" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}">{drawn}</svg></figure>'
    )
