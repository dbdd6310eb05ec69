"""The commands kb index, kb migrate, kb backup, kb reset, kb doctor, kb schema, kb init and kb config show."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kebab._version import __version__
from kebab.config.loading import FILE_NAME, LOCAL_FOLDER, config_folder, database_address, database_path
from kebab.config.settings import SettingField, Settings, all_settings
from kebab.core.addresses import masked_address
from kebab.core.errors import ConfigError, KebabError, NotFound, UsageError, file_errors
from kebab.core.files import make_folder, open_file
from kebab.interfaces.cli.ingest import progress_of, progress_option
from kebab.interfaces.cli.options import (
    command,
    follow_up,
    group,
    is_confirmed,
    knowledge_base,
    loaded_settings,
    option,
    places_given,
)
from kebab.interfaces.cli.render import counted, done, has_colour, print_json, printed_as_json, remark, say, table
from kebab.wire import schemas, view, viewed
from kebab.wire.records import ConfigV1, SchemaV1, SettingV1, doctor_v1
from kebab.wire.reports import migration_report_v1

if TYPE_CHECKING:
    from kebab.upkeep.migration import MigrationReport


@command(
    "index",
    example="kb index --rebuild-fts\nkb index --rebuild-vectors   # after a change of embedding.model\n"
    "kb index --optimize",
)
@option("--rebuild-fts", is_flag=True, help="Make all terms and the text index anew from the stored chunks.")
@option("--rebuild-vectors", is_flag=True, help="Drop all vectors and make them anew with the model of the settings.")
@option("--optimize", is_flag=True, help="Merge the text index, drop unused vectors, give back free space.")
def index_command(rebuild_fts: bool, rebuild_vectors: bool, optimize: bool) -> int:
    """Rebuild or optimize what searches use. Stopping with Ctrl-C is safe; kb ingest goes on with the vectors."""
    if not (rebuild_fts or rebuild_vectors or optimize):
        hint = "Choose --rebuild-fts, --rebuild-vectors, --optimize or several."
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
    refusal = "kb reset deletes the database, so it asks first, and there is no terminal to ask on."
    if not is_confirmed(yes, f"Delete {kb.address}?", refusal):
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
            progress.end("done")
    except KeyboardInterrupt:
        progress.end("interrupted")
        _print_migration(migration.report, interrupted=True)
        return 130
    except KebabError:
        progress.end("failed")
        raise
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
        remark("Nothing has been ingested yet. Begin with: kb ingest FOLDER")
    else:
        # The field is called "sqlite" in the wire object, but in a cluster it is the engine.
        renamed = {"sqlite": "engine"} if "://" in stats.path else {}
        for key, value in stats._asdict().items():
            if value is not None:
                shown = (", ".join(value) or "none") if isinstance(value, tuple) else value
                click.echo(f"{renamed.get(key, key)}: {shown}")
    click.echo(f"wire schemas: {', '.join(names)}")


# --- configuration


def commented_config() -> str:
    """A config file that lists every setting with its default, commented out."""
    lines = [
        "# Kebab settings. Every line is optional; remove the # to change a value.",
        "# Flags win over KEBAB_* variables, those over this file.",
    ]
    section = ""
    for item in all_settings():
        if item.section != section:
            section = item.section
            lines += ["", f"[{section}]"]
        value = json.dumps(item.default, ensure_ascii=False)  # JSON of these values is valid TOML
        lines += [f"# {item.doc} ({item.allowed})", f"# {item.name} = {value}"]
    return "\n".join(lines) + "\n"


@command("init", example="kb init\nkb init --here        # an index of its own for this folder")
@option("--here", is_flag=True, help="Keep the index of this folder in ./.kebab.")
@option("--force", is_flag=True, help="Overwrite an existing config file.")
def init_command(here: bool, force: bool) -> int:
    """Write a commented config file and make the data folder. Never required: everything has a default."""
    made: list[Path] = []
    notes: list[str] = []
    if here:
        folder = Path.cwd() / LOCAL_FOLDER
        _make(folder)
        with open_file(folder / ".gitignore", "w") as file:
            file.write("*\n")  # keeps the index out of git
        made.append(folder / FILE_NAME)
        notes.append(f"This folder has its own index now: {folder / FILE_NAME}.")
    else:
        path = Path(places_given().get("config") or config_folder() / "config.toml").expanduser()
        if path.exists() and not force:
            notes.append(f"{path} exists and was kept; --force overwrites it.")
        else:
            _make(path.parent)
            failing = file_errors(path, "cannot be written", "Name another with --config.", ConfigError)
            with failing, open_file(path, "w") as file:
                file.write(commented_config())
            notes.append(f"{path} was written.")
        made.append(path)
        database, _ = database_path(Settings())
        _make(database.parent)
    return done("init", " ".join([*notes, "Next: kb ingest FOLDER"]), *made)


def _make(folder: Path) -> None:
    with file_errors(folder, "cannot be made", "Check its permissions.", ConfigError):
        make_folder(folder)


@group("config", example="kb config show")
def config_command() -> None:
    """Settings and where their values come from."""


@command("show", within=config_command, example="kb config show")
def config_show() -> None:
    """Every setting, its value, and where that came from."""
    loaded = loaded_settings()
    file = str(loaded.config_file) if loaded.config_file else None
    settings = [
        view(
            SettingV1,
            item,
            value=_shown_value(item, loaded.settings),
            origin=loaded.origins.get(item.key, "default"),
        )
        for item in all_settings()
    ]
    shown = ConfigV1(config_file=file, database=database_address(loaded.settings), settings=settings)
    if not printed_as_json(shown):
        click.echo(f"config file: {file or 'none'}")
        click.echo(f"database: {shown.database}")
        table(["setting", "value", "from"], [[one.key, repr(one.value), one.origin] for one in settings])


def _shown_value(item: SettingField, settings: Settings) -> Any:
    """The value as `kb config show` prints it: secrets, and passwords in addresses, are hidden."""
    value = getattr(getattr(settings, item.section), item.name)
    if item.secret and value:
        return "(set)"
    return masked_address(value) if isinstance(value, str) else value
