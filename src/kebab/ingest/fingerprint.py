"""What tells whether a file has to be indexed again although its bytes are the same."""

from __future__ import annotations

import json
from hashlib import sha256

from kebab.config.settings import Settings, all_settings


class Fingerprints:
    """One for each parser; it changes exactly when the same bytes would give other chunks."""

    def __init__(self, settings: Settings, chunker_version: str) -> None:
        self._settings = settings
        self._chunker_version = chunker_version
        self._known: dict[str, str] = {}

    def of(self, parser_version: str) -> str:
        if parser_version not in self._known:
            shaping = {
                item.key: getattr(getattr(self._settings, item.section), item.name)
                for item in all_settings()
                if item.changes_index
            }
            parts = json.dumps([parser_version, self._chunker_version, shaping], sort_keys=True)
            self._known[parser_version] = sha256(parts.encode()).hexdigest()[:12]
        return self._known[parser_version]
