"""The commands kb index, kb migrate, kb backup, kb reset, kb doctor and kb schema."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from kebab._version import __version__
from kebab.core.errors import NotFound, UsageError
from kebab.core.notices import Says
from kebab.interfaces.cli.ingest import progress_of, progress_option
from kebab.interfaces.cli.options import command, is_confirmed, knowledge_base, option
from kebab.interfaces.cli.render import counted, done, follow_up, has_colour, print_json, printed_as_json, remark, say
from kebab.wire import schemas, viewed
from kebab.wire.records import SchemaV1, doctor_v1
from kebab.wire.reports import migration_report_v1

if TYPE_CHECKING:
    from kebab.upkeep.migration import MigrationReport


@command(
    "index",
    example="kb index --rebuild-fts\nkb index --rebuild-vectors   # after a change of embedding.model\n"
    "kb index --upgrade           # after a new version of Kebab\nkb index --optimize",
)
@option("--rebuild-fts", is_flag=True, help="Make all terms and the text index anew from the stored chunks.")
@option("--rebuild-vectors", is_flag=True, help="Drop all vectors and make them anew with the model of the settings.")
@option("--upgrade", is_flag=True, help="Parse again what an older version parsed; kb ingest does so, too.")
@option("--optimize", is_flag=True, help="Merge the text index, drop unused vectors, give back free space.")
def index_command(rebuild_fts: bool, rebuild_vectors: bool, upgrade: bool, optimize: bool) -> int:
    """Rebuild or optimize what searches use. Stopping with Ctrl-C is safe; kb ingest goes on with the vectors."""
    if not (rebuild_fts or rebuild_vectors or upgrade or optimize):
        hint = "Choose --rebuild-fts, --rebuild-vectors, --upgrade, --optimize or several."
        raise UsageError("There is nothing to do.", hint=hint)
    kb = knowledge_base()
    sentences = []
    if rebuild_fts:
        sentences.append(f"The text index was rebuilt from {kb.rebuild_fts()} chunks.")
    if rebuild_vectors:
        with progress_of("auto") as progress:
            report = kb.rebuild_vectors(progress)
        off = kb.session.models is None
        made = f"{counted(report.vectors_made, 'vector')} made in {report.embedding_seconds:.1f} s."
        sentences.append("All vectors were dropped, and none made: embedding.model is none." if off else made)
    if upgrade:
        with progress_of("auto") as progress:
            report = kb.upgrade(progress)
        left = report.scanned - report.updated
        sentences.append(
            f"{counted(report.updated, 'document')} parsed again, {counted(report.vectors_made, 'vector')} made"
            + (f"; {left} left as they were, because their files are gone or cannot be read." if left else ".")
        )
    if optimize:
        before = kb.size()
        kb.optimize()
        sizes = f": {before / 1e6:.1f} MB before, {kb.size() / 1e6:.1f} MB now" if before else ""
        sentences.append(f"The database was optimized{sizes}.")
    return done("index", " ".join(sentences), kb.address)


@command("backup", example="kb backup ~/kebab-backup.sqlite")
@click.argument("file", type=click.Path(path_type=Path))
@option("--force", is_flag=True, help="Overwrite FILE.")
def backup_command(file: Path, force: bool) -> int:
    """Write a consistent copy of the database to FILE, while others read and write it."""
    size = knowledge_base().backup(file.expanduser(), force=force)
    return done("backup", f"{size / 1e6:.1f} MB written to {file}.", file)


@command("reset", example="kb reset --yes")
@option("--yes", is_flag=True, help="Do not ask.")
def reset_command(yes: bool) -> int:
    """Delete the database. Your files are not touched; the config stays."""
    kb = knowledge_base()
    if not is_confirmed(yes, f"Delete {kb.address}?", "kb reset deletes the database"):
        say("Nothing was deleted.")
        return 1
    message = f"{kb.address} was deleted." if kb.reset() else f"There was no database at {kb.address}."
    return done("reset", message, kb.address)


@command(
    "migrate",
    example="kb migrate --to qdrant://127.0.0.1:6333/notes\n"
    "kb migrate --from qdrant://127.0.0.1:6333/notes --to notes.sqlite",
)
@option(
    "--from",
    "origin",
    metavar="FILE|URL",
    help="The database to carry over (default: the one that --db and settings name).",
)
@option(
    "--to",
    "target",
    metavar="FILE|URL",
    required=True,
    help="Where nothing is yet: a file, or qdrant://HOST:PORT/NAME.",
)
@progress_option
def migrate_command(origin: str | None, target: str, progress_style: str) -> int:
    """Carry a whole knowledge base from a file to a Qdrant cluster, or back: documents, tags, notes, libraries and
    vectors.

    Nothing is read or embedded again, and the old place stays as it is. At the end both sides are counted, and
    documents compared; a difference is an error. Stopping with Ctrl-C is safe: the same command goes on.
    """
    progress = progress_of(progress_style)
    migration = knowledge_base(origin).migration_to(knowledge_base(target), progress)
    try:
        with progress:
            migration.run()
    except KeyboardInterrupt:
        _print_migration(migration.report, interrupted=True)
        return 130
    _print_migration(migration.report)
    return 0


def _print_migration(report: MigrationReport, *, interrupted: bool = False) -> None:
    if printed_as_json(migration_report_v1(report, interrupted=interrupted)):
        return
    went_on = ", going on with an earlier run" if report.resumed else ""
    carried = f"{counted(report.documents, 'document')} and {counted(report.vectors, 'vector')} carried over"
    if interrupted or (counts := report.counts) is None:
        say(f"{carried}{went_on}; interrupted, run it again to go on")
        return
    say(f"{report.target}: {carried} in {report.seconds:.1f} s{went_on}")
    documents, chunks = counted(counts.documents, "document"), counted(counts.chunks, "chunk")
    say(f"  {counted(counts.sources, 'source')}, {documents}, {chunks}")
    if counts.libraries:
        say(f"  {counted(counts.libraries, 'library', 'libraries')}, {counted(counts.snippets, 'snippet')}")
    for space in counts.spaces:
        say(f"  {counted(space.vectors, 'vector')} of {space.fingerprint}")
    say(f"  both sides have the same; {counted(report.compared, 'document')} compared word by word")


@command("doctor", example="kb doctor")
def doctor_command() -> int:
    """Check program, disk, database, text index and sources; exit with 3 when something is wrong, not for what is
    merely unfinished.
    """
    checks = [check._replace(hint=check.hint and follow_up(check.hint)) for check in knowledge_base().health()]
    if not printed_as_json(doctor_v1(checks)):
        for check in checks:
            mark, colour = ("FAIL", "red") if not check.ok else ("note", "yellow") if check.hint else ("ok  ", "green")
            click.echo(f"{click.style(mark, fg=colour) if has_colour() else mark}  {check.name}: {check.message}")
            if check.hint:
                click.echo(f"      {check.hint}")
    return 0 if all(check.ok for check in checks) else 3


@command("schema", example="kb schema\nkb schema search_response")
@click.argument("name", required=False)
def schema_command(name: str | None) -> None:
    """What the index holds and which wire schemas there are; with NAME, that JSON Schema."""
    if name is not None:
        known = name.removesuffix(".v1")
        if known not in schemas.names():
            raise NotFound(f"There is no wire schema {name}.", hint=f"Schemas: {', '.join(schemas.names())}.")
        print_json(schemas.schema(known))
        return
    names = [f"{each}.v1" for each in schemas.names()]
    stats = knowledge_base().stats()
    if printed_as_json(SchemaV1(version=__version__, schemas=names, stats=viewed(stats))):
        return
    if stats is None:
        remark(Says.EMPTY_CORPUS.sentence)
    else:
        # The field is called "sqlite" in the wire object, but in a cluster it is the engine.
        renamed = {"sqlite": "engine"} if "://" in stats.path else {}
        for key, value in stats._asdict().items():
            if value is not None:
                shown = (", ".join(value) or "none") if isinstance(value, tuple) else value
                click.echo(f"{renamed.get(key, key)}: {shown}")
    click.echo(f"wire schemas: {', '.join(names)}")
