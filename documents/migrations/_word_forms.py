r"""SQL functions that list the forms in which people may type the words of a text: `ragsite_forms`.

Migration 0014 needs them for its index, so that they are in a module of their own.
"""

#: Marks over and under letters, of Latin, Greek, Cyrillic, Hebrew and Arabic, and the tatweel.
MARKS = (
    r"\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a"
    r"\u0640\u064b-\u065f\u0670\u06d6-\u06ed"
)
IN_WORD = rf"[[:alnum:]{MARKS}]"
LIGATURES = {
    "ß": "ss", "ẞ": "SS", "æ": "ae", "Æ": "AE", "œ": "oe", "Œ": "OE", "þ": "th", "Þ": "Th",
    "ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st",
}  # fmt: skip
DIGRAPHS = {
    "ä": "ae", "ö": "oe", "ü": "ue", "å": "aa", "ø": "oe",
    "Ä": "Ae", "Ö": "Oe", "Ü": "Ue", "Å": "Aa", "Ø": "Oe",
}  # fmt: skip
#: One letter for another: what has no mark that could be removed, Arabic and Persian letters of one
#: sound or shape as Lucene's ArabicNormalizer and PersianNormalizer have them, and digits.
SINGLE = (
    "øØłŁđĐðÐħĦıŧŦĸŋŊςٱىةیکەھ٠١٢٣٤٥٦٧٨٩۰۱۲۳۴۵۶۷۸۹µ‐‑–",
    "oOlLdDdDhHitTknNσايهيكهه01234567890123456789μ---",
)
#: Digits above and below the line. The parser ends words at them.
SMALL_DIGITS = ("⁰¹²³⁴⁵⁶⁷⁸⁹₀₁₂₃₄₅₆₇₈₉", "01234567890123456789")
#: What a word must have for another form: of the scripts above, letters that are not the plainest.
LETTERS = (
    rf"{MARKS}\u00c0-\u024f\u1e00-\u1fff\ufb00-\ufb4f\u0386-\u0390\u03aa-\u03b0\u03ca-\u03ce"
    rf"ёйїўѓќЁЙЇЎЃЌ\u0622-\u0626\u2126\u212a\u212b{SINGLE[0]}"
).replace("‐‑–", "")
EMOJI = r"\U0001F000-\U0001FAFF\u2600-\u27bf\u2b50\u2b55"
SYMBOL = rf"([[:alnum:]]+(?:\+\+|#)|[{EMOJI}])"


def replaced(expression: str, pairs: dict[str, str]) -> str:
    """SQL that replaces each of them."""
    for one, other in pairs.items():
        expression = f"replace({expression}, '{one}', '{other}')"
    return expression


UNMARKED = f"normalize(regexp_replace(normalize(said, NFD), '[{MARKS}]', '', 'g'), NFC)"

FUNCTIONS = rf"""
CREATE OR REPLACE FUNCTION ragsite_fold(said text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN translate({replaced(UNMARKED, LIGATURES)}, '{SINGLE[0]}', '{SINGLE[1]}');

-- as it is typed without such letters in German, Danish, Norwegian, Swedish
CREATE OR REPLACE FUNCTION ragsite_digraphs(said text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN {replaced("normalize(said, NFC)", DIGRAPHS)};

CREATE OR REPLACE FUNCTION ragsite_retyped(said text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN concat_ws(' ',
        -- Orléans → Orleans, München → Munchen Muenchen
        CASE WHEN octet_length(said) <> length(said) THEN (
            SELECT string_agg(concat_ws(' ', ragsite_fold(match[1]),
                       CASE WHEN normalize(match[1], NFC) ~ '[{"".join(DIGRAPHS)}]'
                            THEN ragsite_fold(ragsite_digraphs(match[1])) END),
                   ' ')
            FROM regexp_matches(said, '({IN_WORD}*[{LETTERS}]{IN_WORD}*)', 'g') AS match) END,
        -- CO₂ → CO2, m² → m2, ²³⁵U → 235U
        CASE WHEN octet_length(said) <> length(said) THEN (
            SELECT string_agg(translate(match[1], '{SMALL_DIGITS[0]}', '{SMALL_DIGITS[1]}'), ' ')
            FROM regexp_matches(said, '([[:alnum:]]+[{SMALL_DIGITS[0]}][[:alnum:]{SMALL_DIGITS[0]}]*'
                                      '|[{SMALL_DIGITS[0]}]+[[:alpha:]][[:alnum:]]*)', 'g') AS match)
            END,
        -- AB-1234 → AB1234, get_user_by_id → getuserbyid, 1,234.50 → 1234.50, 1.234,50 → 1234,50
        (SELECT string_agg(
                    regexp_replace(match[1], CASE WHEN match[1] ~ '^[0-9]+,[0-9.,]+$' THEN ','
                                                  WHEN match[1] ~ ',' THEN '[.]'
                                                  ELSE '[-_./&]' END, '', 'g'), ' ')
         FROM regexp_matches(said, '([[:alnum:]]+(?:[-_./&][[:alnum:]]+)+'
                                   '|[0-9]{{1,3}}(?:,[0-9]{{3}})+(?:[.][0-9]+)?'
                                   '|[0-9]{{1,3}}(?:[.][0-9]{{3}})+,[0-9]+)', 'g') AS match
         WHERE length(match[1]) < 40
           AND (match[1] !~ '^[0-9.]+$' OR match[1] ~ '^[0-9]{{1,3}}([.][0-9]{{3}})+$')),
        -- getUserById → get User By Id, XZ9876 → XZ 9876
        CASE WHEN said ~ '[[:lower:]][[:upper:]]|[[:alpha:]][0-9]{{2}}' THEN (
            SELECT string_agg(regexp_replace(regexp_replace(regexp_replace(match[1],
                       '([[:lower:]])([[:upper:]])', '\1 \2', 'g'),
                       '([[:upper:]])([[:upper:]][[:lower:]])', '\1 \2', 'g'),
                       '([[:alpha:]])([0-9]{{2}})', '\1 \2', 'g'), ' ')
            FROM regexp_matches(said, '([[:alnum:]]*(?:[[:lower:]][[:upper:]][[:alnum:]]*'
                                      '|[[:alpha:]][0-9]{{2}}[[:alnum:]]*))', 'g') AS match) END);

-- the forms of a text's words that are not among its words
CREATE OR REPLACE FUNCTION ragsite_forms(language regconfig, said text, words tsvector)
    RETURNS text[] LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    known text[] := tsvector_to_array(words);
    forms text[] := tsvector_to_array(to_tsvector(language, ragsite_retyped(said)));
BEGIN
    IF said ~ '\+\+|#|[{EMOJI}]' THEN
        forms := forms || ARRAY(
            SELECT lower(match[1]) FROM regexp_matches(said, '{SYMBOL}', 'g') AS match);
    END IF;
    IF said ~ '[-+/][0-9]|[0-9]/' THEN
        -- AB-1234 → 1234, 12/345-A → 12 345
        forms := forms || ARRAY(
            SELECT coalesce(match[1], match[2])
            FROM regexp_matches(said, '[-+/]([0-9]+)|([0-9]+)/', 'g') AS match);
    END IF;
    IF said ~ '[0-9][.][0-9]' THEN
        -- 3.11.4 → 3.11, v4.0.0-rc1 → v4 4.0 4.0.0
        forms := forms || ARRAY(
            SELECT form
            FROM regexp_matches(said, '\m(v?[0-9]+(?:[.][0-9]+)+(?:-[[:alnum:].]+)?)', 'g') AS match,
                 generate_series(2, length(match[1]) + 1) AS place,
                 unnest(ARRAY[left(match[1], place - 1), ltrim(left(match[1], place - 1), 'v')])
                     AS form
            WHERE length(match[1]) < 40 AND match[1] ~ '^v|[.].*[.]' AND substr(match[1], place, 1) IN ('.', '-', '')
              AND form !~ '^[0-9]+$');
    END IF;
    -- EXCEPT hashes: `<> ALL (known)` would compare each form with each word
    RETURN ARRAY(SELECT DISTINCT lower(form)
                 FROM (SELECT unnest(forms) EXCEPT SELECT unnest(known)) AS missing (form)
                 WHERE NOT ragsite_is_letter(form) AND form <> '');
END $$;

-- under which lexemes the index lists a chunk, how often it has each; '' lists all chunks
CREATE OR REPLACE FUNCTION ragsite_postings(
        language regconfig, context text, said text, words tsvector)
    RETURNS TABLE (lexeme text, frequency bigint) LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT '', 1::bigint
    UNION ALL
    -- a word of the context counts twice: as a word, and as a heading (weight A)
    SELECT word.lexeme,
           least(cardinality(positions) + cardinality(array_positions(weights, 'A')), 255)
    FROM unnest(words) AS word
    UNION ALL
    SELECT chr(1) || form, 1
    FROM unnest(ragsite_forms(language, context || E'\n' || said, words)) AS form
$$;
"""  # noqa: S608 (constants)
