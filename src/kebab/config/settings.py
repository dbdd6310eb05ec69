"""Every setting: its type, default, bounds and one line of documentation.

Plain dataclasses, checked by `loading`, so that a search without a config file pays for no validation library.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple


def _setting(
    default: Any,
    doc: str,
    *,
    least: float | None = None,
    most: float | None = None,
    choices: tuple[str, ...] = (),
    alias: str | None = None,
    changes_index: bool = False,
) -> Any:
    """`changes_index`: documents indexed under another value are indexed again."""
    return field(
        default=default,
        metadata={
            "doc": doc,
            "least": least,
            "most": most,
            "choices": choices,
            "alias": alias,
            "changes_index": changes_index,
        },
    )


@dataclass(frozen=True)
class StoreSettings:
    path: str = _setting("", "The database file; empty means the nearest .kebab folder, else the user's data folder.")
    busy_timeout_ms: int = _setting(5000, "How long a statement waits for another process's transaction.", least=0, most=600_000)
    lock_wait_s: float = _setting(10.0, "How long a second writer waits before it says who is writing.", least=0, most=3600)


@dataclass(frozen=True)
class IngestSettings:
    max_file_mb: float = _setting(64.0, "Larger files are skipped and counted.", least=0.001, most=4096)
    hidden: bool = _setting(False, "Also read files and folders whose name begins with a dot.")
    follow_links: bool = _setting(False, "Follow symbolic links found while walking; loops are noticed.")
    ignore_files: bool = _setting(True, "Obey .gitignore and .kebabignore.")


@dataclass(frozen=True)
class ChunkingSettings:
    target_tokens: int = _setting(
        384,
        "A chunk is closed when the next block would make it longer than this.",
        least=32,
        most=480,
        changes_index=True,
    )
    max_tokens: int = _setting(
        448,
        "No chunk is longer than this with its title and headings; the default model takes 512.",
        least=64,
        most=8192,
        changes_index=True,
    )
    min_tokens: int = _setting(64, "A section shorter than this joins its neighbour.", least=0, most=480, changes_index=True)
    overlap_tokens: int = _setting(
        0,
        "When a long block has to be split, each part repeats about this much of the one before.",
        least=0,
        most=200,
        changes_index=True,
    )


@dataclass(frozen=True)
class AnalysisSettings:
    korean: str = _setting("bigrams", "How Korean is cut into terms; morphemes needs the extra `korean`.", choices=("bigrams", "morphemes"))


@dataclass(frozen=True)
class SearchSettings:
    default_k: int = _setting(10, "How many hits a search returns.", least=1, most=1000, alias="default_top")
    snippet_chars: int = _setting(220, "Longest snippet, in characters.", least=16, most=4000)
    match: str = _setting("auto", "all words, any of them, or all first and any when that gives too few.", choices=("auto", "all", "any"))
    title_weight: float = _setting(8.0, "Weight of the document title in lexical ranking.", least=0, most=100)
    heading_weight: float = _setting(4.0, "Weight of the headings above a passage in lexical ranking.", least=0, most=100)
    text_weight: float = _setting(1.0, "Weight of the passage itself in lexical ranking.", least=0, most=100)
    cjk_weight: float = _setting(1.0, "Weight of Chinese, Japanese and Korean terms in lexical ranking.", least=0, most=100)


@dataclass(frozen=True)
class Settings:
    store: StoreSettings = field(default_factory=StoreSettings)
    ingest: IngestSettings = field(default_factory=IngestSettings)
    chunking: ChunkingSettings = field(default_factory=ChunkingSettings)
    analysis: AnalysisSettings = field(default_factory=AnalysisSettings)
    search: SearchSettings = field(default_factory=SearchSettings)


class SettingField(NamedTuple):
    """One setting as the loader, `config show` and the reference see it."""

    section: str
    name: str
    type: type
    default: Any
    doc: str
    least: float | None
    most: float | None
    choices: tuple[str, ...]
    alias: str | None
    changes_index: bool

    @property
    def key(self) -> str:
        return f"{self.section}.{self.name}"

    @property
    def variable(self) -> str:
        return f"KEBAB_{self.section}_{self.name}".upper()

    @property
    def allowed(self) -> str:
        """The allowed values in words."""
        if self.choices:
            return " | ".join(f'"{choice}"' for choice in self.choices)
        if self.type is bool:
            return "true | false"
        if self.least is not None:
            return f"{self.least:g} to {self.most:g}" if self.most is not None else f"at least {self.least:g}"
        return "text"


def all_settings() -> list[SettingField]:
    found = []
    defaults = Settings()
    for section in fields(Settings):
        default = getattr(defaults, section.name)
        for item in fields(default):
            value = getattr(default, item.name)
            found.append(SettingField(section.name, item.name, type(value), value, **item.metadata))
    return found
