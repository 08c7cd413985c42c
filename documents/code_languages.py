"""Programming languages and formats of settings, by the names of their files."""

from dataclasses import dataclass
from pathlib import PurePosixPath


@dataclass(frozen=True, slots=True)
class CodeLanguage:
    """`name` is how `code_blocks` and the media type call it, `label` how people do."""

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

_BY_FILE_NAME = {name: language for language in LANGUAGES for name in language.file_names}


def language_of_file_name(name: str) -> CodeLanguage | None:
    """For files that are known by their whole name, such as `Dockerfile`, in any folder."""
    file_name = PurePosixPath(name.replace("\\", "/")).name.lower()
    return _BY_FILE_NAME.get(file_name)
