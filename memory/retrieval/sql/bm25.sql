holds AS MATERIALIZED (
    SELECT mine.id, mine.language, term.query, term.times, term.average_length,
           length(mine.search_vector) AS length, frequency.tf
    FROM mine
    JOIN term ON term.language = mine.language AND mine.search_vector @@ term.query,
         -- ts_rank turned round, as in search/retrieval/sql/bm25.sql
         LATERAL (SELECT ts_rank('{1,1,1,1}', mine.search_vector, term.query)::float8 AS anywhere,
                         ts_rank('{0,0,0,1}', mine.search_vector, term.query)::float8 AS said
                 ) AS rank,
         LATERAL (SELECT CASE WHEN anywhere >= 1 THEN round(1.64493406685 * anywhere)
                              ELSE round(1 / (1.64493406685 * (1 - anywhere)) - 0.5) END
                       + CASE WHEN said >= 1 THEN round(1.64493406685 * said)
                              WHEN said > 1e-10
                         THEN round(1 / (1.64493406685 * (1 - said)) - 0.5) ELSE 0 END
                         * %(said_boost)s AS tf) AS frequency
),
weight AS MATERIALIZED (
    SELECT term.language, term.query, term.times,
           -- the + 1 keeps the weight of a word that stands in most rows above zero (Lucene)
           ln(1 + (term.rows - count(holds.id) + 0.5) / (count(holds.id) + 0.5)) AS idf
    FROM term
    LEFT JOIN holds ON holds.language = term.language AND holds.query = term.query
    GROUP BY term.language, term.query, term.times, term.rows
),
mass AS (
    SELECT language, sum(idf * times) AS whole FROM weight GROUP BY language
),
bm25 AS MATERIALIZED (
    SELECT holds.id,
           sum(holds.times * weight.idf * tf * (%(k1)s + 1)
               / (tf + %(k1)s * (1 - %(b)s
                                 + %(b)s * holds.length / holds.average_length))) AS score,
           sum(weight.idf * weight.times) / max(mass.whole) AS coverage
    FROM holds
    JOIN weight ON weight.language = holds.language AND weight.query = holds.query
    JOIN mass ON mass.language = holds.language
    GROUP BY holds.id
)
