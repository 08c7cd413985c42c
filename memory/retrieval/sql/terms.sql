language AS MATERIALIZED (
    -- among a handful of rows a word that is in none would weigh five times one that is in one
    SELECT language,
           greatest(count(*), %(least_rows)s)::float8 AS rows,
           avg(length(search_vector))::float8 AS average_length
    FROM mine
    GROUP BY language
),
-- the question's lexemes, once a language; the text form of a tsquery quotes any character
lexeme AS (
    SELECT language.*, cardinality(found.positions) AS times,
           '''' || replace(replace(found.lexeme, '\', '\\'), '''', '''''') || '''' AS quoted
    FROM language, unnest(to_tsvector(language.language, ragsite_words(%(text)s))) AS found
    -- the parser gives a hyphenated word and its parts
    WHERE found.lexeme !~ '^[[:alnum:]]+(-[[:alnum:]]+)+$'
      -- 東京大学 → 東京 京大 大学 学, whose last letter says no more than the pair before it
      AND NOT ragsite_is_letter(found.lexeme)
    UNION ALL
    SELECT language.*, 1, stem.query::text
    FROM language, unnest(%(prefixes)s::text[]) AS word,
         LATERAL (SELECT to_tsquery(language.language, word || ':*') AS query) AS stem
    WHERE numnode(stem.query) > 0
),
-- materialised, because a cast that is inlined is evaluated for every row
term AS MATERIALIZED (
    SELECT row_number() OVER () AS number, language, rows, average_length, times,
           quoted::tsquery AS query
    FROM lexeme
)
