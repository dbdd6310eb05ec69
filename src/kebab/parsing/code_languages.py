"""The programming languages whose symbols are cited: their files, their grammars, and which nodes of a syntax tree are symbols.

Symbols are found by queries in tree-sitter's own language. What a query captures:

    @class     holds symbols of its own: a class, struct, interface, trait, impl, namespace, module
    @function  holds none: whatever stands inside it is part of it
    @name      how the symbol is called; @owner stands before it (Go's receiver)
    @lead      a comment, decorator or attribute, which belongs to the symbol directly below it
"""

from __future__ import annotations

import re
from typing import NamedTuple


class CodeLanguage(NamedTuple):
    name: str
    """As it stands in citations."""
    grammar: str
    """The Python module that brings the grammar, and its function where that is not `language`."""
    classes: str
    """Types of nodes that are classes and have a field `name`."""
    functions: str
    """The same for functions."""
    leads: str = "comment"
    more: str = ""
    """Queries for symbols whose name is found in another way."""

    @property
    def query(self) -> str:
        named = [(kind, "class") for kind in self.classes.split()] + [(kind, "function") for kind in self.functions.split()]
        return "\n".join(
            [f"({kind} name: (_) @name) @{capture}" for kind, capture in named]
            + [f"({kind}) @lead" for kind in self.leads.split()]
            + [self.more]
        )


_FUNCTION_VALUE = "[(arrow_function) (function_expression) (generator_function)]"
_JAVASCRIPT_VALUES = f"""
(lexical_declaration (variable_declarator name: (identifier) @name value: {_FUNCTION_VALUE})) @function
(variable_declaration (variable_declarator name: (identifier) @name value: {_FUNCTION_VALUE})) @function
(expression_statement
  (assignment_expression left: (member_expression property: (_) @name) right: {_FUNCTION_VALUE})) @function
"""

# A function's name stands below what it returns: a pointer, a pointer to a pointer, a reference.
_C_FUNCTIONS = """
(function_definition declarator: (function_declarator declarator: [(identifier) (parenthesized_declarator)] @name)) @function
(function_definition declarator: (pointer_declarator declarator: (function_declarator declarator: (identifier) @name))) @function
(function_definition declarator: (pointer_declarator declarator: (pointer_declarator declarator:
  (function_declarator declarator: (identifier) @name)))) @function
"""
_C_TYPES = """
(struct_specifier name: (_) @name body: (_)) @class
(union_specifier name: (_) @name body: (_)) @class
(enum_specifier name: (_) @name body: (_)) @class
(type_definition type: [(struct_specifier !name body: (_)) (union_specifier !name body: (_)) (enum_specifier !name body: (_))]
  declarator: (type_identifier) @name) @class
(preproc_function_def name: (_) @name) @function
"""
_CPP_NAME = "[(identifier) (field_identifier) (qualified_identifier) (destructor_name) (operator_name) (template_function)] @name"
_CPP_FUNCTION_FORMS = (
    f"(function_definition declarator: (function_declarator declarator: {_CPP_NAME}))",
    f"(function_definition declarator: (pointer_declarator declarator: (function_declarator declarator: {_CPP_NAME})))",
    f"(function_definition declarator: (reference_declarator (function_declarator declarator: {_CPP_NAME})))",
    "(function_definition declarator: (operator_cast) @name)",
)
_CPP_CLASS_FORMS = ("(class_specifier name: (_) @name body: (_))", "(struct_specifier name: (_) @name body: (_))")
# The line `template <…>` above a symbol is part of it, so both forms are asked for, and the wider one is taken.
_CPP = "\n".join(
    [f"{form} @function\n(template_declaration {form}) @function" for form in _CPP_FUNCTION_FORMS]
    + [f"{form} @class\n(template_declaration {form}) @class" for form in _CPP_CLASS_FORMS]
    + ["(namespace_definition name: (_) @name body: (_)) @class"]
)

_GO_RECEIVER = """[(type_identifier) @owner (generic_type type: (type_identifier) @owner)
  (pointer_type [(type_identifier) @owner (generic_type type: (type_identifier) @owner)])]"""

_TYPESCRIPT_CLASSES = "class_declaration abstract_class_declaration interface_declaration enum_declaration internal_module module"
_TYPESCRIPT_FUNCTIONS = """function_declaration generator_function_declaration function_signature method_definition
    abstract_method_signature type_alias_declaration"""
_TYPESCRIPT_MORE = _JAVASCRIPT_VALUES + f"(public_field_definition name: (_) @name value: {_FUNCTION_VALUE}) @function"

_LANGUAGES = (
    CodeLanguage(
        "python",
        "tree_sitter_python",
        classes="class_definition",
        functions="function_definition",
        leads="comment decorator",
        more="""
        (decorated_definition definition: (function_definition name: (_) @name)) @function
        (decorated_definition definition: (class_definition name: (_) @name)) @class
        (type_alias_statement left: (type (identifier) @name)) @function
        """,
    ),
    CodeLanguage(
        "javascript",
        "tree_sitter_javascript",
        classes="class_declaration",
        functions="function_declaration generator_function_declaration method_definition",
        leads="comment decorator",
        more=_JAVASCRIPT_VALUES + f"(field_definition property: (_) @name value: {_FUNCTION_VALUE}) @function",
    ),
    CodeLanguage(
        "typescript",
        "tree_sitter_typescript:language_typescript",
        classes=_TYPESCRIPT_CLASSES,
        functions=_TYPESCRIPT_FUNCTIONS,
        leads="comment decorator",
        more=_TYPESCRIPT_MORE,
    ),
    CodeLanguage(
        "tsx",
        "tree_sitter_typescript:language_tsx",
        classes=_TYPESCRIPT_CLASSES,
        functions=_TYPESCRIPT_FUNCTIONS,
        leads="comment decorator",
        more=_TYPESCRIPT_MORE,
    ),
    CodeLanguage(
        "go",
        "tree_sitter_go",
        classes="",
        functions="function_declaration type_spec type_alias",
        more=f"""
        (method_declaration
          receiver: (parameter_list (parameter_declaration type: {_GO_RECEIVER})) name: (_) @name) @function
        """,
    ),
    CodeLanguage(
        "rust",
        "tree_sitter_rust",
        classes="struct_item enum_item union_item trait_item",
        functions="function_item function_signature_item type_item macro_definition",
        leads="line_comment block_comment attribute_item",
        more="""
        (impl_item type: (_) @name) @class
        (mod_item name: (_) @name body: (_)) @class
        """,
    ),
    CodeLanguage(
        "java",
        "tree_sitter_java",
        classes="class_declaration interface_declaration enum_declaration record_declaration annotation_type_declaration",
        functions="method_declaration constructor_declaration compact_constructor_declaration",
        leads="line_comment block_comment",
    ),
    CodeLanguage(
        "kotlin",
        "tree_sitter_kotlin",
        classes="class_declaration object_declaration",
        functions="function_declaration",
        leads="line_comment block_comment",
        more="""
        (secondary_constructor "constructor" @name) @function
        (type_alias type: (identifier) @name) @function
        """,
    ),
    CodeLanguage("c", "tree_sitter_c", classes="", functions="", more=_C_FUNCTIONS + _C_TYPES),
    CodeLanguage("cpp", "tree_sitter_cpp", classes="", functions="alias_declaration concept_definition", more=_CPP + _C_TYPES),
    CodeLanguage(
        "csharp",
        "tree_sitter_c_sharp",
        classes="class_declaration struct_declaration interface_declaration enum_declaration record_declaration namespace_declaration",
        functions="method_declaration constructor_declaration destructor_declaration delegate_declaration local_function_statement",
    ),
    CodeLanguage(
        "ruby",
        "tree_sitter_ruby",
        classes="class module",
        functions="method singleton_method",
    ),
    CodeLanguage(
        "php",
        "tree_sitter_php:language_php",
        classes="class_declaration interface_declaration trait_declaration enum_declaration",
        functions="function_definition method_declaration",
        more="(namespace_definition name: (_) @name body: (_)) @class",
    ),
    CodeLanguage(
        "swift",
        "tree_sitter_swift",
        classes="class_declaration protocol_declaration",
        functions="function_declaration protocol_function_declaration typealias_declaration",
        leads="comment multiline_comment",
        more="""
        (init_declaration "init" @name) @function
        (deinit_declaration "deinit" @name) @function
        (subscript_declaration "subscript" @name) @function
        """,
    ),
    CodeLanguage("bash", "tree_sitter_bash", classes="", functions="function_definition"),
    CodeLanguage(
        "sql",
        "tree_sitter_sql",
        classes="",
        functions="",
        leads="comment marginalia",
        more="""
        (create_table (keyword_table) (object_reference) @name) @function
        (create_view (keyword_view) (object_reference) @name) @function
        (create_materialized_view (keyword_view) (object_reference) @name) @function
        (create_function (keyword_function) (object_reference) @name) @function
        (create_trigger (keyword_trigger) (object_reference) @name) @function
        (create_type (keyword_type) (object_reference) @name) @function
        (create_index column: (identifier) @name (keyword_on)) @function
        """,
    ),
    CodeLanguage(
        "scala",
        "tree_sitter_scala",
        classes="class_definition object_definition trait_definition enum_definition",
        functions="function_definition function_declaration type_definition",
        leads="comment block_comment",
    ),
    CodeLanguage(
        "lua",
        "tree_sitter_lua",
        classes="",
        functions="function_declaration",
        more="""
        (assignment_statement (variable_list . name: (_) @name) (expression_list . value: (function_definition))) @function
        """,
    ),
)
_BY_NAME = {language.name: language for language in _LANGUAGES}

_FORMATS = {
    "python": "py pyi pyw",
    "javascript": "js mjs cjs jsx",
    "typescript": "ts mts cts",
    "tsx": "tsx",
    "go": "go",
    "rust": "rs",
    "java": "java",
    "kotlin": "kt kts",
    "c": "c h",
    "cpp": "cpp cc cxx hpp hh hxx ipp cu",
    "csharp": "cs",
    "ruby": "rb rakefile gemfile vagrantfile brewfile",
    "php": "php",
    "swift": "swift",
    "bash": "sh bash bashrc profile",
    "sql": "sql",
    "scala": "scala sc",
    "lua": "lua",
}
LANGUAGE_OF_FORMAT = {format_: name for name, formats in _FORMATS.items() for format_ in formats.split()}
"""Format (of `file_types`) → name of the language."""

_ONLY_CPP = re.compile(r"^\s*(?:class\s+\w[^;=()]*[{:\n]|namespace\b|template\s*<|public:|private:|using\s)", re.MULTILINE)


def code_language(format_: str, text: str) -> CodeLanguage | None:
    """The language of a file. A header may be C or C++; its text tells."""
    name = LANGUAGE_OF_FORMAT.get(format_)
    if name is None:
        return None
    return _BY_NAME["cpp" if format_ == "h" and _ONLY_CPP.search(text) else name]


def all_code_languages() -> tuple[CodeLanguage, ...]:
    return _LANGUAGES
