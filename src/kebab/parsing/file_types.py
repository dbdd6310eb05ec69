"""What a file is, told by its name: `doc_type` (pdf, markdown, code, note) and the finer `format`."""

from __future__ import annotations

from kebab.core.documents import file_name

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
    """dockerfile makefile gnumakefile cmakelists.txt jenkinsfile vagrantfile rakefile gemfile procfile justfile brewfile
    requirements.txt go.mod go.sum .gitignore .gitattributes .dockerignore .editorconfig .bashrc .zshrc .profile .env""".split()
)


def classify(path: str) -> tuple[str, str]:
    """(doc_type, format) of a file."""
    name = file_name(path).lower()
    extension = name.rpartition(".")[2] if "." in name.lstrip(".") else ""
    if extension in _MARKDOWN:
        return "markdown", _MARKDOWN[extension]
    if extension == "pdf":
        return "pdf", "pdf"
    extension = _ALIASES.get(extension, extension)
    if name in _CODE_NAMES:
        return "code", name.lstrip(".").rpartition(".")[2] if "." in name.lstrip(".") else name.lstrip(".")
    if extension in _CODE:
        return "code", extension
    return "note", extension or "txt"
