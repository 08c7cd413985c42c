bm25 AS MATERIALIZED (
    SELECT candidate.id,
           sum(term.times * term.idf * tf * (%(k1)s + 1)
               / (tf + %(k1)s * (1 - %(b)s
                                 + %(b)s * length(search_vector) / term.average_length))) AS score
    FROM candidate
    JOIN term USING (language),
         -- ts_rank of one lexeme with equal weights w is w / 1.6449 · Σ 1/j² for j up to its
         -- frequency; the tail of that sum is near 1 / (frequency + ½): turned round here. A prefix
         -- has the sum of what it begins, which is 1 and more from the second lexeme on
         LATERAL (SELECT ts_rank('{1,1,1,1}', search_vector, term.query)::float8 AS anywhere,
                         ts_rank('{0,0,0,1}', search_vector, term.query)::float8 AS heading
                 ) AS rank,
         LATERAL (SELECT CASE WHEN anywhere >= 1 THEN round(1.64493406685 * anywhere)
                              WHEN anywhere > 0
                         THEN round(1 / (1.64493406685 * (1 - anywhere)) - 0.5) ELSE 0 END
                       + CASE WHEN heading >= 1 THEN round(1.64493406685 * heading)
                              WHEN heading > 1e-10
                         THEN round(1 / (1.64493406685 * (1 - heading)) - 0.5) ELSE 0 END
                         * %(heading_boost)s AS tf) AS frequency
    WHERE tf > 0
    GROUP BY candidate.id
)
