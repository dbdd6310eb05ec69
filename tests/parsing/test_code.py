"""The symbols of each programming language and their exact lines."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kebab
from kebab.chunking.by_structure import StructureChunker
from kebab.config.settings import ChunkingSettings
from kebab.core.citations import CodeSpan
from kebab.core.documents import ParsedDocument
from kebab.core.text import LineTable
from kebab.parsing import code
from kebab.parsing.code import CodeParser
from kebab.parsing.code_languages import CODE_LANGUAGES, LANGUAGE_OF_FORMAT
from kebab.parsing.registry import parser_for

Symbols = list[tuple[str, int, int]]

PYTHON = '''\
"""A module."""
import os

LIMIT = 3

# Reads a header.
# Two lines of comment.
@cache
@retry(
    times=3,
)
async def read(path):
    def inner():
        return 1

    return inner

class Outer(Base):
    """The class."""

    size: int = 0

    # About the method.
    def method(self):
        pass

    @property
    def name(self):
        return 1
    @name.setter
    def name(self, value):
        pass

    limit = 5

    class Inner:
        def deep(self): return 1

if LIMIT:
    def conditional():
        pass
else:
    pass
'''

JAVASCRIPT = """\
import x from "x";

/**
 * Doc.
 */
export default class Parser extends Base {
  #count = 0;

  // Makes one.
  constructor() {
    super();
  }
  static parseHTTPHeader(line) {
    return line;
  }
  handler = () => {
    this.x();
  };
}

// Adds.
export const add = (a, b) => {
  return a + b;
};

export function* walk() {
  yield 1;
}

exports.go = function () {
  function inner() {}
};

const LIMIT = 1;
"""

TYPESCRIPT = """\
import { x } from "x";

@Component({
  selector: "a",
})
export class View {
  @Input() size = 1;
  @HostListener("click")
  // Clicked.
  onClick(): void {
    go();
  }

  abstract other(): void;
}

export interface Shape {
  area(): number;
}

export type Name = string | number;

enum Color {
  Red,
}

namespace Geo {
  export function distance(a: number): number {
    return a;
  }
}

function over(a: string): void;
function over(a: number): void;
function over(a: any) {}
"""

TSX = """\
export const Button = ({ label }: Props) => (
  <button>{label}</button>
);

function App() {
  return <Button label="가" />;
}
"""

GO = """\
package main

import "fmt"

// Server serves.
type Server struct {
	addr string
}

// Start begins.
func (s *Server) Start() error {
	return nil
}

func (c Cache[K]) Get() {}

func New[T any](a T) *Server {
	return nil
}

type (
	ID   int
	Name interface {
		Get() string
	}
)
"""

RUST = """\
use std::fmt;

/// A point.
#[derive(Debug)]
#[repr(C)]
pub struct Point<T> {
    x: T,
}

impl<T> Point<T> {
    const ZERO: i32 = 0;

    /// Makes one.
    #[inline]
    pub fn new(x: T) -> Self {
        Self { x }
    }
}

impl fmt::Display for Point<i32> {
    fn fmt(&self) {}
}

trait Shape {
    fn area(&self) -> f64;
}

mod tests {
    #[test]
    fn works() {}
}

macro_rules! twice {
    () => {};
}
mod other;
"""

JAVA = """\
package a.b;

import java.util.List;

/** A parser. */
@Deprecated
public class Parser<T> {
    private int size;

    public Parser() {
    }

    /** Parses. */
    @Override
    public int parse(String a) {
        return 1;
    }

    public int parse(int a) { return 2; }

    enum Color { RED, GREEN }

    interface Listener {
        void heard();
    }
}

record Pair(int a, int b) {}
"""

KOTLIN = """\
package a

/** A user. */
@Serializable
data class User(val name: String) {
    // Greets.
    fun greet(): String {
        return "hi"
    }

    constructor(a: Int) : this("x") {
        println(a)
    }

    companion object {
        fun of(): User = User("x")
    }
}

object Registry {
    fun add(x: Int) = x
}

interface Shape {
    fun area(): Double
}

fun String.shout(): String = uppercase()
"""

C = """\
#include <stdio.h>

#define TWICE(x) \\
    ((x) * 2)

/* A point. */
struct point {
    int x;
};

typedef struct {
    int y;
} other_t;

enum color { RED };

int declared(int a);

// Adds.
static int
add(int a, int b)
{
    return a + b;
}

char *name(void) {
    return 0;
}
"""

CPP = """\
#include <vector>

namespace geo {

// A box.
template <typename T>
class Box : public Shape {
public:
    Box();

    // Ends it.
    ~Box() {
    }

    bool operator==(const Box& other) const {
        return true;
    }

private:
    T value;
};

template <typename T>
Box<T>::Box() {
}

}  // namespace geo

int geo::Shape::area(int x) {
    return x;
}

std::string& name() {
}

enum class Color { Red };
"""

CSHARP = """\
using System;

namespace App.Models
{
    /// <summary>A user.</summary>
    [Serializable]
    public class User<T> : Base
    {
        public int Age { get; set; }

        public User()
        {
        }

        // Greets.
        [Obsolete]
        public string Greet(string a) => a;

        public string Greet(int a)
        {
            return "";
        }
    }

    public interface IShape
    {
        double Area();
    }

    enum Color { Red }
}
"""

RUBY = """\
require "x"

# A module.
module App
  # A user.
  class User < Base
    attr_reader :name

    # Greets.
    def greet
      "hi"
    end

    def self.find(id)
      id
    end
  end
end

def top(a) = a
"""

PHP = """\
<?php
namespace App;

use X;

/** A user. */
#[Entity]
class User extends Base
{
    private int $age;

    // Greets.
    public function greet(): string
    {
        return "hi";
    }
}

interface Shape {
    public function area();
}

function top() {
    return 1;
}
"""

SWIFT = """\
import Foundation

/// A point.
struct Point: Shape {
    let x: Int

    init(x: Int) {
        self.x = x
    }

    /// Moves.
    @discardableResult
    func move(by d: Int) -> Point {
        return self
    }
}

extension Point {
    func zero() {}
}

protocol Shape {
    func area() -> Double
}

func top() {
}
"""

BASH = """\
#!/usr/bin/env bash
set -e

# Says it.
say() {
  echo "$1"
}

function stop {
  exit 1
}

say hello
"""

SQL = """\
-- All users.
CREATE TABLE IF NOT EXISTS app.users (
    id INT PRIMARY KEY,
    name TEXT
);

CREATE INDEX users_name ON app.users (name);

CREATE VIEW active AS
SELECT * FROM app.users;

SELECT 1;

-- Doubles.
CREATE FUNCTION double(a INT) RETURNS INT AS $$
SELECT a * 2;
$$ LANGUAGE sql;
"""

SCALA = """\
package a

/** A user. */
@ann
class User(name: String) extends Base {
  val x = 1

  // Greets.
  def greet(): String = {
    "hi"
  }
}

object User {
  def of(): User = new User("x")
}

trait Shape {
  def area: Double
}
"""

LUA = """\
local M = {}

-- Adds.
function M.add(a, b)
  return a + b
end

function M:greet()
  return "hi"
end

local function hidden()
end

M.sub = function(a)
  return a
end

return M
"""

TABLE: dict[str, tuple[str, Symbols]] = {
    "a.py": (
        PYTHON,
        [
            ("read", 6, 16),
            ("Outer", 18, 21),
            ("Outer.method", 23, 25),
            ("Outer.name", 27, 29),
            ("Outer.name", 30, 32),
            ("Outer", 34, 34),
            ("Outer.Inner", 36, 36),
            ("Outer.Inner.deep", 37, 37),
            ("conditional", 40, 41),
        ],
    ),
    "a.js": (
        JAVASCRIPT,
        [
            ("Parser", 3, 7),
            ("Parser.constructor", 9, 12),
            ("Parser.parseHTTPHeader", 13, 15),
            ("Parser.handler", 16, 18),
            ("add", 21, 24),
            ("walk", 26, 28),
            ("go", 30, 32),
        ],
    ),
    "a.ts": (
        TYPESCRIPT,
        [
            ("View", 3, 7),
            ("View.onClick", 8, 12),
            ("View.other", 14, 14),
            ("Shape", 17, 19),
            ("Name", 21, 21),
            ("Color", 23, 25),
            ("Geo", 27, 27),
            ("Geo.distance", 28, 30),
            ("over", 33, 33),
            ("over", 34, 34),
            ("over", 35, 35),
        ],
    ),
    "a.tsx": (TSX, [("Button", 1, 3), ("App", 5, 7)]),
    "a.go": (
        GO,
        [
            ("Server", 5, 8),
            ("Server.Start", 10, 13),
            ("Cache.Get", 15, 15),
            ("New", 17, 19),
            ("ID", 22, 22),
            ("Name", 23, 25),
        ],
    ),
    "a.rs": (
        RUST,
        [
            ("Point", 3, 8),
            ("Point", 10, 11),
            ("Point.new", 13, 17),
            ("Point", 20, 20),
            ("Point.fmt", 21, 21),
            ("Shape", 24, 24),
            ("Shape.area", 25, 25),
            ("tests", 28, 28),
            ("tests.works", 29, 30),
            ("twice", 33, 35),
        ],
    ),
    "a.java": (
        JAVA,
        [
            ("Parser", 5, 8),
            ("Parser.Parser", 10, 11),
            ("Parser.parse", 13, 17),
            ("Parser.parse", 19, 19),
            ("Parser.Color", 21, 21),
            ("Parser.Listener", 23, 23),
            ("Parser.Listener.heard", 24, 24),
            ("Pair", 28, 28),
        ],
    ),
    "a.kt": (
        KOTLIN,
        [
            ("User", 3, 5),
            ("User.greet", 6, 9),
            ("User.constructor", 11, 13),
            ("User", 15, 15),
            ("User.of", 16, 16),
            ("Registry", 20, 20),
            ("Registry.add", 21, 21),
            ("Shape", 24, 24),
            ("Shape.area", 25, 25),
            ("shout", 28, 28),
        ],
    ),
    "a.c": (
        C,
        [("TWICE", 3, 4), ("point", 6, 9), ("other_t", 11, 13), ("color", 15, 15), ("add", 19, 24), ("name", 26, 28)],
    ),
    "a.cpp": (
        CPP,
        [
            ("geo", 3, 3),
            ("geo.Box", 5, 9),
            ("geo.Box.~Box", 11, 13),
            ("geo.Box.operator==", 15, 17),
            ("geo.Box", 19, 21),
            ("geo.Box.Box", 23, 25),
            ("geo", 27, 27),
            ("geo.Shape.area", 29, 31),
            ("name", 33, 34),
            ("Color", 36, 36),
        ],
    ),
    "a.cs": (
        CSHARP,
        [
            ("App.Models", 3, 4),
            ("App.Models.User", 5, 9),
            ("App.Models.User.User", 11, 13),
            ("App.Models.User.Greet", 15, 17),
            ("App.Models.User.Greet", 19, 22),
            ("App.Models.IShape", 25, 26),
            ("App.Models.IShape.Area", 27, 27),
            ("App.Models.Color", 30, 30),
        ],
    ),
    "a.rb": (
        RUBY,
        [("App", 3, 4), ("App.User", 5, 7), ("App.User.greet", 9, 12), ("App.User.find", 14, 16), ("top", 20, 20)],
    ),
    "a.php": (
        PHP,
        [("User", 6, 10), ("User.greet", 12, 16), ("Shape", 19, 19), ("Shape.area", 20, 20), ("top", 23, 25)],
    ),
    "a.swift": (
        SWIFT,
        [
            ("Point", 3, 5),
            ("Point.init", 7, 9),
            ("Point.move", 11, 15),
            ("Point", 18, 18),
            ("Point.zero", 19, 19),
            ("Shape", 22, 22),
            ("Shape.area", 23, 23),
            ("top", 26, 27),
        ],
    ),
    "a.sh": (BASH, [("say", 4, 7), ("stop", 9, 11)]),
    "a.sql": (SQL, [("app.users", 1, 5), ("users_name", 7, 7), ("active", 9, 10), ("double", 14, 17)]),
    "a.scala": (
        SCALA,
        [
            ("User", 3, 6),
            ("User.greet", 8, 11),
            ("User", 14, 14),
            ("User.of", 15, 15),
            ("Shape", 18, 18),
            ("Shape.area", 19, 19),
        ],
    ),
    "a.lua": (LUA, [("M.add", 3, 6), ("M.greet", 8, 10), ("hidden", 12, 13), ("M.sub", 15, 17)]),
}


def parsed(text: str, path: str = "src/a.py") -> ParsedDocument:
    document = CodeParser().parse(text.encode(), path)
    check_blocks(document)
    return document


def check_blocks(document: ParsedDocument) -> None:
    """Blocks are in order, begin at the start of a line, and together hold every line with text."""
    position = 0
    for block in document.blocks:
        assert position <= block.start < block.end
        assert block.start == 0 or document.text[block.start - 1] == "\n"
        assert not document.text[position : block.start].strip()
        position = block.end
    assert not document.text[position:].strip()


def cited(document: ParsedDocument) -> Symbols:
    """The symbols as a hit would cite them; the lines cited are those of the chunk."""
    lines = LineTable(document.text)
    found: Symbols = []
    for chunk in StructureChunker(ChunkingSettings()).chunk(document):
        (span,) = chunk.spans
        assert isinstance(span, CodeSpan)
        assert span.lang == document.code_lang
        assert lines.slice(span.line_start, span.line_end).rstrip() == chunk.text
        if span.symbol:
            assert chunk.heading_path == tuple(span.symbol.split("."))
            found.append((span.symbol, span.line_start, span.line_end))
    return found


@pytest.mark.parametrize("path", TABLE)
def test_the_symbols_of_each_language_have_exactly_their_lines(path: str) -> None:
    text, expected = TABLE[path]
    document = parsed(text, path)
    assert cited(document) == expected
    assert document.code_lang == LANGUAGE_OF_FORMAT[path.removeprefix("a.")]
    assert (document.doc_type, document.title, document.text, document.warnings) == ("code", path, text, ())


def test_every_language_is_in_the_table() -> None:
    assert {LANGUAGE_OF_FORMAT[path.removeprefix("a.")] for path in TABLE} == set(CODE_LANGUAGES)


@pytest.mark.parametrize("format_", LANGUAGE_OF_FORMAT)
def test_every_format_of_a_language_is_read_by_this_parser(format_: str) -> None:
    name = {"rakefile": "Rakefile", "gemfile": "Gemfile", "bashrc": ".bashrc"}.get(format_, f"a.{format_}")
    name = {"vagrantfile": "Vagrantfile", "brewfile": "Brewfile", "profile": ".profile"}.get(format_, name)
    assert isinstance(parser_for(name), CodeParser)
    assert CodeParser().parse(b"x\n", name).doc_type == "code"


@pytest.mark.parametrize("path", TABLE)
def test_windows_line_ends_change_no_line(path: str) -> None:
    text, expected = TABLE[path]
    assert cited(parsed(text.replace("\n", "\r\n"), path)) == expected


@pytest.mark.parametrize("path", TABLE)
def test_a_file_cut_anywhere_is_still_a_document(path: str) -> None:
    text, _ = TABLE[path]
    for length in range(0, len(text), 7):
        parsed(text[:length], path)


@given(
    st.sampled_from(sorted(TABLE)),
    st.lists(st.integers(0, 10_000), max_size=6),
    st.lists(st.integers(0, 10_000), max_size=6),
)
def test_lines_joined_and_dropped_at_random_are_each_in_one_block(
    path: str, joined: list[int], dropped: list[int]
) -> None:
    lines = TABLE[path][0].splitlines(keepends=True)
    for number in dropped:
        lines.pop(number % len(lines)) if len(lines) > 1 else None
    for number in joined:
        lines[number % len(lines)] = lines[number % len(lines)].rstrip("\n") + " "
    parsed("".join(lines), path)


@pytest.mark.parametrize("path", TABLE)
def test_an_empty_file_has_no_blocks(path: str) -> None:
    assert parsed("", path).blocks == ()
    assert parsed("\n \n", path).blocks == ()


def test_code_outside_symbols_is_split_at_blank_lines() -> None:
    document = parsed("import a\nimport b\n\nX = 1\ndef f():\n    pass\nf()\n\nprint(X)\n")
    shown = [(block.kind, document.text[block.start : block.end].strip()) for block in document.blocks]
    assert shown == [
        ("code", "import a\nimport b"),
        ("code", "X = 1"),
        ("symbol", "def f():\n    pass"),
        ("code", "f()"),
        ("code", "print(X)"),
    ]


def test_a_comment_above_a_blank_line_belongs_to_no_symbol() -> None:
    assert cited(parsed("# Licence.\n\n# About f.\ndef f():\n    pass\n")) == [("f", 3, 5)]


def test_a_comment_behind_code_belongs_to_the_code() -> None:
    assert cited(parsed("X = 1  # one\ndef f():\n    pass\n")) == [("f", 2, 3)]
    assert cited(parsed("int x; /* one */\nint f() {\n}\n", "a.c")) == [("f", 2, 3)]
    assert cited(parsed("/* one */ int x;\nint f() {\n}\n", "a.c")) == [("f", 2, 3)]


def test_the_last_comment_of_a_class_does_not_go_to_the_next_one() -> None:
    text = "class A {\n  f() {\n  }\n  // the end\n}\n// about B\nclass B {\n}\n"
    assert cited(parsed(text, "a.js")) == [("A", 1, 1), ("A.f", 2, 3), ("A", 4, 5), ("B", 6, 8)]


def test_korean_comments_and_names_move_no_line() -> None:
    text = "# 머리말을 읽는다 🙂\ndef 읽기(경로):\n    '''문서'''\n    return 경로\n\n# 둘째\nclass 문서함:\n    def 열기(self): pass\n"
    assert cited(parsed(text)) == [("읽기", 1, 4), ("문서함", 6, 7), ("문서함.열기", 8, 8)]
    assert parsed(text).lang == "ko"


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("a.js", "function a() {} function b() {}\nfunction c() {}\n", [("a", 1, 1), ("c", 2, 2)]),
        ("a.js", "function a() {\n} function b() {\n}\n", [("a", 1, 3)]),
        ("a.js", "class A { f() {} g() {\n} h() {\n} }\n", [("A", 1, 3)]),
        ("a.cpp", "namespace a { namespace b {\nint f() {\n}\n} }\n", [("a", 1, 1), ("a.b.f", 2, 3)]),
        (
            "a.js",
            "class A {\n  f() {}\n} class B {\n  g() {}\n}\n",
            [("A", 1, 1), ("A.f", 2, 2), ("A", 3, 3), ("B.g", 4, 4)],
        ),
        ("a.py", "class A: x = 1; y = 2\n", [("A", 1, 1)]),
    ],
)
def test_symbols_that_share_a_line_are_one_block(path: str, text: str, expected: Symbols) -> None:
    assert cited(parsed(text, path)) == expected


def test_readable_symbols_of_broken_code_are_found() -> None:
    text = "def good():\n    return 1\n\ndef bad(:\n    return ((\n\nclass Fine:\n    def method(self):\n        pass\n"
    assert ("good", 1, 2) in cited(parsed(text))
    assert parsed("}}}} ((( \x01 ;;; def class\n").blocks


def test_the_text_of_a_header_decides_between_c_and_cpp() -> None:
    assert parsed("struct a {\n  int x;\n};\n", "a.h").code_lang == "c"
    assert parsed("#pragma once\nclass A {\npublic:\n  int x;\n};\n", "a.h").code_lang == "cpp"


def test_deep_nesting_gives_a_document() -> None:
    for text in ("(\n" * 50_000, "x = " + "(\n" * 50_000 + ")\n" * 50_000, "[\n" * 50_000):
        assert parsed(text).blocks
    nested = "".join(f"{' ' * depth}class C{depth}:\n" for depth in range(90)) + " " * 90 + "x = 1\n"
    assert max(len(symbol.split(".")) for symbol, _, _ in cited(parsed(nested))) < 30


def test_a_line_of_a_megabyte_is_parsed() -> None:
    assert len(parsed("word " * 200_000, "a.sql").text) == 1_000_000


def test_ten_thousand_functions_take_little_time() -> None:
    started = time.process_time()
    assert len(parsed("# c\n@d\ndef f():\n    pass\n\n" * 10_000).blocks) == 10_000
    assert time.process_time() - started < 5.0


@pytest.mark.parametrize(("text", "path"), [("~~~\n" * 20_000, "a.py"), ("(" * 50_000, "a.kt")])
def test_a_file_of_syntax_errors_is_stopped_in_time_with_a_warning(text: str, path: str) -> None:
    started = time.process_time()
    document = parsed(text, path)
    assert time.process_time() - started < 5.0
    assert [block.kind for block in document.blocks] == ["code"]
    assert "syntax errors" in document.warnings[0]


def test_an_unusable_grammar_leaves_text_without_symbols(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = CODE_LANGUAGES["python"]._replace(more="(no_such_node) @function")
    monkeypatch.setattr(code, "code_language", lambda _format, _text: broken)
    document = parsed("def f():\n    pass\n")
    assert [block.kind for block in document.blocks] == ["code"]
    assert "tree_sitter_python" in document.warnings[0]


def test_the_last_line_of_a_class_is_no_passage() -> None:
    document = parsed("class A {\n  f() {\n  }\n}\n", "a.js")
    assert [block.title for block in document.blocks] == ["A", "A.f", "A"]
    assert cited(document) == [("A", 1, 1), ("A.f", 2, 3)]


def test_an_identifier_is_found_by_its_words_and_as_a_whole(write_notes: Callable[..., Path], tmp_path: Path) -> None:
    folder = write_notes(
        {
            "web/headers.js": JAVASCRIPT,
            "a.md": "# Notes\n\nparse the header of http\n",
            "b.yaml": "a: 1\n",
            "x.min.js": "x",
        }
    )
    with kebab.open(tmp_path / "kb.sqlite") as kb:
        report = kb.ingest(folder)
        assert (report.added, report.skipped["generated"].examples) == (3, ("x.min.js",))
        by_words = kb.search("parse http header", mode="lexical", types=["code"])
        by_itself = kb.search("parseHTTPHeader", mode="lexical")
    for response in (by_words, by_itself):
        citation = response.hits[0].citation
        assert (citation.kind, citation.path, citation.span) == (
            "code",
            "web/headers.js",
            CodeSpan(13, 15, "Parser.parseHTTPHeader", "javascript"),
        )
