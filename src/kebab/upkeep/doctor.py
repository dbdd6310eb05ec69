"""The checks of `kb doctor`. Each check has a message, and a hint if something is wrong."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from kebab._version import __version__
from kebab.config.loading import LOCAL_FOLDER, cache_folder, config_folder, data_folder
from kebab.core.addresses import without_password
from kebab.core.errors import KebabError, ModelError
from kebab.core.libraries import Library
from kebab.core.records import NOT_CHECKED, Check, SourceRecord, incomplete_migration_checks

if TYPE_CHECKING:
    from kebab.core.store_ports import Store
    from kebab.session import Session

_LITTLE_SPACE = 200_000_000
_GO_ON = "The rest is found by words only. Go on with: kb ingest"
"""The hint for missing vectors. These do not fail the check, because a run may be interrupted at any time."""


def health(session: Session) -> list[Check]:
    """Returns all checks. If one of the store, disk or privacy fails, skips most of the others."""
    store, settings = session.store, session.settings
    python = ".".join(map(str, sys.version_info[:3]))
    checks = [Check("program", True, f"Kebab {__version__}, Python {python}, {store.engine}")]
    checks += [_disk_check(store.file)] if store.file else []
    checks += [*store.health(), _privacy_check(_own_places(store))]
    if not all(check.ok for check in checks):
        with suppress(KebabError), store.reading() as reading:  # a failed check already gives the reason
            checks += incomplete_migration_checks(reading, store.address, ok=True)
        return checks
    with store.reading() as reading:
        checks += _stored_password_checks(reading.libraries().libraries() if reading else ())
        migration = incomplete_migration_checks(reading, store.address, ok=True)
        sources = reading.catalog.sources() if reading else []
    checks += migration or [_vector_check(session)]  # the rest of the migration brings the missing vectors
    if settings.embedding.model.strip() == "bundled":
        checks.append(model_check(*session.bundled_model_faults()))
    return [*checks, *(_source_check(source, source.root) for source in sources if source.root is not None)]


def _own_places(store: Store) -> set[Path]:
    """Returns the files and folders that Kebab creates, without a folder that the user chose with --db."""
    folders = {config_folder(), data_folder(), cache_folder()}
    if store.file is not None and store.file.parent.name == LOCAL_FOLDER:
        folders.add(store.file.parent)
    return {path.resolve() for path in (*folders, config_folder() / "config.toml", *store.own_files())}


def _vector_check(session: Session) -> Check:
    try:
        models = session.models
    except ModelError as error:
        return Check("vectors", False, error.message, error.hint)
    if models is None:
        return Check("vectors", True, "turned off (embedding.model is none): search is lexical")
    names = ", ".join(embedder.name for embedder in models.embedders)
    with session.reading() as reading:
        if reading is None:
            return Check("vectors", True, f"none yet; {names}")
        coverage = reading.vector_coverage(models)
    if coverage.other_models and not coverage.any:
        message = f"made by {', '.join(coverage.other_models)}; embedding.model stands for {names}"
        return Check("vectors", False, message, "kb index --rebuild-vectors")
    if coverage.missing:
        message = f"{coverage.embedded:,} of {coverage.chunks:,} chunks have a vector of {names}"
    elif coverage.chunks is not None:
        message = "not everything has been embedded yet that the settings ask for"
    else:
        return Check("vectors", True, f"every chunk that the model takes has a vector of {names}")
    return Check("vectors", True, message, _GO_ON)


def _disk_check(path: Path) -> Check:
    folder = next((parent for parent in path.absolute().parents if parent.exists()), Path("/"))
    if hasattr(os, "statvfs") and os.statvfs(folder).f_flag & os.ST_RDONLY:
        return Check("disk", True, f"{NOT_CHECKED}: it is read-only")
    free = shutil.disk_usage(folder).free
    return Check.judged(
        "disk", free >= _LITTLE_SPACE, f"{free / 1e9:.1f} GB free", "Free some space: ingest needs room for its index."
    )


def _privacy_check(paths: Iterable[Path]) -> Check:
    """Checks that other users of this machine cannot open the files. The hint is a command that prevents it."""
    may_change = [path for path in sorted(paths) if os.name == "posix" and os.access(path, os.W_OK)]
    too_open = [path for path in may_change if path.stat().st_mode & 0o077]
    if not too_open:
        return Check("privacy", True, "only you can open what Kebab keeps here")
    names = " ".join(shlex.quote(str(path)) for path in too_open)
    return Check("privacy", True, "others on this machine may open what Kebab keeps here", f"chmod go-rwx {names}")


def _stored_password_checks(libraries: Iterable[Library]) -> list[Check]:
    """Returns a check for each library whose stored address contains a password, as older versions stored it."""
    found = [library.library_id for library in libraries if without_password(library.origin) != library.origin]
    message = "the address that {} was added from is stored with its password; the next refresh stores it without"
    return [Check("password", True, message.format(name), f"kb lib refresh {name}") for name in found]


def model_check(fault: ModelError | None, damaged: Sequence[Path]) -> Check:
    """Checks the bundled models. `fault`: error of the installed weights. `damaged`: changed models in the cache."""
    if fault is not None:
        return Check("models", False, fault.message, fault.hint)
    names = ", ".join(map(str, damaged))
    return Check.judged(
        "models",
        not damaged,
        f"changed since they were made: {names}" if damaged else "as they were published",
        f"Delete {names}: what is needed is made anew.",
    )


def _source_check(source: SourceRecord, root: str) -> Check:
    if Path(root).exists():
        return Check(f"source {source.name}", True, f"{source.documents} documents from {root}")
    hint = f"Mount its disk or restore the folder; or forget what came from it with: kb source remove {source.name}"
    return Check(f"source {source.name}", False, f"{root} is not there", hint)
