holds AS MATERIALIZED (
    SELECT mine.id, term.number, length(mine.search_vector) / term.average_length AS length,
           frequency.tf
    FROM mine
    JOIN term ON term.language = mine.language AND mine.search_vector @@ term.query,
         -- ts_rank turned round, as in search/retrieval/sql/bm25.sql
         LATERAL (SELECT ts_rank('{1,1,1,1}', mine.search_vector, term.query)::float8 AS anywhere,
                         ts_rank('{0,0,0,1}', mine.search_vector, term.query)::float8 AS said
                  OFFSET 0) AS rank,
         LATERAL (SELECT CASE WHEN anywhere >= 1 THEN round(1.64493406685 * anywhere)
                              ELSE round(1 / (1.64493406685 * (1 - anywhere)) - 0.5) END
                       + CASE WHEN said >= 1 THEN round(1.64493406685 * said)
                              WHEN said > 1e-10
                         THEN round(1 / (1.64493406685 * (1 - said)) - 0.5) ELSE 0 END
                         * %(said_boost)s AS tf) AS frequency
),
weight AS MATERIALIZED (
    SELECT number, language,
           -- the + 1 keeps the weight of a word that stands in most rows above zero (Lucene)
           times * ln(1 + (rows - held + 0.5) / (held + 0.5)) AS weight
    FROM term,
         LATERAL (SELECT count(*)::float8 AS held FROM holds
                  WHERE holds.number = term.number) AS found
),
share AS MATERIALIZED (
    SELECT number, weight, weight / sum(weight) OVER (PARTITION BY language) AS share FROM weight
),
bm25 AS MATERIALIZED (
    SELECT id,
           sum(weight * tf * (%(k1)s + 1) / (tf + %(k1)s * (1 - %(b)s + %(b)s * length))) AS score,
           sum(share) AS coverage
    FROM holds
    JOIN share USING (number)
    GROUP BY id
)
