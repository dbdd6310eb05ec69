"""The commands of kb eval."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from shlex import quote
from typing import Any

import click

from kebab.config.loading import cache_folder, config_folder
from kebab.config.writing import set_values
from kebab.core.errors import UsageError, VectorsOff
from kebab.core.files import make_folder
from kebab.core.notices import Says
from kebab.core.search import DEFAULT_K, MAX_K
from kebab.evaluation import files
from kebab.evaluation.comparison import compare
from kebab.evaluation.report_page import explain_misses, report_page
from kebab.evaluation.runner import RunOptions, run
from kebab.evaluation.suggestions import as_yaml, suggest
from kebab.evaluation.tuning import tune
from kebab.interfaces.cli.ingest import progress_of
from kebab.interfaces.cli.options import command, group, is_quiet, knowledge_base, option, places_given, wants_json
from kebab.interfaces.cli.render import counted, done, print_verbatim, printed_as_json, remark, say, shown, table
from kebab.interfaces.cli.search import FILTERS, given, search_options
from kebab.knowledge_base import KnowledgeBase
from kebab.search.options import SearchRequest
from kebab.wire import evaluation as wire

_ABOUT_ONE_QUERY = (
    *(Says.SOME_WORDS, Says.SIMILAR_ONLY, Says.FAR_AWAY, Says.WORDS_ONLY),
    *(Says.INSISTED, Says.OTHER_SCRIPTS, Says.DID_YOU_MEAN),
)
"""Notices about one query. They are not reported for a whole run."""
_MISSES_NAMED = 10
_RUN = click.Path(path_type=Path, dir_okay=False)


@group(
    "eval",
    example="kb eval suggest --out golden.yaml\nkb eval run golden.yaml --out before.json\n"
    "kb eval compare before.json after.json",
)
def eval_command() -> None:
    """How good search is, measured on your own judged queries."""


_SEARCHING = search_options(
    *("mode", *FILTERS, "match", "fusion", "rerank", "per_doc", "duplicates", "threshold", "min_score"),
    mode="hybrid (the default), lexical or vector.",
    match="all words, any of them, or auto.",
    fusion="rrf or convex (setting search.hybrid_fusion).",
    duplicates="fold or show passages with nearly the same text.",
    threshold="Least raw RRF score.",
    min_score="Least score, 0 to 1.",
)
"""The search options of `kb eval run` and `kb eval tune`."""


def golden_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the arguments that choose the golden set and how many hits are judged."""
    number = click.IntRange(1, MAX_K)
    for decorate in (
        option("--skip-unknown", is_flag=True, help="Count expected ids that are not in the index as missed."),
        option("--ingest", is_flag=True, help="Index the documents of FOLDER first, in a database of its own or --db."),
        option("--hits", type=number, help="How many hits each search is asked for; by default k."),
        option("-k", "--k", "k", type=number, default=DEFAULT_K, help=f"Metrics are about the first k ({DEFAULT_K})."),
        click.argument("golden", metavar="FILE|FOLDER", type=click.Path(path_type=Path)),
    ):
        function = decorate(function)
    return function


@command(
    "run",
    within=eval_command,
    example="kb eval run golden.yaml\nkb eval run golden.yaml --mode lexical --out lexical.json\n"
    "kb eval run ~/data/scifact --ingest",
)
@golden_options
@_SEARCHING
@option("--ask", is_flag=True, help="Put every query to kb ask too: are refusals right, are answers grounded?")
@option("--timings", is_flag=True, help="Latencies too, each search by itself; then no two runs are the same.")
@option("--out", type=_RUN, metavar="RUN.json", help="Keep the run, to compare and report.")
def eval_run(
    golden: Path,
    k: int,
    hits: int | None,
    ingest: bool,
    skip_unknown: bool,
    ask: bool,
    timings: bool,
    out: Path | None,
    **options: Any,
) -> None:
    """Search for every query of a golden set and measure what is found.

    FILE is a YAML list or JSON lines of queries with what they should find; FOLDER a judged collection in BEIR layout
    (corpus.jsonl, queries.jsonl, qrels.tsv). Documents are known by path, SOURCE:path or id; an expected one that is
    not in the index stops the run. The same run gives the same RUN.json, byte for byte.
    """
    if hits is not None and hits < k:
        raise UsageError(f"--hits {hits} is less than -k {k}.", hint="Ask for at least as many hits as are looked at.")
    if out is not None:
        files.refuse_to_replace(out)
    loaded = files.load_golden_set(golden)
    kb = ingested(golden, loaded) if ingest else knowledge_base()
    report = run(kb, loaded, RunOptions(k, hits, given(options), ask, skip_unknown, timings))
    if out is not None:
        files.write_run(report, out)
    _remark_on(report)
    if not printed_as_json(report):
        _print_run(report)
        if out is not None:
            where = f"--db {quote(kb.address)} " if ingest and "db" not in places_given() else ""
            remark(f"{out} was written. To read it: kb {where}eval report {out}")


def ingested(folder: Path, golden: files.GoldenSet) -> KnowledgeBase:
    """Ingests the documents of a BEIR folder into a knowledge base, and returns that."""
    if golden.kind != "beir":
        hint = "The documents of a FILE are yours: kb ingest FOLDER"
        raise UsageError("--ingest is for a FOLDER in BEIR layout.", hint=hint)
    # Named after the folder, not its contents, so that vectors are kept if only the judgements change.
    place = cache_folder() / "collections" / f"{golden.name}-{sha256(bytes(folder.resolve())).hexdigest()[:8]}"
    database = places_given().get("db") or str(place / "kebab.sqlite")
    make_folder(place)
    kb = knowledge_base(database)
    with progress_of("auto") as progress:
        report = kb.ingest(files.write_documents(folder, place / golden.name), name=golden.name, progress=progress)
    if report.added or report.updated:
        remark(f"{golden.name}: {counted(report.added + report.updated, 'document')} ingested in {database}")
    return kb


def _remark_on(report: wire.EvalReportV1) -> None:
    for code, count in report.notices.items():
        if code == VectorsOff.code and "mode" not in report.configuration.options:
            continue  # the user has turned vectors off
        if code not in [says.code for says in _ABOUT_ONE_QUERY]:
            searches = counted(count, "search", "searches")
            remark(f"note: {searches} said {code}; see: kb search {report.queries[0].query!r}")
    if not report.metrics:
        remark("note: Nothing was measured: what cannot be answered is judged with --ask.")
    if report.unknown:
        remark(f"note: {counted(len(report.unknown), 'expected id')} not in the index count as missed.")


def _print_run(report: wire.EvalReportV1) -> None:
    configuration = report.configuration
    mode = configuration.options.get("mode", "hybrid")
    say(f"{report.golden.name}: {counted(report.golden.queries, 'query', 'queries')}, {mode}, k = {configuration.k}")
    print_metrics(report)
    if (taken := report.timings) is not None:
        say(f"latency: p50 {taken.p50:.1f} ms, p95 {taken.p95:.1f} ms, p99 {taken.p99:.1f} ms")
    missed = [query.id for query in report.queries if query.metrics.get(f"recall@{configuration.k}", 1.0) < 1.0]
    if missed:
        others = len(missed) - _MISSES_NAMED
        named = ", ".join(map(shown, missed[:_MISSES_NAMED]))
        say(f"not all found: {named}{f' and {others:,} more' if others > 0 else ''}")


def print_metrics(report: wire.EvalReportV1) -> None:
    slices = [*report.by_lang, *report.by_type]
    rows = []
    for name, value in report.metrics.items():
        figures = [f"{part.metrics[name]:.4f}" if name in part.metrics else "–" for part in slices]
        rows.append([name, f"{value:.4f}", str(report.counted[name]), *figures])
    table(["metric", "all", "queries", *(part.name for part in slices)], rows)


# --- compare


@command(
    "compare",
    within=eval_command,
    example="kb eval compare before.json after.json\nkb eval compare before.json after.json --exit-code",
)
@click.argument("a", metavar="A.json", type=_RUN)
@click.argument("b", metavar="B.json", type=_RUN)
@option("--metric", help="By which queries are won and lost; by default nDCG at the k of the runs.")
@option("-n", "limit", type=click.IntRange(0), default=10, help="How many regressions are shown (10).")
@option("--improvements", is_flag=True, help="Show what got better too, as many.")
@option("--exit-code", is_flag=True, help="Exit with 1 when any metric is significantly worse.")
def eval_compare(a: Path, b: Path, metric: str | None, limit: int, improvements: bool, exit_code: bool) -> int:
    """Run B against run A: every metric with the interval of its difference, and the queries that lost, with both lists
    of hits.

    Intervals are of 95 %, by paired bootstrap; a difference whose interval holds 0 may be chance. Latencies are
    compared where both runs were made with --timings; compare only runs of the same machine so.
    """
    comparison = compare(files.read_run(a), files.read_run(b), metric=metric)
    for notice in comparison.notices:
        remark(f"note: {notice}")
    if not printed_as_json(comparison):
        _print_comparison(comparison, limit, improvements=improvements)
    return 1 if exit_code and any(difference.verdict == "worse" for difference in comparison.differences) else 0


def _print_comparison(comparison: wire.EvalComparisonV1, limit: int, *, improvements: bool) -> None:
    for name, (before, after) in comparison.changed.items():
        say(f"{name}: {_short(before)} → {_short(after)}")
    # Only the slices of the chosen metric: --json has all of them.
    sliced = [*comparison.by_lang, *comparison.by_type]
    of_metric = [one for one in sliced if one.metric.partition("[")[0] == comparison.metric]
    rows = [_difference_row(one) for one in (*comparison.differences, *of_metric)]
    table(["metric", "a", "b", "difference", "95 % interval", "verdict"], rows)
    say(f"{comparison.metric}: {comparison.wins:,} better, {comparison.losses:,} worse, {comparison.ties:,} the same")
    _print_changes(comparison.regressions, limit, "worse")
    if improvements:
        _print_changes(comparison.improvements, limit, "better")


def _difference_row(one: wire.EvalDifferenceV1) -> list[str]:
    figures = [f"{one.a:.4f}", f"{one.b:.4f}", f"{one.difference:+.4f}"]
    return [one.metric, *figures, f"{one.low:+.4f} to {one.high:+.4f}", one.verdict]


def _print_changes(changes: Sequence[wire.EvalChangeV1], limit: int, what: str) -> None:
    for change in changes[:limit]:
        click.echo()
        say(f"{shown(change.id)}: {change.a:.4f} → {change.b:.4f}  {shown(change.query)}")
        say(f"  expected: {', '.join(shown(thing.name) for thing in change.expected)}")
        for name, hits in (("a", change.hits_a), ("b", change.hits_b)):
            listed = ", ".join(f"{hit.rank}.{'*' if hit.grade else ''} {shown(hit.citation)}" for hit in hits[:5])
            say(f"  {name}: {listed or 'nothing'}")
    others = len(changes) - limit
    if others > 0 and limit:
        say(f"and {others:,} more that are {what}")


def _short(value: Any) -> str:
    text = "not set" if value is None else shown(str(value))
    return text if len(text) <= 60 else f"{text[:16]}…"


# --- report


@command("report", within=eval_command, example="kb eval report run.json\nkb eval report run.json --out report.html")
@click.argument("run", metavar="RUN.json", type=_RUN)
@option("--out", type=_RUN, metavar="FILE.html", help="By default beside the run, with the same name.")
def eval_report(run: Path, out: Path | None) -> int:
    """One HTML file of a run: charts, every query with its hits, and why what is missing was missed.

    It needs no network and no script. Misses are explained from the database, as long as it is the one that the run was
    made on.
    """
    report = files.read_run(run)
    target = out or run.with_suffix(".html")
    files.refuse_to_replace(target, "HTML page")
    misses = explain_misses(report, knowledge_base())
    if misses is None:
        hint = "Name its database with --db, or run it again."
        remark(f"note: The index is not the one of this run, so misses are not explained. {hint}")
    files.write_text(report_page(report, misses), target)
    return done("eval report", f"{target} was written.", target)


# --- suggest


@command(
    "suggest", within=eval_command, example="kb eval suggest --out golden.yaml\nkb eval suggest -n 50 --source notes"
)
@option("-n", "count", type=click.IntRange(1, 10_000), default=25, help="How many (25).")
@search_options(*FILTERS)
@option("--out", type=_RUN, metavar="FILE.yaml", help="Write them there; a file that exists is left alone.")
def eval_suggest(count: int, out: Path | None, **options: Any) -> int:
    """Candidate queries from the headings of your own documents, to begin a golden set with.

    Each comes with the document and the lines below its heading. They are candidates: write them as you would ask, and
    take out what nobody would.
    """
    kb = knowledge_base()
    suggestions = suggest(kb, kb.filters_of(SearchRequest.from_options(given(options))), count=count)
    if not suggestions and not wants_json():
        remark("There are no headings to make queries from. See what is there with: kb list docs")
        return 1
    if out is not None:
        if out.exists():
            hint = "Name another file, or delete it first."
            raise UsageError(f"{out} exists already, and may have been gone over.", hint=hint)
        files.write_text(as_yaml(suggestions), out)
    if printed_as_json(wire.EvalSuggestionsV1(suggestions=suggestions)):
        return 0
    if out is not None:
        say(f"{out} was written with {counted(len(suggestions), 'candidate')}. Go over them, then: kb eval run {out}")
    else:
        print_verbatim(as_yaml(suggestions))
    return 0


# --- tune


@command("tune", within=eval_command, example="kb eval tune golden.yaml\nkb eval tune golden.yaml --write")
@golden_options
@_SEARCHING
@option("--write", is_flag=True, help="Set what helps in the config file.")
def eval_tune(
    golden: Path, k: int, hits: int | None, ingest: bool, skip_unknown: bool, write: bool, **options: Any
) -> None:
    """Try other fusions, weights and column weights on a golden set, and say which help.

    The queries are dealt into five folds: what is best on four is judged on the fifth, in turn. Only what is
    significantly better so is recommended; often nothing is. It takes about forty runs of the set.
    """
    loaded = files.load_golden_set(golden)
    kb = ingested(golden, loaded) if ingest else knowledge_base()
    tuning = tune(kb, loaded, RunOptions(k, hits, given(options), skip_unknown=skip_unknown), tell=_tell)
    if write and tuning.settings:
        tuning.written = str(_write_settings(kb, tuning.settings))
    if not printed_as_json(tuning):
        _print_tuning(tuning)


def _tell(tried: int, of: int) -> None:
    if sys.stderr.isatty() and not is_quiet():
        click.echo(f"\rtried {tried} of about {of}", err=True, nl=tried == of)


def _write_settings(kb: KnowledgeBase, settings: dict[str, Any]) -> Path:
    path = kb.loaded.config_file or Path(places_given().get("config") or config_folder() / "config.toml").expanduser()
    set_values(path, settings)
    for key in settings:
        if kb.loaded.origins.get(key, "").startswith(("environment", "flag")):
            remark(f"note: {key} is also set by {kb.loaded.origins[key]}, which wins over the file.")
    return path


def _print_tuning(tuning: wire.EvalTuningV1) -> None:
    for trial in tuning.trials[:5]:
        ways = ", ".join(f"{name} = {value}" for name, value in trial.settings.items())
        say(f"{trial.value:.4f}  {ways or 'as it is set now'}")
    interval = f"{tuning.difference:+.4f}, 95 % interval {tuning.low:+.4f} to {tuning.high:+.4f}"
    say(f"{tuning.metric} as it is set now: {tuning.current:.4f}")
    say(f"{tuning.metric} on held-out queries, with what is best on the others: {tuning.held_out:.4f} ({interval})")
    if not tuning.helps:
        say("Nothing helps significantly: leave the settings as they are.")
        return
    say("This helps:")
    for name, value in tuning.settings.items():
        say(f"  {name} = {value!r}")
    say(f"{tuning.written} was written." if tuning.written else "To set it: the same again with --write")
