r"""Chinese, Japanese, Korean, Thai, Lao, Khmer and Burmese are found by pairs of characters.

Writes the chunk table anew, and the words of every collection are counted again. The functions have
SQL bodies, which PostgreSQL keeps parsed: no search path changes them, and a dump restores them in
time. They are not STRICT, because a strict one with a CASE would not be inlined.
"""

from typing import Any

import django.contrib.postgres.indexes
import django.contrib.postgres.search
from django.db import migrations, models

import common.fields
import common.search_vector

INDEX = "chunk_search_vector_index"

# Whatever common.text becomes, what is stored was made with these.
HANGUL = (
    r"\u1100-\u11ff\u3131-\u318e\ua960-\ua97f\uac00-\ud7a3\ud7b0-\ud7ff\uffa0-\uffbe"
    r"\uffc2-\uffdc"
)
UNSPACED = (
    # Han
    r"\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u303b\u3105-\u312f\u31a0-\u31bf\u3400-\u4dbf"
    r"\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd"
    # Kana
    r"\u3031-\u3035\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
    r"\uff66-\uff9d\U0001b000-\U0001b16f"
    # Thai, Lao, Khmer, Burmese
    r"\u0e01-\u0e30\u0e32\u0e33\u0e40-\u0e46\u0e81-\u0eb0\u0eb2\u0eb3\u0ebd\u0ec0-\u0ec6"
    r"\u0edc-\u0edf\u1780-\u17b3\u17d7\u17dc\u1000-\u102a\u103f\u1050-\u1055\u105a-\u105d\u1061"
    r"\u1065\u1066\u106e-\u1070\u1075-\u1081\u108e"
)
LETTERS = HANGUL + UNSPACED
MARKS = (
    r"\u3099\u309a\uff9e\uff9f\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece"
    r"\u17b4-\u17d3\u17dd\u102b-\u103e\u1056-\u1059\u105e-\u1060\u1062-\u1064\u1067-\u106d"
    r"\u1071-\u1074\u1082-\u108d\u108f\u109a-\u109d"
)
#: Full-width letters and digits, Roman numerals, ㈱ and ㎏: other characters in disguise.
WIDE = r"\uff10-\uff19\uff21-\uff3a\uff41-\uff5a\u2160-\u217f\u3200-\u33ff"
APART = (
    # what NFKC would melt into its neighbour: 10² into a hundred and two, Aspirin™ into AspirinTM
    r"\u00b2\u00b3\u00b9\u00bc-\u00be\u2070-\u209c\u2100-\u2125\u2150-\u215f\u2460-\u249b"
    r"\u24ea-\u24ff"
    # what would become the `<` that the parser takes for the beginning of a tag
    r"\ufe64\ufe65\uff1c\uff1e"
    # 、。「」・ and their like, which a database of ctype C takes for letters
    r"\u3001-\u3004\u3008-\u3020\u30fb\uff61-\uff65"
)
UNIT = f"[{LETTERS}][{MARKS}]*"
IN_RUN = f"[{LETTERS}{MARKS}]"
# A line may end within a word of these, while Korean puts spaces there.
AT_LINE_END = f"(?<=[{UNSPACED}{MARKS}])[ \\t]*\\n[ \\t]*(?=[{UNSPACED}])"
IN_NAME = "(?<=[[:alnum:]])[._/](?=[[:alpha:]])"
#: A tsvector holds a megabyte, which pairs of the longest chunk's characters might exceed.
PAIRED = 50_000

FORWARD = rf"""
-- 東京大学 → 東京 京大 大学 学: each letter but the first of a run closes a pair and opens another
CREATE FUNCTION ragsite_pairs(said text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN regexp_replace(
        regexp_replace(
            regexp_replace(
                normalize(regexp_replace(left(said, {PAIRED}), '[{APART}]', ' ', 'g'), NFKC),
                '{AT_LINE_END}', '', 'g'),
            '({IN_RUN}+)', ' \1 ', 'g'),
        '(?<={IN_RUN})({UNIT})', '\1 \1', 'g') || substr(said, {PAIRED + 1});

-- the text that to_tsvector is to see, of chunks and of queries; as many bytes as characters are
-- ASCII, which costs nothing to see
CREATE FUNCTION ragsite_words(said text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN regexp_replace(
        CASE WHEN octet_length(said) <> length(said) AND said ~ '[{LETTERS}{WIDE}]'
             THEN ragsite_pairs(said) ELSE said END,
        '{IN_NAME}', ' ', 'g');

-- a letter alone, such as closes a run
CREATE FUNCTION ragsite_is_letter(word text) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN word ~ '^{UNIT}$';

-- a letter that closes a run begins a pair where the text goes on, so it is a prefix; the last one
-- says nothing that the pair before it does not
CREATE FUNCTION ragsite_open_ends(phrase tsquery) RETURNS tsquery
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN regexp_replace(
        regexp_replace(phrase::text, '({UNIT})({UNIT})'' <-> ''\2''$', '\1\2'''),
        '''({UNIT})''', '''\1'':*', 'g')::tsquery;

-- what must follow each other; one tsquery for all languages, hence a constant, where none differs
CREATE FUNCTION ragsite_phrase(language regconfig, said text) RETURNS tsquery
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE
        WHEN said ~ '^({IN_RUN}|\s)+$'
            THEN ragsite_open_ends(phraseto_tsquery('pg_catalog.simple', ragsite_words(said)))
        WHEN said ~ '[{LETTERS}{WIDE}]'
            THEN ragsite_open_ends(phraseto_tsquery(language, ragsite_words(said)))
        ELSE phraseto_tsquery(language, ragsite_words(said)) END;
"""
BACKWARD = """
DROP FUNCTION ragsite_phrase(regconfig, text);
DROP FUNCTION ragsite_open_ends(tsquery);
DROP FUNCTION ragsite_is_letter(text);
DROP FUNCTION ragsite_words(text);
DROP FUNCTION ragsite_pairs(text);
"""


def vector(context: Any, text: Any) -> models.GeneratedField:
    return models.GeneratedField(
        db_persist=True,
        expression=models.Func(
            common.fields.ToTSVector("language", context, weight="A"),
            common.fields.ToTSVector("language", text, weight="D"),
            arg_joiner=" || ",
            output_field=django.contrib.postgres.search.SearchVectorField(),
            template="%(expressions)s",
        ),
        output_field=django.contrib.postgres.search.SearchVectorField(),
    )


def count_again(apps: Any, schema_editor: Any) -> None:
    apps.get_model("documents", "Collection").objects.update(statistics_stale=True)


class Migration(migrations.Migration):
    dependencies = [("documents", "0006_collection_search")]

    operations = [
        migrations.RunPython(count_again, count_again),
        migrations.RunSQL(FORWARD, BACKWARD),
        migrations.RemoveIndex("chunk", INDEX),
        migrations.RemoveField("chunk", "search_vector"),
        migrations.AddField(
            "chunk",
            "search_vector",
            vector(common.search_vector.Words("context"), common.search_vector.Words("text")),
        ),
        migrations.AddIndex(
            "chunk",
            django.contrib.postgres.indexes.GinIndex(
                models.F("search_vector"), fastupdate=False, name=INDEX
            ),
        ),
    ]
