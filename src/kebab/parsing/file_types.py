"""What a file is: `doc_type` (pdf, markdown, code, note) and the finer `format`. Its name tells, or the first line of a
script.
"""

from __future__ import annotations

import re

from kebab.core.paths import file_name

_MARKDOWN = {"md": "md", "markdown": "md", "mdown": "md", "mkd": "md", "mdx": "mdx"}

_ALIASES = {"htm": "html", "xhtml": "html"}
_CODE = frozenset(
    """ada adb ads asm awk bash bat bazel bzl c cc cfg cjs clj cljs cmake cmd coffee conf cpp cr cs css cts cu cue cxx d dart dockerfile
    editorconfig el elm env erl ex exs f f90 fish for fs fsx gd gleam go gradle graphql groovy h hbs hcl hh hpp hrl hs hxx ini ipp
    java jl js json json5 jsonc jsx just kt kts less lisp ll lock lua m make mjs mk ml mli mm mts nim nix pas php pl pm pp properties
    proto ps1 purs py pyi pyw pyx r rb re rkt rs s sass sc scala scm scss sh sol sql star sv svelte swift tcl tex tf thrift toml ts tsx
    v vala vb vhd vhdl vim vue wat wgsl xsd xsl yaml yml zig zsh""".split()
)
_CODE_NAMES = frozenset(
    """cmakelists.txt requirements.txt go.mod go.sum .gitignore .gitattributes .dockerignore .editorconfig .bashrc .zshrc .profile
    .env""".split()
)
_CODE_FILES = {
    **{
        name: name
        for name in "dockerfile makefile jenkinsfile vagrantfile rakefile gemfile procfile justfile brewfile".split()
    },
    "containerfile": "dockerfile",
    "gnumakefile": "makefile",
}
"""Names of files, to which people append what sets one of several apart: Dockerfile.dev, Makefile-common."""
_AFTER_NAME = re.compile(r"[.\-_]")
_DOCUMENTS = frozenset("csv docx eml epub html ipynb org pptx rst tsv txt xlsx".split())


def classify(path: str, text: str = "") -> tuple[str, str]:
    """(doc_type, format) of a file; of one without an extension, also by the first line of its text."""
    name = file_name(path).lower()
    extension = extension_of(path)
    if extension in _MARKDOWN:
        return "markdown", _MARKDOWN[extension]
    if extension == "pdf":
        return "pdf", "pdf"
    extension = _ALIASES.get(extension, extension)
    if name in _CODE_NAMES:
        return "code", name.lstrip(".").rpartition(".")[2] if "." in name.lstrip(".") else name.lstrip(".")
    if extension in _CODE:
        return "code", extension
    if extension not in _DOCUMENTS and (format_ := _CODE_FILES.get(_AFTER_NAME.split(name, 1)[0])):
        return "code", format_
    if text and not extension:
        from kebab.parsing.shebang import script_format

        if format_ := script_format(text):
            return "code", format_
    return "note", extension or "txt"


def extension_of(path: str) -> str:
    """In lower case and without its dot; a name that only begins with one has none."""
    name = file_name(path).lower()
    return name.rpartition(".")[2] if "." in name.lstrip(".") else ""


def format_named(name: str) -> str:
    """The format that people mean by an extension, with its dot or without: `.markdown` is md, htm is html."""
    return classify(f"file.{name.lstrip('.')}")[1]
