"""The checks of `kb doctor`: each one says what is so, and what to do when it is wrong."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from kebab._version import __version__
from kebab.core.addresses import without_password
from kebab.core.errors import ModelError
from kebab.core.libraries import Library
from kebab.core.ports import EmbeddingModels, VectorCoverage
from kebab.core.records import NOT_CHECKED, Check, SourceRecord

_LITTLE_SPACE = 200_000_000
_GO_ON = "The rest is found by words only. Go on with: kb ingest"
"""Unfinished is not unhealthy: a run may stop anywhere."""


def program_check(engine: str) -> Check:
    python = ".".join(map(str, sys.version_info[:3]))
    return Check("program", True, f"Kebab {__version__}, Python {python}, {engine}")


def disk_check(path: Path) -> Check:
    folder = next((parent for parent in path.absolute().parents if parent.exists()), Path("/"))
    if hasattr(os, "statvfs") and os.statvfs(folder).f_flag & os.ST_RDONLY:
        return Check("disk", True, f"{NOT_CHECKED}: it is read-only")
    free = shutil.disk_usage(folder).free
    return Check.judged(
        "disk", free >= _LITTLE_SPACE, f"{free / 1e9:.1f} GB free", "Free some space: ingest needs room for its index."
    )


def privacy_check(paths: Iterable[Path]) -> Check:
    """Whether others on this machine can open what Kebab made here; how to change that, where it can be changed."""
    may_change = [path for path in sorted(paths) if os.name == "posix" and os.access(path, os.W_OK)]
    too_open = [path for path in may_change if path.stat().st_mode & 0o077]
    if not too_open:
        return Check("privacy", True, "only you can open what Kebab keeps here")
    names = " ".join(shlex.quote(str(path)) for path in too_open)
    return Check("privacy", True, "others on this machine may open what Kebab keeps here", f"chmod go-rwx {names}")


def stored_password_checks(libraries: Iterable[Library]) -> list[Check]:
    """None without such a library: only an older Kebab stored passwords."""
    found = [library.library_id for library in libraries if without_password(library.origin) != library.origin]
    message = "the address that {} was added from is stored with its password; the next refresh stores it without"
    return [Check("password", True, message.format(name), f"kb lib refresh {name}") for name in found]


def vector_check(coverage: VectorCoverage | None, models: EmbeddingModels | None) -> Check:
    """`coverage` is None when there is nothing to cover."""
    if models is None:
        return Check("vectors", True, "turned off (embedding.model is none): search is lexical")
    names = ", ".join(embedder.name for embedder in models.embedders)
    if coverage is None:
        return Check("vectors", True, f"none yet; {names}")
    if coverage.other_models and not coverage.any:
        made = ", ".join(coverage.other_models)
        return Check(
            "vectors", False, f"made by {made}; embedding.model stands for {names}", "kb index --rebuild-vectors"
        )
    if coverage.chunks is not None and not coverage.missing:
        return Check("vectors", True, "not everything has been embedded yet that the settings ask for", _GO_ON)
    if not coverage.missing:
        return Check("vectors", True, f"every chunk that the model takes has a vector of {names}")
    return Check(
        "vectors", True, f"{coverage.embedded:,} of {coverage.chunks:,} chunks have a vector of {names}", _GO_ON
    )


def no_model_check(error: ModelError) -> Check:
    return Check("vectors", False, error.message, error.hint)


def model_check(fault: ModelError | None, damaged: Sequence[Path]) -> Check:
    """`fault`: of the weights as they were installed; `damaged`: models in the cache that are not as they were made."""
    if fault is not None:
        return Check("models", False, fault.message, fault.hint)
    names = ", ".join(map(str, damaged))
    return Check.judged(
        "models",
        not damaged,
        f"changed since they were made: {names}" if damaged else "as they were published",
        f"Delete {names}: what is needed is made anew.",
    )


def source_checks(sources: Sequence[SourceRecord]) -> list[Check]:
    return [_source_check(source, source.root) for source in sources if source.root is not None]


def _source_check(source: SourceRecord, root: str) -> Check:
    if Path(root).exists():
        return Check(f"source {source.name}", True, f"{source.documents} documents from {root}")
    hint = f"Mount its disk or restore the folder; or forget what came from it with: kb source remove {source.name}"
    return Check(f"source {source.name}", False, f"{root} is not there", hint)
