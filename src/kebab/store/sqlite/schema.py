"""Finds and repairs differences between the schema of a file and the schema that the migrations create."""

from __future__ import annotations

from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import apsw

from kebab.core.errors import SchemaAltered
from kebab.store.sqlite import migrations
from kebab.store.sqlite.filters import TEXT_INDEXES

_MOST_NAMED = 5
_SHADOW_TABLES = tuple(f"{index}_" for index in TEXT_INDEXES)
"""Prefixes of tables that FTS5 creates itself, so their definitions depend on the version of SQLite."""


class SchemaObject(NamedTuple):
    type: str
    """table, index, trigger or view"""
    name: str
    table: str
    """The table of an index or trigger; for a table or view, its own name."""
    sql: str

    @property
    def holds_data(self) -> bool:
        """Whether this is a table with data. `kb index --rebuild-fts` restores all other objects."""
        return self.type == "table" and self.name not in TEXT_INDEXES


class Difference(NamedTuple):
    made: SchemaObject | None
    """The object as the migrations create it, or None if another program added it."""
    found: SchemaObject | None
    """The object in the file, or None if it is missing."""
    words: str

    @property
    def is_repairable(self) -> bool:
        return not any(one is not None and one.holds_data for one in (self.made, self.found))


def digest(connection: apsw.Connection) -> str:
    objects = repr(_objects(connection))
    return sha256(objects.encode()).hexdigest()


def refuse_altered(connection: apsw.Connection, path: Path, *, mending: bool = False) -> None:
    """Raises SchemaAltered if the schema differs. `mending` allows what a rebuild of the text index repairs."""
    if digest(connection) == migrations.DIGEST:
        return
    found = [difference for difference in differences(connection) if not (mending and difference.is_repairable)]
    if not found:
        return
    named = "; ".join(difference.words for difference in found[:_MOST_NAMED])
    more = f"; and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
    if all(difference.is_repairable for difference in found):
        hint = "Put it in order with: kb index --rebuild-fts"
    else:
        hint = "Undo the change with the tool that made it, restore a backup, or: kb reset and ingest again"
    raise SchemaAltered(f"Another program altered the schema of {path}: {named}{more}.", hint=hint, path=str(path))


def refuse_altered_file(path: Path) -> None:
    """Raises SchemaAltered if the schema of the file differs. Called after a failed statement, to explain it."""
    try:
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    except apsw.Error:
        return
    with closing(connection):
        refuse_altered(connection, path)


def differences(connection: apsw.Connection) -> list[Difference]:
    """Returns the differences from the schema of the file's version, except tables of other programs."""
    with closing(apsw.Connection(":memory:")) as fresh:
        version = connection.pragma("user_version")
        for step, names in migrations.MIGRATIONS:
            for name in names if step <= version else ():
                fresh.execute(migrations.statements(name)).fetchall()
        expected = {(one.type, one.name): one for one in _objects(fresh)}
        found = {(one.type, one.name): one for one in _objects(connection)}
        tables = {one.table for one in expected.values()}
        return [
            Difference(made, other, _words(made, other, fresh, connection))
            for made, other in ((expected.get(key), found.get(key)) for key in sorted(expected.keys() | found.keys()))
            if made != other and (made or (other and other.table in tables))
        ]


def restore(connection: apsw.Connection) -> None:
    """Recreates indexes, triggers and views as the migrations do, and drops added ones. Tables stay unchanged."""
    for made, found, _ in differences(connection):
        if (made or found).type == "table":  # type: ignore[union-attr]  # one of them is not None
            continue
        if found:
            connection.execute(f'DROP {found.type} "{found.name}"')
        if made:
            connection.execute(made.sql)


def _objects(connection: apsw.Connection) -> list[SchemaObject]:
    rows = connection.execute(
        "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY type, name"
    )
    return [SchemaObject(*row) for row in rows if not row[1].startswith(("sqlite_", *_SHADOW_TABLES))]


def _words(
    made: SchemaObject | None, found: SchemaObject | None, fresh: apsw.Connection, connection: apsw.Connection
) -> str:
    if made is None:
        assert found is not None
        return f"{found.type} {found.name} was added to {found.table}"
    if found is None:
        return f"{made.type} {made.name} is missing"
    before, now = _columns(fresh, made.name), _columns(connection, made.name)
    changes = [f"{name} is missing" for name in before if name not in now] + [
        f"{name} was added" for name in now if name not in before
    ]
    return f"{made.type} {made.name} was changed" + (f" (column {', column '.join(changes)})" if changes else "")


def _columns(connection: apsw.Connection, table: str) -> list[str]:
    return [name for (name,) in connection.execute("SELECT name FROM pragma_table_info(?)", (table,))]
