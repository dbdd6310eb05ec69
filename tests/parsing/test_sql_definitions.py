"""Definitions of SQL scripts in several dialects, with their lines."""

from __future__ import annotations

import pytest

from kebab.core.text import LineTable
from kebab.parsing.code import CodeParser

POSTGRES = """\
CREATE TABLE IF NOT EXISTS "app"."users" (id INT, note TEXT DEFAULT 'a;b');
CREATE UNLOGGED TABLE t3 AS SELECT 1;
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS i1 ON t3 (id);
CREATE INDEX ON t3 (id);

CREATE OR REPLACE VIEW v1 AS
SELECT CASE WHEN a THEN 1 ELSE 2 END FROM t3;

-- Doubles.
CREATE OR REPLACE FUNCTION f1(a INT) RETURNS INT AS $body$
BEGIN
  RETURN a; -- $$ CREATE TABLE no (
END;
$body$ LANGUAGE plpgsql;

CREATE PROCEDURE app.p1(a INT)
LANGUAGE SQL
BEGIN ATOMIC
  INSERT INTO t3 VALUES (a);
  DELETE FROM t3;
END;

CREATE TRIGGER tr1 BEFORE INSERT ON t3 FOR EACH ROW EXECUTE FUNCTION f1();
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE EXTENSION pgcrypto WITH SCHEMA public;
COPY public.t3 (id) FROM stdin;
it's
CREATE TABLE no (
\\.

CREATE MATERIALIZED VIEW v2 AS SELECT 1;
SELECT 'CREATE TABLE no (x INT);';
"""

SQLITE = """\
BEGIN;
CREATE VIRTUAL TABLE ft USING fts5(a);
CREATE TRIGGER t_ai AFTER INSERT ON t
BEGIN
  INSERT INTO log VALUES (CASE new.a WHEN 1 THEN 'x' END);
  DELETE FROM other;
END;
CREATE TEMP TABLE late (a);
COMMIT;
"""

SQL_SERVER = """\
CREATE PROCEDURE dbo.GetUsers @id INT
AS
  CREATE TABLE #found (id INT);
  SELECT * FROM users WHERE id = @id;
GO

CREATE OR ALTER PROC [dbo].[Other]
AS
BEGIN TRY
  BEGIN TRANSACTION
  SELECT 1;
END TRY
BEGIN CATCH
END CATCH
GO
CREATE TABLE [dbo].[T] ( id INT )
GO
"""

WITHOUT_BATCHES = """\
CREATE FUNCTION dbo.Twice(@a INT) RETURNS INT
AS
BEGIN
  RETURN @a * 2;
END

SELECT 1;
"""

MYSQL = """\
DELIMITER $$
CREATE DEFINER=`root`@`localhost` PROCEDURE p1(IN a INT)
BEGIN
  IF a THEN
    SELECT 'it\\'s;';
  END IF;
  CASE a WHEN 1 THEN SELECT 1; END CASE;
END$$

CREATE FUNCTION f2(a INT) RETURNS INT
RETURN a; $$
DELIMITER ;

CREATE TRIGGER tr BEFORE INSERT ON t FOR EACH ROW SET NEW.x = 1;
CREATE TABLE `t` (
  `id` int(11) NOT NULL
) ENGINE=InnoDB;
"""

ORACLE = """\
CREATE OR REPLACE PROCEDURE raise_salary(p_id IN NUMBER) IS
  amount NUMBER;
BEGIN
  UPDATE emp SET sal = amount;
END;
/

CREATE OR REPLACE PACKAGE BODY pay AS
  PROCEDURE a IS
  BEGIN
    NULL;
  END;
END pay;
/
"""

SCRIPTS: dict[str, tuple[str, list[tuple[str, int, int]]]] = {
    "postgres": (
        POSTGRES,
        [
            ("app.users", 1, 1),
            ("t3", 2, 2),
            ("i1", 3, 3),
            ("v1", 6, 7),
            ("f1", 9, 14),
            ("app.p1", 16, 21),
            ("tr1", 23, 23),
            ("mood", 24, 24),
            ("v2", 31, 31),
        ],
    ),
    "sqlite": (SQLITE, [("ft", 2, 2), ("t_ai", 3, 7), ("late", 8, 8)]),
    "sql_server": (SQL_SERVER, [("dbo.GetUsers", 1, 5), ("dbo.Other", 7, 15), ("dbo.T", 16, 17)]),
    "without_batches": (WITHOUT_BATCHES, [("dbo.Twice", 1, 5)]),
    "mysql": (MYSQL, [("p1", 2, 8), ("f2", 10, 11), ("tr", 14, 14), ("t", 15, 17)]),
    "oracle": (ORACLE, [("raise_salary", 1, 6), ("pay", 8, 14)]),
}


@pytest.mark.parametrize("dialect", SCRIPTS)
def test_the_definitions_of_each_dialect_have_exactly_their_lines(dialect: str) -> None:
    text, expected = SCRIPTS[dialect]
    document = CodeParser().parse(text.encode(), "a.sql")
    lines = LineTable(text)
    found = [
        (block.title, *lines.lines_of(block.start, block.end)) for block in document.blocks if block.kind == "symbol"
    ]
    assert found == expected


@pytest.mark.parametrize(
    "text",
    ["CREATE TABLE a (", "CREATE FUNCTION f() AS $$ x", "CREATE VIEW v AS SELECT 'x", "CREATE TRIGGER t BEGIN /* x"],
)
def test_an_unclosed_definition_extends_to_the_end(text: str) -> None:
    (block,) = CodeParser().parse(text.encode(), "a.sql").blocks
    assert (block.kind, block.end) == ("symbol", len(text))
