"""kb index, kb backup, kb reset"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from kebab.core.errors import UsageError
from kebab.interfaces.cli.ingest_progress import progress_of
from kebab.interfaces.cli.options import command, knowledge_base, wants_json
from kebab.interfaces.cli.render import counted, done, say


@command(
    "index",
    example="kb index --rebuild-fts\nkb index --rebuild-vectors   # after a change of embedding.model\nkb index --optimize",
)
@click.option("--rebuild-fts", is_flag=True, help="Make all terms and the text index anew from the stored chunks.")
@click.option(
    "--rebuild-vectors", is_flag=True, help="Drop all vectors and make them anew with the model of the settings."
)
@click.option("--optimize", is_flag=True, help="Merge the text index, drop unused vectors, give back free space.")
def index_command(rebuild_fts: bool, rebuild_vectors: bool, optimize: bool) -> int:
    """Rebuild or optimize what searches use. Stopping with Ctrl-C is safe; kb ingest goes on with the vectors."""
    if not (rebuild_fts or rebuild_vectors or optimize):
        raise UsageError(
            "There is nothing to do.", hint="Choose --rebuild-fts, --rebuild-vectors, --optimize or several."
        )
    kb = knowledge_base()
    sentences = []
    if rebuild_fts:
        sentences.append(f"The text index was rebuilt from {kb.rebuild_fts()} chunks.")
    if rebuild_vectors:
        with progress_of("auto") as progress:
            report = kb.rebuild_vectors(progress)
        off = kb.embedding_models() is None
        made = f"{counted(report.vectors_made, 'vector')} made in {report.embedding_seconds:.1f} s."
        sentences.append("All vectors were dropped, and none made: embedding.model is none." if off else made)
    if optimize:
        before = kb.size()
        kb.optimize()
        sizes = f": {before / 1e6:.1f} MB before, {kb.size() / 1e6:.1f} MB now" if before else ""
        sentences.append(f"The database was optimized{sizes}.")
    return done("index", " ".join(sentences), kb.address)


@command("backup", example="kb backup ~/kebab-backup.sqlite")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Overwrite FILE.")
def backup_command(file: Path, force: bool) -> int:
    """Write a consistent copy of the database to FILE, while others read and write it."""
    size = knowledge_base().backup(file.expanduser(), force=force)
    return done("backup", f"{size / 1e6:.1f} MB written to {file}.", file)


@command("reset", example="kb reset --yes")
@click.option("--yes", is_flag=True, help="Do not ask.")
def reset_command(yes: bool) -> int:
    """Delete the database. Your files are not touched; the config stays."""
    kb = knowledge_base()
    if not yes:
        if wants_json() or not sys.stdin.isatty():
            raise UsageError(
                "kb reset deletes the database, and there is nobody to ask whether it may.", hint="Say so with --yes."
            )
        if not click.confirm(f"Delete {kb.address}?"):
            say("Nothing was deleted.")
            return 1
    return done(
        "reset", f"{kb.address} was deleted." if kb.reset() else f"There was no database at {kb.address}.", kb.address
    )
