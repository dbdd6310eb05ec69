"""Which program runs a script, as its first line has it (`#!/usr/bin/env python3`), and which format its files would
have.
"""

from __future__ import annotations

import re

_SHEBANG = re.compile(r"#![ \t]*(/\S+)([^\n]{0,200})")
_PROGRAM = re.compile(r"[A-Za-z][A-Za-z_+-]*")
_FORMATS = {
    "py": "python pypy ipython uv",
    "sh": "sh bash dash ash ksh busybox",
    "zsh": "zsh",
    "js": "node nodejs",
    "ts": "deno bun ts-node tsx",
    "rb": "ruby jruby",
    "pl": "perl",
    "r": "rscript",
    "awk": "gawk mawk nawk",
    "tcl": "tclsh wish",
    "makefile": "make gmake",
    "jl": "julia",
    "exs": "elixir",
    "erl": "escript",
    "hs": "runghc runhaskell",
    "kts": "kotlin",
    "lua": "lua luajit",
    "scm": "guile",
    "ps1": "pwsh",
}
_FORMAT_OF_PROGRAM = {program: format_ for format_, programs in _FORMATS.items() for program in programs.split()}
"""Another program's name is the format itself: gnuplot, php, swift."""


def script_format(text: str) -> str | None:
    """None for what is no script."""
    shebang = _SHEBANG.match(text)
    if shebang is None:
        return None
    words = [shebang[1], *shebang[2].split()]
    if words[0].endswith("/env"):
        words = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
    program = _PROGRAM.match(words[0].rpartition("/")[2].lower()) if words else None
    if program is None:
        return None
    name = program[0].rstrip("-_")  # python3.12 is python
    return _FORMAT_OF_PROGRAM.get(name, name)
