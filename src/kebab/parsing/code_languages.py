"""Programming languages with symbols: their file formats, grammars, and the nodes of a syntax tree that are symbols.

Queries in tree-sitter's own language find the symbols. A query captures:

    @class     a symbol that contains symbols: a class, struct, interface, trait, impl, namespace, module
    @function  a symbol that contains none; everything inside is part of it
    @name      the name of the symbol; of several, all from the first to the last (`operator` and its sign)
    @owner     a name that precedes @name (Go's receiver)
    @wrapper   the function that is called with a function, and whose result has the name (`memo`)
    @lead      a comment, decorator or attribute, which belongs to the symbol directly below
"""

from __future__ import annotations

import re
from typing import NamedTuple


class CodeLanguage(NamedTuple):
    name: str
    """The name that citations show."""
    grammar: str
    """The Python module of the grammar, and its function unless that is `language`; "" for `sql_definitions`."""
    classes: str = ""
    """Node types that are classes and have a field `name`."""
    functions: str = ""
    """Node types that are functions and have a field `name`."""
    leads: str = "comment"
    more: str = ""
    """Further queries, for symbols whose name is not in a field `name`."""
    noise: str = r"(?!)"
    """A pattern of text that is removed from names."""

    @property
    def query(self) -> str:
        classes = [f"({kind} name: (_) @name) @class" for kind in self.classes.split()]
        functions = [f"({kind} name: (_) @name) @function" for kind in self.functions.split()]
        leads = [f"({kind}) @lead" for kind in self.leads.split()]
        return "\n".join([*classes, *functions, *leads, self.more])


_FUNCTION_VALUE = "[(arrow_function) (function_expression) (generator_function)]"
# In an object, an arrow function without braces counts as a setting, not as a function.
_FUNCTION_WITH_BODY = "[(arrow_function body: (statement_block)) (function_expression) (generator_function)]"
_OBJECT_OF_FUNCTIONS = f"(object [(method_definition) (pair value: {_FUNCTION_WITH_BODY})])"
_WRAPPED_FUNCTION = f"(call_expression function: (_) @wrapper arguments: (arguments . {_FUNCTION_VALUE}))"
_INNER = _WRAPPED_FUNCTION.replace("@wrapper", "")
_WRAPPED_TWICE = f"(call_expression function: (_) @wrapper arguments: (arguments . {_INNER}))"
_NAMED_BY_A_VARIABLE = (
    (_FUNCTION_VALUE, "function"),
    (_WRAPPED_FUNCTION, "function"),
    (_WRAPPED_TWICE, "function"),
    ("(class)", "class"),
    (_OBJECT_OF_FUNCTIONS, "class"),
)
_NAMED_BY_AN_ASSIGNMENT = ((_FUNCTION_VALUE, "function"), ("(class !name)", "class"), (_OBJECT_OF_FUNCTIONS, "class"))
_JAVASCRIPT_VALUES = "\n".join(
    [
        f"({declaration} (variable_declarator name: (identifier) @name value: {value})) @{capture}"
        for declaration in ("lexical_declaration", "variable_declaration")
        for value, capture in _NAMED_BY_A_VARIABLE
    ]
    + [
        f"(expression_statement (assignment_expression left: (member_expression) @name right: {value})) @{capture}"
        for value, capture in _NAMED_BY_AN_ASSIGNMENT
    ]
    + [
        "(expression_statement (assignment_expression right: (class name: (_) @name))) @class",
        f"(pair key: (_) @name value: {_FUNCTION_WITH_BODY}) @function",
        f"(pair key: (_) @name value: {_OBJECT_OF_FUNCTIONS}) @class",
        f'(export_statement "default" @name value: {_FUNCTION_VALUE}) @function',
        '(export_statement "default" @name value: (class !name)) @class',
    ]
)
_JAVASCRIPT_NOISE = (
    r"^(?:module\.exports|exports|window|globalThis|global|self|this)\.|^module\.(?=exports$)|\.prototype\b"
)


def _below_pointers(function: str, deepest: int) -> list[str]:
    """Queries for a function that returns a value, a pointer, a pointer to a pointer …: each nests its name deeper."""
    forms = [function]
    for _ in range(deepest):
        forms.append(f"(pointer_declarator declarator: {forms[-1]})")
    return [f"(function_definition declarator: {form})" for form in forms]


_C_FUNCTIONS = "\n".join(
    f"{form} @function"
    for form in _below_pointers("(function_declarator declarator: [(identifier) (parenthesized_declarator)] @name)", 3)
)
_C_NOISE = r"^[(*&\s]+|\)+$"  # a function that returns a function has its name in parentheses
_C_TYPES = """
(struct_specifier name: (_) @name body: (_)) @class
(union_specifier name: (_) @name body: (_)) @class
(enum_specifier name: (_) @name body: (_)) @class
(type_definition
  type: [(struct_specifier !name body: (_)) (union_specifier !name body: (_)) (enum_specifier !name body: (_))]
  declarator: (type_identifier) @name) @class
(preproc_function_def name: (_) @name) @function
"""
_CPP_NAME = """[(identifier) (field_identifier) (qualified_identifier) (destructor_name) (operator_name)
  (template_function) (parenthesized_declarator)] @name"""
_CPP_FUNCTION = f"(function_declarator declarator: {_CPP_NAME})"
_CPP_FUNCTION_FORMS = (
    *_below_pointers(_CPP_FUNCTION, 2),  # not 3, because each form takes time to compile
    *_below_pointers(f"(reference_declarator {_CPP_FUNCTION})", 1),
    "(function_definition declarator: [(operator_cast) (qualified_identifier)] @name)",
)
_CPP_CLASS_FORMS = ("(class_specifier name: (_) @name body: (_))", "(struct_specifier name: (_) @name body: (_))")
# The line `template <…>` above a symbol is part of it, so both forms are matched, and the wider one is used.
_CPP = "\n".join(
    [f"{form} @function\n(template_declaration {form}) @function" for form in _CPP_FUNCTION_FORMS]
    + [f"{form} @class\n(template_declaration {form}) @class" for form in _CPP_CLASS_FORMS]
    + ["(namespace_definition name: (_) @name body: (_)) @class"]
)

_GO_RECEIVER = """[(type_identifier) @owner (generic_type type: (type_identifier) @owner)
  (pointer_type [(type_identifier) @owner (generic_type type: (type_identifier) @owner)])]"""

_TYPESCRIPT = CodeLanguage(
    "typescript",
    "tree_sitter_typescript:language_typescript",
    classes="""class_declaration abstract_class_declaration interface_declaration enum_declaration internal_module
    module""",
    functions="""function_declaration generator_function_declaration function_signature method_definition
    abstract_method_signature type_alias_declaration""",
    leads="comment decorator",
    more=_JAVASCRIPT_VALUES
    + f"""
    (public_field_definition name: (_) @name value: {_FUNCTION_VALUE}) @function
    (lexical_declaration (variable_declarator name: (identifier) @name
      value: [(as_expression {_OBJECT_OF_FUNCTIONS}) (satisfies_expression {_OBJECT_OF_FUNCTIONS})])) @class
    """,
    noise=_JAVASCRIPT_NOISE,
)

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
        (type_alias_statement left: (type [(identifier) @name (generic_type . (identifier) @name)])) @function
        """,
    ),
    CodeLanguage(
        "javascript",
        "tree_sitter_javascript",
        classes="class_declaration",
        functions="function_declaration generator_function_declaration method_definition",
        leads="comment decorator",
        more=_JAVASCRIPT_VALUES + f"(field_definition property: (_) @name value: {_FUNCTION_VALUE}) @function",
        noise=_JAVASCRIPT_NOISE,
    ),
    _TYPESCRIPT,
    _TYPESCRIPT._replace(name="tsx", grammar="tree_sitter_typescript:language_tsx"),
    CodeLanguage(
        "go",
        "tree_sitter_go",
        functions="function_declaration type_spec type_alias",
        more=f"""
        (method_declaration
          receiver: (parameter_list (parameter_declaration type: {_GO_RECEIVER})) name: (_) @name) @function
        (var_declaration (var_spec name: (identifier) @name value: (expression_list . (func_literal)))) @function
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
        noise=r"^(?:&\s*(?:'\w+\s+)?(?:mut\s+)?|\*(?:const|mut)\s+|dyn\s+)+",  # impl … for &'a mut X
    ),
    CodeLanguage(
        "java",
        "tree_sitter_java",
        classes="""class_declaration interface_declaration enum_declaration record_declaration
        annotation_type_declaration""",
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
    CodeLanguage("c", "tree_sitter_c", more=_C_FUNCTIONS + _C_TYPES, noise=_C_NOISE),
    CodeLanguage(
        "cpp",
        "tree_sitter_cpp",
        functions="alias_declaration concept_definition",
        more=_CPP + _C_TYPES,
        noise=_C_NOISE,
    ),
    CodeLanguage(
        "csharp",
        "tree_sitter_c_sharp",
        classes="""class_declaration struct_declaration interface_declaration enum_declaration record_declaration
        namespace_declaration""",
        functions="method_declaration constructor_declaration delegate_declaration local_function_statement",
        more="""
        (destructor_declaration "~" @name name: (_) @name) @function
        (operator_declaration "operator" @name operator: _ @name) @function
        (conversion_operator_declaration "operator" @name type: (_) @name) @function
        (indexer_declaration "this" @name) @function
        """,
    ),
    CodeLanguage(
        "ruby",
        "tree_sitter_ruby",
        classes="class module",
        functions="method singleton_method",
        more="""
        (program (singleton_method object: (constant) @owner name: (_) @name) @function)
        (assignment left: (constant) @name right: (call block: (_))) @class
        """,
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
        functions="typealias_declaration",
        leads="comment multiline_comment",
        # The grammar has a field `name` for the return type too, and the name of an operator is no named node.
        more="""
        (function_declaration "func" . name: _ @name) @function
        (protocol_function_declaration "func" . name: _ @name) @function
        (init_declaration "init" @name) @function
        (deinit_declaration "deinit" @name) @function
        (subscript_declaration "subscript" @name) @function
        """,
    ),
    CodeLanguage("bash", "tree_sitter_bash", functions="function_definition"),
    CodeLanguage("sql", ""),
    CodeLanguage(
        "scala",
        "tree_sitter_scala",
        classes="class_definition object_definition trait_definition enum_definition package_object given_definition",
        functions="function_definition function_declaration type_definition",
        leads="comment block_comment",
    ),
    CodeLanguage(
        "lua",
        "tree_sitter_lua",
        functions="function_declaration",
        more="""
        (assignment_statement
          (variable_list . name: (_) @name) (expression_list . value: (function_definition))) @function
        (assignment_statement (variable_list . name: (_) @name)
          (expression_list . value: (table_constructor (field value: (function_definition))))) @class
        (field name: (_) @name value: (function_definition)) @function
        """,
    ),
)
CODE_LANGUAGES = {language.name: language for language in _LANGUAGES}

_FORMATS = """python py pyi pyw, javascript js mjs cjs jsx, typescript ts mts cts, tsx tsx, go go, rust rs, java java,
    kotlin kt kts, c c h, cpp cpp cc cxx hpp hh hxx ipp cu, csharp cs, ruby rb rakefile gemfile vagrantfile brewfile,
    php php, swift swift, bash sh bash bashrc profile, sql sql, scala scala sc, lua lua"""
LANGUAGE_OF_FORMAT = {format_: name for name, *formats in map(str.split, _FORMATS.split(",")) for format_ in formats}
"""Format (of `file_types`) → name of the language."""

_ONLY_CPP = re.compile(
    r"^\s*(?:class\s+\w[^;=()]*[{:\n]|namespace\b|template\s*<|public:|private:|using\s)", re.MULTILINE
)


def code_language(format_: str, text: str) -> CodeLanguage | None:
    """The language of a format, or None. The text of a .h file decides between C and C++."""
    name = LANGUAGE_OF_FORMAT.get(format_)
    return CODE_LANGUAGES["cpp" if format_ == "h" and _ONLY_CPP.search(text) else name] if name else None
