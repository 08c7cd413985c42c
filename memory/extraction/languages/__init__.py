"""What people say of themselves, a table for each language."""

from memory.extraction.languages.english import ENGLISH
from memory.extraction.languages.german import GERMAN
from memory.extraction.languages.table import Language

LANGUAGES: tuple[Language, ...] = (ENGLISH, GERMAN)
