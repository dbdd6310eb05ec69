"""The type of a file (pdf, markdown, code, note) and its finer format, by its name or by the first line of a script."""

from __future__ import annotations

import re

from kebab.core.paths import file_name

_ALIASES = {"markdown": "md", "mdown": "md", "mkd": "md", "htm": "html", "xhtml": "html"}
_DOC_TYPES = {"md": "markdown", "mdx": "markdown", "pdf": "pdf"}
_CODE = frozenset(
    """ada adb ads asm awk bash bat bazel bzl c cc cfg cjs clj cljs cmake cmd coffee conf cpp cr cs css cts cu cue cxx
    d dart dockerfile editorconfig el elm env erl ex exs f f90 fish for fs fsx gd gleam go gradle graphql groovy h hbs
    hcl hh hpp hrl hs hxx ini ipp java jl js json json5 jsonc jsx just kt kts less lisp ll lock lua m make mjs mk ml
    mli mm mts nim nix pas php pl pm pp properties proto ps1 purs py pyi pyw pyx r rb re rkt rs s sass sc scala scm
    scss sh sol sql star sv svelte swift tcl tex tf thrift toml ts tsx v vala vb vhd vhdl vim vue wat wgsl xsd xsl yaml
    yml zig zsh""".split()
)
_CODE_NAMES = frozenset(
    """cmakelists.txt requirements.txt go.mod go.sum .gitignore .gitattributes .dockerignore .editorconfig .bashrc
    .zshrc .profile .env""".split()
)
_CODE_FILES = "dockerfile makefile jenkinsfile vagrantfile rakefile gemfile procfile justfile brewfile".split()
_FORMAT_OF_NAME = {name: name for name in _CODE_FILES} | {"containerfile": "dockerfile", "gnumakefile": "makefile"}
"""Names of files to which people add a suffix: Dockerfile.dev, Makefile-common."""
_AFTER_NAME = re.compile(r"[.\-_]")
_DOCUMENTS = frozenset("csv docx eml epub html ipynb org pptx rst tsv txt xlsx".split())

_SHEBANG = r"#![ \t]*(/\S+)([^\n]{0,200})"
_PROGRAM = r"[A-Za-z][A-Za-z_+-]*"
_PROGRAMS = """py python pypy ipython uv, sh sh bash dash ash ksh busybox, js node nodejs, ts deno bun ts-node tsx,
    rb ruby jruby, pl perl, r rscript, awk gawk mawk nawk, tcl tclsh wish, makefile make gmake, jl julia, exs elixir,
    erl escript, hs runghc runhaskell, kts kotlin, lua luajit, scm guile, ps1 pwsh"""
_FORMAT_OF_PROGRAM = {name: format_ for format_, *names in map(str.split, _PROGRAMS.split(",")) for name in names}
"""Program in the first line of a script → format. For other programs, such as php or zsh, the name is the format."""


def classify(path: str, text: str = "") -> tuple[str, str]:
    """(doc_type, format) of a file; without an extension, also by the first line of its text."""
    name = file_name(path).lower()
    extension = _ALIASES.get(extension_of(path), extension_of(path))
    if extension in _DOC_TYPES:
        return _DOC_TYPES[extension], extension
    if name in _CODE_NAMES:
        return "code", name.lstrip(".").rpartition(".")[2] if "." in name.lstrip(".") else name.lstrip(".")
    if extension in _CODE:
        return "code", extension
    if extension not in _DOCUMENTS and (format_ := _FORMAT_OF_NAME.get(_AFTER_NAME.split(name, 1)[0])):
        return "code", format_
    if text and not extension and (format_ := _script_format(text)):
        return "code", format_
    return "note", extension or "txt"


def extension_of(path: str) -> str:
    """The extension in lower case without its dot; a name that only begins with a dot has none."""
    name = file_name(path).lower()
    return name.rpartition(".")[2] if "." in name.lstrip(".") else ""


def format_named(name: str) -> str:
    """The format of an extension, with or without its dot: `.markdown` is md, htm is html."""
    return classify(f"file.{name.lstrip('.')}")[1]


def _script_format(text: str) -> str | None:
    """The format of a script by the program in its first line (`#!/usr/bin/env python3`); None for other text."""
    shebang = re.match(_SHEBANG, text)
    if shebang is None:
        return None
    words = [shebang[1], *shebang[2].split()]
    if words[0].endswith("/env"):
        words = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
    program = re.match(_PROGRAM, words[0].rpartition("/")[2].lower()) if words else None
    if program is None:
        return None
    name = program[0].rstrip("-_")  # python3.12 is python
    return _FORMAT_OF_PROGRAM.get(name, name)
