r"""Words are found as people type them: without accents, with `ae` for `ä`, identifiers without their
punctuation or by their parts, symbols such as `C++` and emoji.

`ragsite_forms` lists such forms of a text's words. Postings list them as lexemes that begin with
chr(1), which no word does, beside the words themselves (docs/decisions/0088).
"""

from typing import Any

from django.db import migrations

from documents import lexical_index
from documents.migrations._word_forms import FUNCTIONS

#: As the owner of the tables: whoever changes chunks may see a part of them only.
FUNCTION = "LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT"
POSTINGS = """
    INSERT INTO documents_pendingposting
        (workspace_id, collection_id, lexeme, index_id, language, is_current, entries)
    SELECT workspace_id, collection_id, word.lexeme COLLATE "C", min(index_id), language, is_current,
           array_agg(listed | (word.frequency << 16))
    -- OFFSET 0: or each vector would be read once a word
    FROM (SELECT workspace_id, collection_id, language, is_current, index_id, context, text,
                 search_vector, (index_id << 24) | least(length(search_vector), 65535) AS listed
          FROM {chunks} OFFSET 0) AS chunk,
         LATERAL ({words}) AS word
    GROUP BY workspace_id, collection_id, language, is_current, word.lexeme COLLATE "C";
"""
WORDS = "SELECT * FROM ragsite_postings(language, context, text, search_vector)"
FORMER_WORDS = """
    SELECT '' AS lexeme, 1::bigint AS frequency
    UNION ALL
    SELECT lexeme, least(cardinality(positions) + cardinality(array_positions(weights, 'A')), 255)
    FROM unnest(search_vector)"""


def triggers(words: str) -> str:
    """The functions of the triggers that make chunks pending."""
    return f"""
CREATE OR REPLACE FUNCTION documents_index_new_chunks() RETURNS trigger {FUNCTION} AS $$
BEGIN
    INSERT INTO documents_pendingchunk (workspace_id, collection_id, index_id)
    SELECT workspace_id, collection_id, index_id FROM new_chunk;
    {POSTINGS.format(chunks="new_chunk", words=words)}
    RETURN NULL;
END $$;
CREATE OR REPLACE FUNCTION documents_index_changed_words() RETURNS trigger {FUNCTION} AS $$
BEGIN
    {POSTINGS.format(chunks="(SELECT NEW.*) AS changed", words=words)}
    RETURN NULL;
END $$;
"""  # noqa: S608 (constants)


def index_forms(apps: Any, schema_editor: Any) -> None:
    lexical_index.index_forms()


WITHOUT_FORMS = """
DELETE FROM documents_posting WHERE lexeme >= chr(1) AND lexeme < chr(3);
DELETE FROM documents_pendingposting WHERE lexeme >= chr(1) AND lexeme < chr(3);
"""


class Migration(migrations.Migration):
    atomic = False  # a transaction for each collection, and all of it may run again
    dependencies = [("documents", "0023_index_at_once")]

    operations = [
        migrations.RunSQL(FUNCTIONS, migrations.RunSQL.noop),
        migrations.RunSQL(triggers(WORDS), triggers(FORMER_WORDS) + WITHOUT_FORMS),
        migrations.RunPython(index_forms, migrations.RunPython.noop),
    ]
