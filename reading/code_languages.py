"""Programming languages and configuration formats: file names, media types, and how their classes
and functions are found (`GRAMMARS` for tree-sitter, `LINE_PATTERNS` for the others)."""

import re
from dataclasses import dataclass
from pathlib import PurePosixPath


@dataclass(frozen=True, slots=True)
class CodeLanguage:
    """`name` is used by `code_blocks` and the media type, `label` is for people."""

    name: str
    label: str
    suffixes: tuple[str, ...]
    file_names: tuple[str, ...] = ()

    @property
    def media_type(self) -> str:
        return f"text/x-{self.name}"


LANGUAGES: tuple[CodeLanguage, ...] = (
    CodeLanguage("python", "Python", (".py", ".pyi", ".pyw"), ("sconstruct", "wscript")),
    CodeLanguage("javascript", "JavaScript", (".js", ".mjs", ".cjs", ".jsx")),
    CodeLanguage("typescript", "TypeScript", (".ts", ".mts", ".cts")),
    CodeLanguage("tsx", "TypeScript with JSX", (".tsx",)),
    CodeLanguage("java", "Java", (".java",)),
    CodeLanguage("rust", "Rust", (".rs",)),
    CodeLanguage("go", "Go", (".go",)),
    CodeLanguage("c", "C", (".c",)),
    # A header may be either's, and the grammar of C++ reads C.
    CodeLanguage("cpp", "C++", (".cpp", ".cc", ".cxx", ".h", ".hpp", ".hh", ".hxx", ".inl")),
    CodeLanguage("csharp", "C#", (".cs",)),
    CodeLanguage("ruby", "Ruby", (".rb", ".rake", ".gemspec"), ("gemfile", "rakefile")),
    CodeLanguage("php", "PHP", (".php", ".phtml")),
    CodeLanguage("bash", "Shell", (".sh", ".bash", ".zsh", ".ksh")),
    CodeLanguage("kotlin", "Kotlin", (".kt", ".kts")),
    CodeLanguage("swift", "Swift", (".swift",)),
    CodeLanguage("scala", "Scala", (".scala", ".sc")),
    CodeLanguage("lua", "Lua", (".lua",)),
    CodeLanguage("r", "R", (".r",)),
    CodeLanguage("julia", "Julia", (".jl",)),
    CodeLanguage("perl", "Perl", (".pl", ".pm")),
    CodeLanguage("powershell", "PowerShell", (".ps1", ".psm1")),
    CodeLanguage("elixir", "Elixir", (".ex", ".exs")),
    CodeLanguage("dart", "Dart", (".dart",)),
    CodeLanguage("css", "CSS", (".css", ".scss", ".less")),
    CodeLanguage("toml", "TOML", (".toml",)),
    CodeLanguage("ini", "INI", (".ini", ".cfg", ".conf", ".properties")),
    CodeLanguage("yaml", "YAML", (".yaml", ".yml")),
    CodeLanguage("makefile", "Makefile", (".mk",), ("makefile", "gnumakefile")),
    CodeLanguage("dockerfile", "Dockerfile", (".dockerfile",), ("dockerfile", "containerfile")),
    CodeLanguage("sql", "SQL", (".sql", ".ddl")),
)

_BY_FILE_NAME = {
    name: language for language in LANGUAGES for name in (*language.file_names, *language.suffixes)
}


def language_of_file_name(name: str) -> CodeLanguage | None:
    """The language of a file by its full name, such as `Dockerfile`, else by its suffix."""
    path = PurePosixPath(name.replace("\\", "/").lower())
    return _BY_FILE_NAME.get(path.name) or _BY_FILE_NAME.get(path.suffix)


@dataclass(frozen=True, slots=True)
class Grammar:
    """A tree-sitter grammar and the query whose captures are blocks, named by their kind.

    `@name` is the node whose text is the block's name; where it is missing, the block's own first
    line up to its body is. `@owner` is what the name belongs to.
    """

    module: str
    query: str
    function: str = "language"


_C_QUERY = """
    (function_definition declarator: (_) @name) @function
    (struct_specifier name: (_) @name body: (_)) @struct
    (union_specifier name: (_) @name body: (_)) @union
    (enum_specifier name: (_) @name body: (_)) @enum
    (type_definition declarator: (type_identifier) @name) @type
"""
_JAVASCRIPT_QUERY = """
    (function_declaration name: (_) @name) @function
    (generator_function_declaration name: (_) @name) @function
    (class_declaration name: (_) @name) @class
    (method_definition name: (_) @name) @method
    (variable_declarator name: (identifier) @name
        value: [(arrow_function) (function_expression)]) @function
    (variable_declarator name: (identifier) @name value: (class)) @class
    (assignment_expression left: (_) @name
        right: [(arrow_function) (function_expression)]) @function
    (pair key: (_) @name value: [(arrow_function) (function_expression)]) @function
"""
_TYPESCRIPT_QUERY = f"""{_JAVASCRIPT_QUERY}
    (abstract_class_declaration name: (_) @name) @class
    (interface_declaration name: (_) @name) @interface
    (type_alias_declaration name: (_) @name) @type
    (enum_declaration name: (_) @name) @enum
    (internal_module name: (_) @name) @namespace
    (module name: (_) @name) @module
    (public_field_definition name: (_) @name value: (arrow_function)) @method
"""

GRAMMARS: dict[str, Grammar] = {
    "python": Grammar(
        "tree_sitter_python",
        """
        (class_definition name: (_) @name) @class
        (function_definition name: (_) @name) @function
        """,
    ),
    "javascript": Grammar(
        "tree_sitter_javascript",
        f"{_JAVASCRIPT_QUERY} (field_definition property: (_) @name value:"
        " (arrow_function)) @method",
    ),
    "typescript": Grammar("tree_sitter_typescript", _TYPESCRIPT_QUERY, "language_typescript"),
    "tsx": Grammar("tree_sitter_typescript", _TYPESCRIPT_QUERY, "language_tsx"),
    "java": Grammar(
        "tree_sitter_java",
        """
        (class_declaration name: (_) @name) @class
        (interface_declaration name: (_) @name) @interface
        (enum_declaration name: (_) @name) @enum
        (record_declaration name: (_) @name) @class
        (annotation_type_declaration name: (_) @name) @interface
        (method_declaration name: (_) @name) @method
        (constructor_declaration name: (_) @name) @method
        """,
    ),
    "rust": Grammar(
        "tree_sitter_rust",
        """
        (function_item name: (_) @name) @function
        (mod_item name: (_) @name body: (_)) @module
        (struct_item name: (_) @name) @struct
        (enum_item name: (_) @name) @enum
        (union_item name: (_) @name) @union
        (trait_item name: (_) @name) @trait
        (impl_item) @impl
        (macro_definition name: (_) @name) @function
        """,
    ),
    "go": Grammar(
        "tree_sitter_go",
        """
        (function_declaration name: (_) @name) @function
        (method_declaration receiver: (_) @owner name: (_) @name) @function
        (type_spec name: (_) @name) @type
        """,
    ),
    "c": Grammar("tree_sitter_c", _C_QUERY),
    "cpp": Grammar(
        "tree_sitter_cpp",
        f"""{_C_QUERY}
        (class_specifier name: (_) @name body: (_)) @class
        (namespace_definition name: (_) @name) @namespace
        """,
    ),
    "csharp": Grammar(
        "tree_sitter_c_sharp",
        """
        (namespace_declaration name: (_) @name) @namespace
        (class_declaration name: (_) @name) @class
        (interface_declaration name: (_) @name) @interface
        (struct_declaration name: (_) @name) @struct
        (record_declaration name: (_) @name) @class
        (enum_declaration name: (_) @name) @enum
        (method_declaration name: (_) @name) @method
        (constructor_declaration name: (_) @name) @method
        """,
    ),
    "ruby": Grammar(
        "tree_sitter_ruby",
        """
        (module name: (_) @name) @module
        (class name: (_) @name) @class
        (method name: (_) @name) @method
        (singleton_method name: (_) @name) @method
        """,
    ),
    "php": Grammar(
        "tree_sitter_php",
        """
        (namespace_definition name: (_) @name body: (_)) @namespace
        (class_declaration name: (_) @name) @class
        (interface_declaration name: (_) @name) @interface
        (trait_declaration name: (_) @name) @trait
        (enum_declaration name: (_) @name) @enum
        (function_definition name: (_) @name) @function
        (method_declaration name: (_) @name) @method
        """,
        "language_php",
    ),
    "bash": Grammar("tree_sitter_bash", "(function_definition name: (_) @name) @function"),
    "kotlin": Grammar(
        "tree_sitter_kotlin",
        """
        (class_declaration name: (_) @name) @class
        (object_declaration name: (_) @name) @class
        (companion_object) @class
        (function_declaration name: (_) @name) @function
        """,
    ),
    "swift": Grammar(
        "tree_sitter_swift",
        """
        (class_declaration name: (_) @name) @class
        (protocol_declaration name: (_) @name) @interface
        (function_declaration name: (simple_identifier) @name) @function
        (init_declaration) @method
        """,
    ),
    "scala": Grammar(
        "tree_sitter_scala",
        """
        (class_definition name: (_) @name) @class
        (object_definition name: (_) @name) @class
        (trait_definition name: (_) @name) @trait
        (enum_definition name: (_) @name) @enum
        (function_definition name: (_) @name) @function
        """,
    ),
    "lua": Grammar(
        "tree_sitter_lua",
        """
        (function_declaration name: (_) @name) @function
        (assignment_statement (variable_list (_) @name)
            (expression_list (function_definition))) @function
        """,
    ),
}


def _line_pattern(pattern: str, flags: re.RegexFlag = re.M) -> re.Pattern[str]:
    return re.compile(pattern, flags | re.M)


#: Where there is no small grammar: a line that matches begins a block, which ends where the next
#: one begins. The first group that matched is its name.
LINE_PATTERNS: dict[str, re.Pattern[str]] = {
    "r": _line_pattern(r"^([\w.]{1,100})[ \t]*(?:<-|=)[ \t]*function\b"),
    "julia": _line_pattern(
        r"^(?:function|macro|module|struct|mutable struct|abstract type)[ \t]+([\w!.]{1,100})"
    ),
    "perl": _line_pattern(r"^(?:sub|package)[ \t]+([\w:]{1,100})"),
    "powershell": _line_pattern(r"^(?:function|filter|class)[ \t]+([\w:-]{1,100})", re.I),
    "elixir": _line_pattern(r"^[ \t]{0,40}(?:defmodule|defp?|defmacro)[ \t]+([\w.!?]{1,100})"),
    "dart": _line_pattern(r"^(?:abstract[ \t]+)?(?:class|mixin|enum|extension)[ \t]+(\w{1,100})"),
    "toml": _line_pattern(r"^\[{1,2}([^\[\]\n]{1,200})\]{1,2}[ \t]*(?:#.*)?$"),
    "ini": _line_pattern(r"^\[([^\[\]\n]{1,200})\][ \t]*$"),
    "yaml": _line_pattern(r"^([A-Za-z_][\w.-]{0,100}):(?=[ \t\n]|\Z)"),
    "makefile": _line_pattern(
        r"^([A-Za-z0-9_.%/$(){}-][A-Za-z0-9_.%/$(){} -]{0,100}?)[ \t]*::?(?![=:])"
    ),
    "dockerfile": _line_pattern(r"^FROM[ \t]+(.{1,200})$", re.I),
}
