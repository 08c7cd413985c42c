CREATE EXTENSION IF NOT EXISTS btree_gin;
CREATE EXTENSION IF NOT EXISTS pg_trgm;
CREATE EXTENSION IF NOT EXISTS unaccent;
CREATE EXTENSION IF NOT EXISTS vector;
CREATE FUNCTION documents_drop_index() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path FROM CURRENT
    AS $$
BEGIN
    DELETE FROM documents_pendingchunk WHERE collection_id = OLD.id;
    DELETE FROM documents_removedchunk WHERE collection_id = OLD.id;
    DELETE FROM documents_lexeme WHERE collection_id = OLD.id;
    RETURN NULL;
END $$;
CREATE FUNCTION documents_drop_pending_postings() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path FROM CURRENT
    SET enable_seqscan TO 'off'
    AS $$
BEGIN
    WITH moved AS (
        SELECT collection_id, max(index_id) AS last FROM old_pending GROUP BY collection_id
    ), left_over AS MATERIALIZED (
        SELECT index_id FROM documents_pendingchunk JOIN moved USING (collection_id)
    )
    DELETE FROM documents_pendingposting AS posting USING moved
    WHERE posting.collection_id = moved.collection_id AND posting.index_id <= moved.last
      AND NOT EXISTS (SELECT FROM unnest(posting.entries) AS entry
                      WHERE (entry >> 24 IN (SELECT index_id FROM left_over)) IS TRUE);
    WITH moved AS (
        SELECT collection_id, max(index_id) AS last FROM old_pending GROUP BY collection_id
    ), left_over AS MATERIALIZED (
        SELECT index_id FROM documents_pendingchunk JOIN moved USING (collection_id)
    )
    UPDATE documents_pendingposting AS posting
    SET entries = ARRAY(SELECT entry FROM unnest(posting.entries) AS entry
                        WHERE (entry >> 24 IN (SELECT index_id FROM left_over)) IS TRUE)
    FROM moved
    WHERE posting.collection_id = moved.collection_id AND posting.index_id <= moved.last
      AND EXISTS (SELECT FROM unnest(posting.entries) AS entry
                  WHERE (entry >> 24 IN (SELECT index_id FROM left_over)) IS NOT TRUE);
    RETURN NULL;
END $$;
CREATE FUNCTION documents_drop_postings() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path FROM CURRENT
    AS $$
BEGIN
    DELETE FROM documents_posting AS posting USING old_segment
    WHERE posting.segment_id = old_segment.id;
    RETURN NULL;
END $$;
CREATE FUNCTION documents_index_changed_chunk() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path FROM CURRENT
    AS $$
BEGIN
    INSERT INTO documents_removedchunk
        (workspace_id, collection_id, index_id, language, is_current, length)
    VALUES (OLD.workspace_id, OLD.collection_id, OLD.index_id, OLD.language, OLD.is_current,
            least(length(OLD.search_vector), 65535));
    NEW.index_id := nextval('documents_chunk_index_id');
    INSERT INTO documents_pendingchunk (workspace_id, collection_id, index_id)
    VALUES (NEW.workspace_id, NEW.collection_id, NEW.index_id);
    RETURN NEW;
END $$;
CREATE FUNCTION documents_index_changed_words() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path FROM CURRENT
    AS $$
BEGIN
    
    INSERT INTO documents_pendingposting
        (workspace_id, collection_id, lexeme, index_id, language, is_current, entries)
    SELECT workspace_id, collection_id, word.lexeme COLLATE "C", min(index_id), language, is_current,
           array_agg(listed | (word.frequency << 16))
    -- OFFSET 0: or each vector would be read once a word
    FROM (SELECT workspace_id, collection_id, language, is_current, index_id, context, text,
                 search_vector, (index_id << 24) | least(length(search_vector), 65535) AS listed
          FROM (SELECT NEW.*) AS changed OFFSET 0) AS chunk,
         LATERAL (SELECT * FROM ragsite_postings(language, context, text, search_vector)) AS word
    GROUP BY workspace_id, collection_id, language, is_current, word.lexeme COLLATE "C";

    RETURN NULL;
END $$;
CREATE FUNCTION documents_index_new_chunks() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path FROM CURRENT
    AS $$
BEGIN
    INSERT INTO documents_pendingchunk (workspace_id, collection_id, index_id)
    SELECT workspace_id, collection_id, index_id FROM new_chunk;
    
    INSERT INTO documents_pendingposting
        (workspace_id, collection_id, lexeme, index_id, language, is_current, entries)
    SELECT workspace_id, collection_id, word.lexeme COLLATE "C", min(index_id), language, is_current,
           array_agg(listed | (word.frequency << 16))
    -- OFFSET 0: or each vector would be read once a word
    FROM (SELECT workspace_id, collection_id, language, is_current, index_id, context, text,
                 search_vector, (index_id << 24) | least(length(search_vector), 65535) AS listed
          FROM new_chunk OFFSET 0) AS chunk,
         LATERAL (SELECT * FROM ragsite_postings(language, context, text, search_vector)) AS word
    GROUP BY workspace_id, collection_id, language, is_current, word.lexeme COLLATE "C";

    RETURN NULL;
END $$;
CREATE FUNCTION documents_index_removed_chunks() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path FROM CURRENT
    AS $$
BEGIN
    INSERT INTO documents_removedchunk
        (workspace_id, collection_id, index_id, language, is_current, length)
    SELECT workspace_id, collection_id, index_id, language, is_current,
           least(length(search_vector), 65535)
    FROM old_chunk;
    RETURN NULL;
END $$;
CREATE FUNCTION rag_forget_changed_summaries() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path FROM CURRENT
    AS $$
BEGIN
    DELETE FROM rag_summary WHERE documents && ARRAY[NEW.id];
    RETURN NULL;
END $$;
CREATE FUNCTION rag_forget_deleted_summaries() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path FROM CURRENT
    AS $$
BEGIN
    DELETE FROM rag_summary WHERE documents && ARRAY(SELECT gone.id FROM gone);
    RETURN NULL;
END $$;
CREATE FUNCTION rag_forget_documents() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path FROM CURRENT
    AS $$
DECLARE
    ids bigint[] := ARRAY(SELECT gone.id FROM gone);
BEGIN
    UPDATE rag_message
    SET state = 'removed', content = '', passages = '[]', citations = '[]', verdict = '{}',
        memory = NULL, error = '', documents = '{}', reasoning = '', reasoning_ms = NULL, tables = NULL
    WHERE documents && ids;
    WITH emptied AS (
        UPDATE rag_trace
        SET answer = '', error = '', documents = '{}', removed_at = now()
        WHERE documents && ids
        RETURNING id
    )
    UPDATE rag_span SET input = '', output = '', error = ''
    FROM emptied WHERE rag_span.trace_id = emptied.id;
    RETURN NULL;
END $$;
CREATE FUNCTION ragsite_digraphs(said text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(NORMALIZE(said, NFC), 'ä'::text, 'ae'::text), 'ö'::text, 'oe'::text), 'ü'::text, 'ue'::text), 'å'::text, 'aa'::text), 'ø'::text, 'oe'::text), 'Ä'::text, 'Ae'::text), 'Ö'::text, 'Oe'::text), 'Ü'::text, 'Ue'::text), 'Å'::text, 'Aa'::text), 'Ø'::text, 'Oe'::text);
CREATE FUNCTION ragsite_fold(said text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN translate(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(NORMALIZE(regexp_replace(NORMALIZE(said, NFD), '[\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06ed]'::text, ''::text, 'g'::text), NFC), 'ß'::text, 'ss'::text), 'ẞ'::text, 'SS'::text), 'æ'::text, 'ae'::text), 'Æ'::text, 'AE'::text), 'œ'::text, 'oe'::text), 'Œ'::text, 'OE'::text), 'þ'::text, 'th'::text), 'Þ'::text, 'Th'::text), 'ﬀ'::text, 'ff'::text), 'ﬁ'::text, 'fi'::text), 'ﬂ'::text, 'fl'::text), 'ﬃ'::text, 'ffi'::text), 'ﬄ'::text, 'ffl'::text), 'ﬅ'::text, 'st'::text), 'ﬆ'::text, 'st'::text), 'øØłŁđĐðÐħĦıŧŦĸŋŊςٱىةیکەھ٠١٢٣٤٥٦٧٨٩۰۱۲۳۴۵۶۷۸۹µ‐‑–'::text, 'oOlLdDdDhHitTknNσايهيكهه01234567890123456789μ---'::text);
CREATE FUNCTION ragsite_forms(language regconfig, said text, words tsvector) RETURNS text[]
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    AS $_$
DECLARE
    known text[] := tsvector_to_array(words);
    forms text[] := tsvector_to_array(to_tsvector(language, ragsite_retyped(said)));
BEGIN
    IF said ~ '\+\+|#|[\U0001F000-\U0001FAFF\u2600-\u27bf\u2b50\u2b55]' THEN
        forms := forms || ARRAY(
            SELECT lower(match[1]) FROM regexp_matches(said, '([[:alnum:]]+(?:\+\+|#)|[\U0001F000-\U0001FAFF\u2600-\u27bf\u2b50\u2b55])', 'g') AS match);
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
END $_$;
CREATE FUNCTION ragsite_is_letter(word text) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (word ~ '^[\u1100-\u11ff\u3131-\u318e\ua960-\ua97f\uac00-\ud7a3\ud7b0-\ud7ff\uffa0-\uffbe\uffc2-\uffdc\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u303b\u3105-\u312f\u31a0-\u31bf\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd\u3031-\u3035\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9d\U0001b000-\U0001b16f\u0e01-\u0e30\u0e32\u0e33\u0e40-\u0e46\u0e81-\u0eb0\u0eb2\u0eb3\u0ebd\u0ec0-\u0ec6\u0edc-\u0edf\u1780-\u17b3\u17d7\u17dc\u1000-\u102a\u103f\u1050-\u1055\u105a-\u105d\u1061\u1065\u1066\u106e-\u1070\u1075-\u1081\u108e][\u3099\u309a\uff9e\uff9f\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u17b4-\u17d3\u17dd\u102b-\u103e\u1056-\u1059\u105e-\u1060\u1062-\u1064\u1067-\u106d\u1071-\u1074\u1082-\u108d\u108f\u109a-\u109d]*$'::text);
CREATE FUNCTION ragsite_open_ends(phrase tsquery) RETURNS tsquery
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (regexp_replace(regexp_replace((phrase)::text, '([\u1100-\u11ff\u3131-\u318e\ua960-\ua97f\uac00-\ud7a3\ud7b0-\ud7ff\uffa0-\uffbe\uffc2-\uffdc\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u303b\u3105-\u312f\u31a0-\u31bf\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd\u3031-\u3035\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9d\U0001b000-\U0001b16f\u0e01-\u0e30\u0e32\u0e33\u0e40-\u0e46\u0e81-\u0eb0\u0eb2\u0eb3\u0ebd\u0ec0-\u0ec6\u0edc-\u0edf\u1780-\u17b3\u17d7\u17dc\u1000-\u102a\u103f\u1050-\u1055\u105a-\u105d\u1061\u1065\u1066\u106e-\u1070\u1075-\u1081\u108e][\u3099\u309a\uff9e\uff9f\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u17b4-\u17d3\u17dd\u102b-\u103e\u1056-\u1059\u105e-\u1060\u1062-\u1064\u1067-\u106d\u1071-\u1074\u1082-\u108d\u108f\u109a-\u109d]*)([\u1100-\u11ff\u3131-\u318e\ua960-\ua97f\uac00-\ud7a3\ud7b0-\ud7ff\uffa0-\uffbe\uffc2-\uffdc\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u303b\u3105-\u312f\u31a0-\u31bf\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd\u3031-\u3035\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9d\U0001b000-\U0001b16f\u0e01-\u0e30\u0e32\u0e33\u0e40-\u0e46\u0e81-\u0eb0\u0eb2\u0eb3\u0ebd\u0ec0-\u0ec6\u0edc-\u0edf\u1780-\u17b3\u17d7\u17dc\u1000-\u102a\u103f\u1050-\u1055\u105a-\u105d\u1061\u1065\u1066\u106e-\u1070\u1075-\u1081\u108e][\u3099\u309a\uff9e\uff9f\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u17b4-\u17d3\u17dd\u102b-\u103e\u1056-\u1059\u105e-\u1060\u1062-\u1064\u1067-\u106d\u1071-\u1074\u1082-\u108d\u108f\u109a-\u109d]*)'' <-> ''\2''$'::text, '\1\2'''::text), '''([\u1100-\u11ff\u3131-\u318e\ua960-\ua97f\uac00-\ud7a3\ud7b0-\ud7ff\uffa0-\uffbe\uffc2-\uffdc\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u303b\u3105-\u312f\u31a0-\u31bf\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd\u3031-\u3035\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9d\U0001b000-\U0001b16f\u0e01-\u0e30\u0e32\u0e33\u0e40-\u0e46\u0e81-\u0eb0\u0eb2\u0eb3\u0ebd\u0ec0-\u0ec6\u0edc-\u0edf\u1780-\u17b3\u17d7\u17dc\u1000-\u102a\u103f\u1050-\u1055\u105a-\u105d\u1061\u1065\u1066\u106e-\u1070\u1075-\u1081\u108e][\u3099\u309a\uff9e\uff9f\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u17b4-\u17d3\u17dd\u102b-\u103e\u1056-\u1059\u105e-\u1060\u1062-\u1064\u1067-\u106d\u1071-\u1074\u1082-\u108d\u108f\u109a-\u109d]*)'''::text, '''\1'':*'::text, 'g'::text))::tsquery;
CREATE FUNCTION ragsite_pairs(said text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (regexp_replace(regexp_replace(regexp_replace(NORMALIZE(regexp_replace("left"(said, 50000), '[\u00b2\u00b3\u00b9\u00bc-\u00be\u2070-\u209c\u2100-\u2125\u2150-\u215f\u2460-\u249b\u24ea-\u24ff\ufe64\ufe65\uff1c\uff1e\u3001-\u3004\u3008-\u3020\u30fb\uff61-\uff65]'::text, ' '::text, 'g'::text), NFKC), '(?<=[\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u303b\u3105-\u312f\u31a0-\u31bf\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd\u3031-\u3035\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9d\U0001b000-\U0001b16f\u0e01-\u0e30\u0e32\u0e33\u0e40-\u0e46\u0e81-\u0eb0\u0eb2\u0eb3\u0ebd\u0ec0-\u0ec6\u0edc-\u0edf\u1780-\u17b3\u17d7\u17dc\u1000-\u102a\u103f\u1050-\u1055\u105a-\u105d\u1061\u1065\u1066\u106e-\u1070\u1075-\u1081\u108e\u3099\u309a\uff9e\uff9f\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u17b4-\u17d3\u17dd\u102b-\u103e\u1056-\u1059\u105e-\u1060\u1062-\u1064\u1067-\u106d\u1071-\u1074\u1082-\u108d\u108f\u109a-\u109d])[ \t]*\n[ \t]*(?=[\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u303b\u3105-\u312f\u31a0-\u31bf\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd\u3031-\u3035\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9d\U0001b000-\U0001b16f\u0e01-\u0e30\u0e32\u0e33\u0e40-\u0e46\u0e81-\u0eb0\u0eb2\u0eb3\u0ebd\u0ec0-\u0ec6\u0edc-\u0edf\u1780-\u17b3\u17d7\u17dc\u1000-\u102a\u103f\u1050-\u1055\u105a-\u105d\u1061\u1065\u1066\u106e-\u1070\u1075-\u1081\u108e])'::text, ''::text, 'g'::text), '([\u1100-\u11ff\u3131-\u318e\ua960-\ua97f\uac00-\ud7a3\ud7b0-\ud7ff\uffa0-\uffbe\uffc2-\uffdc\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u303b\u3105-\u312f\u31a0-\u31bf\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd\u3031-\u3035\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9d\U0001b000-\U0001b16f\u0e01-\u0e30\u0e32\u0e33\u0e40-\u0e46\u0e81-\u0eb0\u0eb2\u0eb3\u0ebd\u0ec0-\u0ec6\u0edc-\u0edf\u1780-\u17b3\u17d7\u17dc\u1000-\u102a\u103f\u1050-\u1055\u105a-\u105d\u1061\u1065\u1066\u106e-\u1070\u1075-\u1081\u108e\u3099\u309a\uff9e\uff9f\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u17b4-\u17d3\u17dd\u102b-\u103e\u1056-\u1059\u105e-\u1060\u1062-\u1064\u1067-\u106d\u1071-\u1074\u1082-\u108d\u108f\u109a-\u109d]+)'::text, ' \1 '::text, 'g'::text), '(?<=[\u1100-\u11ff\u3131-\u318e\ua960-\ua97f\uac00-\ud7a3\ud7b0-\ud7ff\uffa0-\uffbe\uffc2-\uffdc\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u303b\u3105-\u312f\u31a0-\u31bf\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd\u3031-\u3035\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9d\U0001b000-\U0001b16f\u0e01-\u0e30\u0e32\u0e33\u0e40-\u0e46\u0e81-\u0eb0\u0eb2\u0eb3\u0ebd\u0ec0-\u0ec6\u0edc-\u0edf\u1780-\u17b3\u17d7\u17dc\u1000-\u102a\u103f\u1050-\u1055\u105a-\u105d\u1061\u1065\u1066\u106e-\u1070\u1075-\u1081\u108e\u3099\u309a\uff9e\uff9f\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u17b4-\u17d3\u17dd\u102b-\u103e\u1056-\u1059\u105e-\u1060\u1062-\u1064\u1067-\u106d\u1071-\u1074\u1082-\u108d\u108f\u109a-\u109d])([\u1100-\u11ff\u3131-\u318e\ua960-\ua97f\uac00-\ud7a3\ud7b0-\ud7ff\uffa0-\uffbe\uffc2-\uffdc\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u303b\u3105-\u312f\u31a0-\u31bf\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd\u3031-\u3035\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9d\U0001b000-\U0001b16f\u0e01-\u0e30\u0e32\u0e33\u0e40-\u0e46\u0e81-\u0eb0\u0eb2\u0eb3\u0ebd\u0ec0-\u0ec6\u0edc-\u0edf\u1780-\u17b3\u17d7\u17dc\u1000-\u102a\u103f\u1050-\u1055\u105a-\u105d\u1061\u1065\u1066\u106e-\u1070\u1075-\u1081\u108e][\u3099\u309a\uff9e\uff9f\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u17b4-\u17d3\u17dd\u102b-\u103e\u1056-\u1059\u105e-\u1060\u1062-\u1064\u1067-\u106d\u1071-\u1074\u1082-\u108d\u108f\u109a-\u109d]*)'::text, '\1 \1'::text, 'g'::text) || substr(said, 50001));
CREATE FUNCTION ragsite_words(said text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN regexp_replace(CASE WHEN ((octet_length(said) <> length(said)) AND (said ~ '[\u1100-\u11ff\u3131-\u318e\ua960-\ua97f\uac00-\ud7a3\ud7b0-\ud7ff\uffa0-\uffbe\uffc2-\uffdc\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u303b\u3105-\u312f\u31a0-\u31bf\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd\u3031-\u3035\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9d\U0001b000-\U0001b16f\u0e01-\u0e30\u0e32\u0e33\u0e40-\u0e46\u0e81-\u0eb0\u0eb2\u0eb3\u0ebd\u0ec0-\u0ec6\u0edc-\u0edf\u1780-\u17b3\u17d7\u17dc\u1000-\u102a\u103f\u1050-\u1055\u105a-\u105d\u1061\u1065\u1066\u106e-\u1070\u1075-\u1081\u108e\uff10-\uff19\uff21-\uff3a\uff41-\uff5a\u2160-\u217f\u3200-\u33ff]'::text)) THEN ragsite_pairs(said) ELSE said END, '(?<=[[:alnum:]])[._/](?=[[:alpha:]])'::text, ' '::text, 'g'::text);
CREATE FUNCTION ragsite_phrase(language regconfig, said text) RETURNS tsquery
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN (said ~ '^([\u1100-\u11ff\u3131-\u318e\ua960-\ua97f\uac00-\ud7a3\ud7b0-\ud7ff\uffa0-\uffbe\uffc2-\uffdc\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u303b\u3105-\u312f\u31a0-\u31bf\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd\u3031-\u3035\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9d\U0001b000-\U0001b16f\u0e01-\u0e30\u0e32\u0e33\u0e40-\u0e46\u0e81-\u0eb0\u0eb2\u0eb3\u0ebd\u0ec0-\u0ec6\u0edc-\u0edf\u1780-\u17b3\u17d7\u17dc\u1000-\u102a\u103f\u1050-\u1055\u105a-\u105d\u1061\u1065\u1066\u106e-\u1070\u1075-\u1081\u108e\u3099\u309a\uff9e\uff9f\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u17b4-\u17d3\u17dd\u102b-\u103e\u1056-\u1059\u105e-\u1060\u1062-\u1064\u1067-\u106d\u1071-\u1074\u1082-\u108d\u108f\u109a-\u109d]|\s)+$'::text) THEN ragsite_open_ends(phraseto_tsquery('simple'::regconfig, ragsite_words(said))) WHEN (said ~ '[\u1100-\u11ff\u3131-\u318e\ua960-\ua97f\uac00-\ud7a3\ud7b0-\ud7ff\uffa0-\uffbe\uffc2-\uffdc\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u303b\u3105-\u312f\u31a0-\u31bf\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd\u3031-\u3035\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9d\U0001b000-\U0001b16f\u0e01-\u0e30\u0e32\u0e33\u0e40-\u0e46\u0e81-\u0eb0\u0eb2\u0eb3\u0ebd\u0ec0-\u0ec6\u0edc-\u0edf\u1780-\u17b3\u17d7\u17dc\u1000-\u102a\u103f\u1050-\u1055\u105a-\u105d\u1061\u1065\u1066\u106e-\u1070\u1075-\u1081\u108e\uff10-\uff19\uff21-\uff3a\uff41-\uff5a\u2160-\u217f\u3200-\u33ff]'::text) THEN ragsite_open_ends(phraseto_tsquery(language, ragsite_words(said))) ELSE phraseto_tsquery(language, ragsite_words(said)) END;
CREATE FUNCTION ragsite_postings(language regconfig, context text, said text, words tsvector) RETURNS TABLE(lexeme text, frequency bigint)
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
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
CREATE FUNCTION ragsite_retyped(said text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN concat_ws(' '::text, CASE WHEN (octet_length(said) <> length(said)) THEN (SELECT string_agg(concat_ws(' '::text, ragsite_fold(match.match[1]), CASE WHEN (NORMALIZE(match.match[1], NFC) ~ '[äöüåøÄÖÜÅØ]'::text) THEN ragsite_fold(ragsite_digraphs(match.match[1])) ELSE NULL::text END), ' '::text) AS string_agg FROM regexp_matches(ragsite_retyped.said, '([[:alnum:]\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06ed]*[\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06ed\u00c0-\u024f\u1e00-\u1fff\ufb00-\ufb4f\u0386-\u0390\u03aa-\u03b0\u03ca-\u03ceёйїўѓќЁЙЇЎЃЌ\u0622-\u0626\u2126\u212a\u212bøØłŁđĐðÐħĦıŧŦĸŋŊςٱىةیکەھ٠١٢٣٤٥٦٧٨٩۰۱۲۳۴۵۶۷۸۹µ][[:alnum:]\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06ed]*)'::text, 'g'::text) match(match)) ELSE NULL::text END, CASE WHEN (octet_length(said) <> length(said)) THEN (SELECT string_agg(translate(match.match[1], '⁰¹²³⁴⁵⁶⁷⁸⁹₀₁₂₃₄₅₆₇₈₉'::text, '01234567890123456789'::text), ' '::text) AS string_agg FROM regexp_matches(ragsite_retyped.said, '([[:alnum:]]+[⁰¹²³⁴⁵⁶⁷⁸⁹₀₁₂₃₄₅₆₇₈₉][[:alnum:]⁰¹²³⁴⁵⁶⁷⁸⁹₀₁₂₃₄₅₆₇₈₉]*|[⁰¹²³⁴⁵⁶⁷⁸⁹₀₁₂₃₄₅₆₇₈₉]+[[:alpha:]][[:alnum:]]*)'::text, 'g'::text) match(match)) ELSE NULL::text END, (SELECT string_agg(regexp_replace(match.match[1], CASE WHEN (match.match[1] ~ '^[0-9]+,[0-9.,]+$'::text) THEN ','::text WHEN (match.match[1] ~ ','::text) THEN '[.]'::text ELSE '[-_./&]'::text END, ''::text, 'g'::text), ' '::text) AS string_agg FROM regexp_matches(ragsite_retyped.said, '([[:alnum:]]+(?:[-_./&][[:alnum:]]+)+|[0-9]{1,3}(?:,[0-9]{3})+(?:[.][0-9]+)?|[0-9]{1,3}(?:[.][0-9]{3})+,[0-9]+)'::text, 'g'::text) match(match) WHERE ((length(match.match[1]) < 40) AND ((match.match[1] !~ '^[0-9.]+$'::text) OR (match.match[1] ~ '^[0-9]{1,3}([.][0-9]{3})+$'::text)))), CASE WHEN (said ~ '[[:lower:]][[:upper:]]|[[:alpha:]][0-9]{2}'::text) THEN (SELECT string_agg(regexp_replace(regexp_replace(regexp_replace(match.match[1], '([[:lower:]])([[:upper:]])'::text, '\1 \2'::text, 'g'::text), '([[:upper:]])([[:upper:]][[:lower:]])'::text, '\1 \2'::text, 'g'::text), '([[:alpha:]])([0-9]{2})'::text, '\1 \2'::text, 'g'::text), ' '::text) AS string_agg FROM regexp_matches(ragsite_retyped.said, '([[:alnum:]]*(?:[[:lower:]][[:upper:]][[:alnum:]]*|[[:alpha:]][0-9]{2}[[:alnum:]]*))'::text, 'g'::text) match(match)) ELSE NULL::text END);
CREATE FUNCTION search_forget_collections() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path FROM CURRENT
    AS $$
BEGIN
    DELETE FROM search_searchlog
    WHERE collections <> '{}' AND collections <@ ARRAY(SELECT gone.id FROM gone);
    UPDATE search_searchlog AS log
    SET collections = ARRAY(
        SELECT listed.id FROM unnest(log.collections) AS listed (id)
        WHERE listed.id NOT IN (SELECT gone.id FROM gone) ORDER BY listed.id
    )
    WHERE log.collections && ARRAY(SELECT gone.id FROM gone);
    RETURN NULL;
END $$;
CREATE FUNCTION search_forget_documents() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path FROM CURRENT
    AS $$
BEGIN
    UPDATE search_searchlog AS log
    SET documents = ARRAY(
        SELECT listed.id FROM unnest(log.documents) WITH ORDINALITY AS listed (id, place)
        WHERE listed.id NOT IN (SELECT gone.id FROM gone) ORDER BY listed.place
    )
    WHERE log.documents && ARRAY(SELECT gone.id FROM gone);
    RETURN NULL;
END $$;
CREATE FUNCTION tables_forget_layout() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path FROM CURRENT
    AS $$
DECLARE
    layout record;
BEGIN
    IF EXISTS (
        SELECT FROM tables_table
        WHERE collection_id = OLD.collection_id AND fingerprint = OLD.fingerprint
    ) OR NOT EXISTS (
        SELECT FROM tables_tablelayout
        WHERE collection_id = OLD.collection_id AND fingerprint = OLD.fingerprint
    ) THEN
        RETURN NULL;
    END IF;
    PERFORM pg_advisory_xact_lock(hashtextextended('table groups', OLD.collection_id));
    SELECT id, group_id INTO layout FROM tables_tablelayout
    WHERE collection_id = OLD.collection_id AND fingerprint = OLD.fingerprint
    FOR UPDATE SKIP LOCKED;
    IF NOT FOUND OR EXISTS (
        SELECT FROM tables_table
        WHERE collection_id = OLD.collection_id AND fingerprint = OLD.fingerprint
    ) THEN
        RETURN NULL;
    END IF;
    DELETE FROM tables_tablelayout WHERE id = layout.id;
    IF NOT EXISTS (SELECT FROM tables_tablelayout WHERE group_id = layout.group_id) THEN
        UPDATE tables_tablelayout SET suggested_group_id = NULL, suggested_positions = NULL
        WHERE suggested_group_id = layout.group_id;
        DELETE FROM tables_groupcolumn WHERE group_id = layout.group_id;
        DELETE FROM tables_tablegroup WHERE id = layout.group_id;
    END IF;
    RETURN NULL;
END $$;
CREATE TABLE accounts_apikey (
    id bigint NOT NULL,
    name character varying(100) NOT NULL,
    prefix character varying(16) NOT NULL,
    digest character varying(64) NOT NULL,
    scopes character varying(10)[] NOT NULL,
    expires_at timestamp with time zone,
    last_used_at timestamp with time zone,
    revoked_at timestamp with time zone,
    created_at timestamp with time zone NOT NULL,
    membership_id bigint NOT NULL,
    user_id bigint NOT NULL,
    workspace_id bigint NOT NULL,
    collections bigint[] DEFAULT '{}'::bigint[] NOT NULL,
    CONSTRAINT apikey_scopes_check CHECK (((scopes <@ ARRAY['read'::character varying(10), 'write'::character varying(10), 'memory'::character varying(10), 'chat'::character varying(10), 'admin'::character varying(10)]) AND (
CASE
    WHEN (scopes IS NULL) THEN NULL::integer
    ELSE COALESCE(array_length(scopes, 1), 0)
END >= 1)))
);
ALTER TABLE accounts_apikey ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME accounts_apikey_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE accounts_change (
    id bigint NOT NULL,
    door character varying(10) NOT NULL,
    action character varying(20) NOT NULL,
    kind character varying(20) NOT NULL,
    thing bigint,
    count bigint NOT NULL,
    collection bigint,
    document bigint,
    subject character varying(64) NOT NULL,
    details jsonb NOT NULL,
    created_at timestamp with time zone NOT NULL,
    key_id bigint,
    user_id bigint,
    workspace_id bigint
);
ALTER TABLE accounts_change ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME accounts_change_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE accounts_groupmember (
    id bigint NOT NULL,
    source character varying(40) NOT NULL,
    created_at timestamp with time zone NOT NULL,
    membership_id bigint NOT NULL,
    workspace_id bigint NOT NULL,
    group_id integer NOT NULL
);
ALTER TABLE accounts_groupmember ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME accounts_groupmember_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE accounts_idempotencyrecord (
    id bigint NOT NULL,
    key character varying(255) NOT NULL,
    fingerprint character varying(64) NOT NULL,
    token uuid NOT NULL,
    leased_until timestamp with time zone NOT NULL,
    status smallint,
    location character varying(2000) NOT NULL,
    body text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    user_id bigint NOT NULL,
    workspace_id bigint NOT NULL,
    CONSTRAINT accounts_idempotencyrecord_status_check CHECK ((status >= 0))
);
ALTER TABLE accounts_idempotencyrecord ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME accounts_idempotencyrecord_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE accounts_identity (
    id bigint NOT NULL,
    method character varying(10) NOT NULL,
    issuer character varying(500) NOT NULL,
    subject character varying(255) NOT NULL,
    groups character varying(150)[] NOT NULL,
    created_at timestamp with time zone NOT NULL,
    last_used_at timestamp with time zone,
    user_id bigint NOT NULL
);
ALTER TABLE accounts_identity ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME accounts_identity_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE accounts_invitation (
    id bigint NOT NULL,
    digest character varying(64) NOT NULL,
    role character varying(10) NOT NULL,
    groups integer[] NOT NULL,
    email character varying(254) NOT NULL,
    max_uses integer,
    uses integer NOT NULL,
    accepted_by bigint[] NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    revoked_at timestamp with time zone,
    created_at timestamp with time zone NOT NULL,
    created_by_id bigint,
    workspace_id bigint NOT NULL,
    CONSTRAINT accounts_invitation_max_uses_check CHECK ((max_uses >= 0)),
    CONSTRAINT accounts_invitation_uses_check CHECK ((uses >= 0)),
    CONSTRAINT invitation_role_check CHECK (((role)::text = ANY ((ARRAY['owner'::character varying, 'editor'::character varying, 'viewer'::character varying])::text[]))),
    CONSTRAINT invitation_uses_check CHECK (((max_uses IS NULL) OR (uses <= max_uses)))
);
ALTER TABLE accounts_invitation ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME accounts_invitation_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE accounts_loginsession (
    id bigint NOT NULL,
    method character varying(10) NOT NULL,
    address character varying(45) NOT NULL,
    agent character varying(300) NOT NULL,
    created_at timestamp with time zone NOT NULL,
    last_seen_at timestamp with time zone NOT NULL,
    session_id character varying(40) NOT NULL,
    user_id bigint NOT NULL
);
ALTER TABLE accounts_loginsession ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME accounts_loginsession_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE accounts_membership (
    id bigint NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    role character varying(10) NOT NULL,
    user_id bigint NOT NULL,
    workspace_id bigint NOT NULL,
    external_names character varying(200)[] DEFAULT '{}'::character varying(200)[] NOT NULL,
    CONSTRAINT membership_role_check CHECK (((role)::text = ANY ((ARRAY['owner'::character varying, 'editor'::character varying, 'viewer'::character varying])::text[])))
);
ALTER TABLE accounts_membership ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME accounts_membership_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE accounts_secondfactor (
    id bigint NOT NULL,
    kind character varying(10) NOT NULL,
    name character varying(100) NOT NULL,
    secret bytea NOT NULL,
    counter bigint NOT NULL,
    codes character varying(64)[] NOT NULL,
    created_at timestamp with time zone NOT NULL,
    last_used_at timestamp with time zone,
    user_id bigint NOT NULL
);
ALTER TABLE accounts_secondfactor ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME accounts_secondfactor_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE accounts_user (
    id bigint NOT NULL,
    password character varying(128) NOT NULL,
    last_login timestamp with time zone,
    is_superuser boolean NOT NULL,
    username character varying(150) NOT NULL,
    first_name character varying(150) NOT NULL,
    last_name character varying(150) NOT NULL,
    email character varying(254) NOT NULL,
    is_staff boolean NOT NULL,
    is_active boolean NOT NULL,
    date_joined timestamp with time zone NOT NULL,
    language character varying(10) DEFAULT ''::character varying NOT NULL
);
CREATE TABLE accounts_user_groups (
    id bigint NOT NULL,
    user_id bigint NOT NULL,
    group_id integer NOT NULL
);
ALTER TABLE accounts_user_groups ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME accounts_user_groups_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
ALTER TABLE accounts_user ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME accounts_user_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE accounts_user_user_permissions (
    id bigint NOT NULL,
    user_id bigint NOT NULL,
    permission_id integer NOT NULL
);
ALTER TABLE accounts_user_user_permissions ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME accounts_user_user_permissions_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE accounts_workspace (
    id bigint NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    slug character varying(63) NOT NULL,
    name character varying(200) NOT NULL,
    is_moving boolean DEFAULT false NOT NULL,
    shard character varying(31) DEFAULT ''::character varying NOT NULL
);
ALTER TABLE accounts_workspace ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME accounts_workspace_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE accounts_workspacegroup (
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    group_id integer NOT NULL,
    name character varying(100) NOT NULL,
    external_names character varying(200)[] NOT NULL,
    workspace_id bigint NOT NULL
);
CREATE TABLE auth_group (
    id integer NOT NULL,
    name character varying(150) NOT NULL
);
ALTER TABLE auth_group ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME auth_group_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE auth_group_permissions (
    id bigint NOT NULL,
    group_id integer NOT NULL,
    permission_id integer NOT NULL
);
ALTER TABLE auth_group_permissions ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME auth_group_permissions_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE auth_permission (
    id integer NOT NULL,
    name character varying(255) NOT NULL,
    content_type_id integer NOT NULL,
    codename character varying(100) NOT NULL
);
ALTER TABLE auth_permission ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME auth_permission_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE dashboard_sample (
    id bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    documents integer NOT NULL,
    chunks bigint NOT NULL,
    waiting integer NOT NULL,
    failed integer NOT NULL,
    is_estimated boolean NOT NULL,
    workspace_id bigint NOT NULL,
    CONSTRAINT dashboard_sample_chunks_check CHECK ((chunks >= 0)),
    CONSTRAINT dashboard_sample_documents_check CHECK ((documents >= 0)),
    CONSTRAINT dashboard_sample_failed_check CHECK ((failed >= 0)),
    CONSTRAINT dashboard_sample_waiting_check CHECK ((waiting >= 0))
);
ALTER TABLE dashboard_sample ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME dashboard_sample_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE django_admin_log (
    id integer NOT NULL,
    action_time timestamp with time zone NOT NULL,
    object_id text,
    object_repr character varying(200) NOT NULL,
    action_flag smallint NOT NULL,
    change_message text NOT NULL,
    content_type_id integer,
    user_id bigint NOT NULL,
    CONSTRAINT django_admin_log_action_flag_check CHECK ((action_flag >= 0))
);
ALTER TABLE django_admin_log ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME django_admin_log_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE django_content_type (
    id integer NOT NULL,
    app_label character varying(100) NOT NULL,
    model character varying(100) NOT NULL
);
ALTER TABLE django_content_type ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME django_content_type_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE django_migrations (
    id bigint NOT NULL,
    app character varying(255) NOT NULL,
    name character varying(255) NOT NULL,
    applied timestamp with time zone NOT NULL
);
ALTER TABLE django_migrations ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME django_migrations_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE django_session (
    session_key character varying(40) NOT NULL,
    session_data text NOT NULL,
    expire_date timestamp with time zone NOT NULL
);
CREATE SEQUENCE documents_chunk_index_id
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
CREATE TABLE documents_chunk (
    id bigint NOT NULL,
    ordinal integer NOT NULL,
    key character varying(1024) NOT NULL,
    text text NOT NULL,
    context text NOT NULL,
    heading_path text[] NOT NULL,
    summary text NOT NULL,
    token_count integer NOT NULL,
    start bigint NOT NULL,
    "end" bigint NOT NULL,
    page integer,
    media_type character varying(100) NOT NULL,
    metadata jsonb NOT NULL,
    access character varying(80)[],
    language regconfig NOT NULL,
    embedding vector,
    content_sha256 character varying(64) NOT NULL,
    workspace_id bigint NOT NULL,
    collection_id bigint NOT NULL,
    document_id bigint NOT NULL,
    space_id bigint NOT NULL,
    search_vector tsvector GENERATED ALWAYS AS ((setweight(to_tsvector(language, ragsite_words(context)), 'A'::"char") || setweight(to_tsvector(language, ragsite_words(text)), 'D'::"char"))) STORED,
    is_current boolean DEFAULT true NOT NULL,
    parent integer,
    index_id bigint DEFAULT nextval('documents_chunk_index_id'::regclass) NOT NULL,
    CONSTRAINT documents_chunk_end_check CHECK (("end" >= 0)),
    CONSTRAINT documents_chunk_ordinal_check CHECK ((ordinal >= 0)),
    CONSTRAINT documents_chunk_page_check CHECK ((page >= 0)),
    CONSTRAINT documents_chunk_parent_check CHECK ((parent >= 0)),
    CONSTRAINT documents_chunk_start_check CHECK ((start >= 0)),
    CONSTRAINT documents_chunk_token_count_check CHECK ((token_count >= 0))
);
ALTER TABLE ONLY documents_chunk ALTER COLUMN embedding SET STORAGE MAIN;
ALTER TABLE documents_chunk ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME documents_chunk_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE documents_chunkedit (
    id bigint NOT NULL,
    chunk bigint NOT NULL,
    start bigint NOT NULL,
    before text NOT NULL,
    after text NOT NULL,
    state character varying(8) NOT NULL,
    created_at timestamp with time zone NOT NULL,
    settled_at timestamp with time zone,
    document_id bigint NOT NULL,
    settled_by_id bigint,
    user_id bigint,
    workspace_id bigint NOT NULL,
    CONSTRAINT documents_chunkedit_start_check CHECK ((start >= 0))
);
ALTER TABLE documents_chunkedit ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME documents_chunkedit_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE documents_chunktokens (
    chunk_id bigint NOT NULL,
    model character varying(200) NOT NULL,
    content_sha256 character varying(64) NOT NULL,
    bits bytea NOT NULL,
    starts bytea NOT NULL,
    ends bytea NOT NULL,
    attempts smallint NOT NULL,
    token uuid,
    leased_until timestamp with time zone,
    workspace_id bigint NOT NULL,
    CONSTRAINT documents_chunktokens_attempts_check CHECK ((attempts >= 0))
);
ALTER TABLE ONLY documents_chunktokens ALTER COLUMN bits SET STORAGE EXTERNAL;
CREATE TABLE documents_collection (
    id bigint NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    slug character varying(63) NOT NULL,
    name character varying(200) NOT NULL,
    description text NOT NULL,
    chunker character varying(20) NOT NULL,
    chunker_options jsonb NOT NULL,
    default_language character varying(20) NOT NULL,
    workspace_id bigint NOT NULL,
    space_id bigint NOT NULL,
    former_spaces bigint[] NOT NULL,
    rerank_instruction text NOT NULL,
    reranker character varying(63) NOT NULL,
    tuning jsonb,
    graph character varying(5) NOT NULL,
    facets character varying(200)[] NOT NULL,
    fusion jsonb NOT NULL,
    automatic_model boolean DEFAULT true NOT NULL,
    vectors boolean DEFAULT true NOT NULL
);
ALTER TABLE documents_collection ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME documents_collection_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE documents_document (
    id bigint NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    key character varying(1024) NOT NULL,
    version integer NOT NULL,
    is_current boolean NOT NULL,
    title character varying(500) NOT NULL,
    source character varying(1024) NOT NULL,
    url character varying(2000) NOT NULL,
    media_type character varying(100) NOT NULL,
    rendering character varying(10) NOT NULL,
    language character varying(20) NOT NULL,
    metadata jsonb NOT NULL,
    declared jsonb NOT NULL,
    access character varying(80)[],
    file character varying(300) NOT NULL,
    size bigint NOT NULL,
    source_sha256 character varying(64) NOT NULL,
    content_sha256 character varying(64) NOT NULL,
    recipe character varying(64) NOT NULL,
    chunk_count integer NOT NULL,
    token_count bigint NOT NULL,
    status character varying(10) NOT NULL,
    error_code character varying(40) NOT NULL,
    error text NOT NULL,
    attempts smallint NOT NULL,
    claimed_by uuid,
    claimed_until timestamp with time zone,
    indexed_at timestamp with time zone,
    collection_id bigint NOT NULL,
    workspace_id bigint NOT NULL,
    duplicate_of_id bigint,
    corrections jsonb NOT NULL,
    tokens_model character varying(200) DEFAULT ''::character varying NOT NULL,
    CONSTRAINT documents_document_attempts_check CHECK ((attempts >= 0)),
    CONSTRAINT documents_document_chunk_count_check CHECK ((chunk_count >= 0)),
    CONSTRAINT documents_document_size_check CHECK ((size >= 0)),
    CONSTRAINT documents_document_token_count_check CHECK ((token_count >= 0)),
    CONSTRAINT documents_document_version_check CHECK ((version >= 0))
);
ALTER TABLE documents_document ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME documents_document_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE documents_embeddingspace (
    id bigint NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    name character varying(63) NOT NULL,
    embedder character varying(63) NOT NULL,
    model_name character varying(200) NOT NULL,
    dimensions integer NOT NULL,
    metric character varying(10) NOT NULL,
    query_instruction text NOT NULL,
    index_type character varying(10) NOT NULL,
    index_options jsonb NOT NULL,
    "precision" character varying(10) NOT NULL,
    state character varying(10) NOT NULL,
    is_default boolean NOT NULL,
    CONSTRAINT documents_embeddingspace_dimensions_check CHECK ((dimensions >= 0)),
    CONSTRAINT embeddingspace_dimensions_check CHECK ((dimensions > 0))
);
ALTER TABLE documents_embeddingspace ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME documents_embeddingspace_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE documents_ingestionitem (
    id bigint NOT NULL,
    name character varying(1024) NOT NULL,
    size bigint NOT NULL,
    state character varying(10) NOT NULL,
    error_code character varying(40) NOT NULL,
    error text NOT NULL,
    document_id bigint,
    workspace_id bigint NOT NULL,
    run_id bigint NOT NULL,
    pages_read integer DEFAULT 0 NOT NULL,
    pages_to_read integer DEFAULT 0 NOT NULL,
    chunks_embedded integer DEFAULT 0 NOT NULL,
    chunks_to_embed integer DEFAULT 0 NOT NULL,
    CONSTRAINT documents_ingestionitem_chunks_embedded_check CHECK ((chunks_embedded >= 0)),
    CONSTRAINT documents_ingestionitem_chunks_to_embed_check CHECK ((chunks_to_embed >= 0)),
    CONSTRAINT documents_ingestionitem_pages_read_check CHECK ((pages_read >= 0)),
    CONSTRAINT documents_ingestionitem_pages_to_read_check CHECK ((pages_to_read >= 0)),
    CONSTRAINT documents_ingestionitem_size_check CHECK ((size >= 0))
);
ALTER TABLE documents_ingestionitem ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME documents_ingestionitem_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE documents_ingestionrun (
    id bigint NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    source character varying(1024) NOT NULL,
    policy character varying(20) NOT NULL,
    state character varying(10) NOT NULL,
    total integer NOT NULL,
    ready integer NOT NULL,
    skipped integer NOT NULL,
    failed integer NOT NULL,
    bytes bigint NOT NULL,
    chunks bigint NOT NULL,
    embedded bigint NOT NULL,
    tokens bigint NOT NULL,
    timings jsonb NOT NULL,
    started_at timestamp with time zone NOT NULL,
    finished_at timestamp with time zone,
    collection_id bigint NOT NULL,
    user_id bigint,
    workspace_id bigint NOT NULL,
    cancel_requested_at timestamp with time zone,
    cancelled integer NOT NULL,
    duplicates integer NOT NULL,
    retry_of_id bigint,
    store_once boolean NOT NULL,
    mentions bigint NOT NULL,
    relations bigint NOT NULL,
    CONSTRAINT documents_ingestionrun_bytes_check CHECK ((bytes >= 0)),
    CONSTRAINT documents_ingestionrun_cancelled_check CHECK ((cancelled >= 0)),
    CONSTRAINT documents_ingestionrun_chunks_check CHECK ((chunks >= 0)),
    CONSTRAINT documents_ingestionrun_duplicates_check CHECK ((duplicates >= 0)),
    CONSTRAINT documents_ingestionrun_embedded_check CHECK ((embedded >= 0)),
    CONSTRAINT documents_ingestionrun_failed_check CHECK ((failed >= 0)),
    CONSTRAINT documents_ingestionrun_mentions_check CHECK ((mentions >= 0)),
    CONSTRAINT documents_ingestionrun_ready_check CHECK ((ready >= 0)),
    CONSTRAINT documents_ingestionrun_relations_check CHECK ((relations >= 0)),
    CONSTRAINT documents_ingestionrun_skipped_check CHECK ((skipped >= 0)),
    CONSTRAINT documents_ingestionrun_tokens_check CHECK ((tokens >= 0)),
    CONSTRAINT documents_ingestionrun_total_check CHECK ((total >= 0))
);
ALTER TABLE documents_ingestionrun ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME documents_ingestionrun_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE documents_lexeme (
    collection_id bigint NOT NULL,
    language regconfig NOT NULL,
    lexeme text NOT NULL COLLATE pg_catalog."C",
    workspace_id bigint NOT NULL
);
CREATE TABLE documents_lexicalsegment (
    id bigint NOT NULL,
    language regconfig NOT NULL,
    is_current boolean NOT NULL,
    chunk_count integer NOT NULL,
    wordless_count integer NOT NULL,
    total_length bigint NOT NULL,
    created_at timestamp with time zone NOT NULL,
    collection_id bigint NOT NULL,
    workspace_id bigint NOT NULL,
    CONSTRAINT documents_lexicalsegment_chunk_count_check CHECK ((chunk_count >= 0)),
    CONSTRAINT documents_lexicalsegment_total_length_check CHECK ((total_length >= 0)),
    CONSTRAINT documents_lexicalsegment_wordless_count_check CHECK ((wordless_count >= 0))
);
ALTER TABLE documents_lexicalsegment ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME documents_lexicalsegment_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE documents_pendingchunk (
    collection_id bigint NOT NULL,
    index_id bigint NOT NULL,
    workspace_id bigint NOT NULL
);
CREATE TABLE documents_pendingposting (
    collection_id bigint NOT NULL,
    lexeme text NOT NULL COLLATE pg_catalog."C",
    index_id bigint NOT NULL,
    language regconfig NOT NULL,
    is_current boolean NOT NULL,
    entries bigint[] NOT NULL,
    workspace_id bigint NOT NULL
);
CREATE TABLE documents_posting (
    segment_id bigint NOT NULL,
    lexeme text NOT NULL COLLATE pg_catalog."C",
    base bigint NOT NULL,
    data bytea NOT NULL,
    workspace_id bigint NOT NULL
);
ALTER TABLE ONLY documents_posting ALTER COLUMN data SET STORAGE EXTERNAL;
CREATE TABLE documents_reembedding (
    id bigint NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    state character varying(10) NOT NULL,
    total bigint NOT NULL,
    done bigint NOT NULL,
    sources bigint[] NOT NULL,
    refused bigint[] NOT NULL,
    error text NOT NULL,
    token uuid,
    seen_at timestamp with time zone NOT NULL,
    started_at timestamp with time zone NOT NULL,
    finished_at timestamp with time zone,
    collection_id bigint,
    created_by_id bigint,
    target_id bigint NOT NULL,
    CONSTRAINT documents_reembedding_done_check CHECK ((done >= 0)),
    CONSTRAINT documents_reembedding_total_check CHECK ((total >= 0))
);
ALTER TABLE documents_reembedding ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME documents_reembedding_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE documents_removedchunk (
    collection_id bigint NOT NULL,
    index_id bigint NOT NULL,
    language regconfig NOT NULL,
    is_current boolean NOT NULL,
    length integer NOT NULL,
    workspace_id bigint NOT NULL,
    CONSTRAINT documents_removedchunk_length_check CHECK ((length >= 0))
);
CREATE TABLE documents_scannedpage (
    id bigint NOT NULL,
    source_sha256 character varying(64) NOT NULL,
    page integer NOT NULL,
    engine character varying(40) NOT NULL,
    text text NOT NULL,
    lines jsonb NOT NULL,
    confidence double precision NOT NULL,
    rotation smallint NOT NULL,
    created_at timestamp with time zone NOT NULL,
    document_id bigint NOT NULL,
    workspace_id bigint NOT NULL,
    CONSTRAINT documents_scannedpage_page_check CHECK ((page >= 0)),
    CONSTRAINT documents_scannedpage_rotation_check CHECK ((rotation >= 0))
);
ALTER TABLE documents_scannedpage ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME documents_scannedpage_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE documents_stageddocument (
    id bigint NOT NULL,
    payload bytea NOT NULL,
    created_at timestamp with time zone NOT NULL,
    document_id bigint NOT NULL,
    workspace_id bigint NOT NULL
);
ALTER TABLE documents_stageddocument ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME documents_stageddocument_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE documents_stagedvectors (
    id bigint NOT NULL,
    digests character varying(64)[] NOT NULL,
    vectors bytea NOT NULL,
    created_at timestamp with time zone NOT NULL,
    document_id bigint NOT NULL,
    space_id bigint NOT NULL,
    workspace_id bigint NOT NULL
);
ALTER TABLE ONLY documents_stagedvectors ALTER COLUMN vectors SET STORAGE EXTERNAL;
ALTER TABLE documents_stagedvectors ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME documents_stagedvectors_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE graph_alias (
    id bigint NOT NULL,
    form character varying(300) NOT NULL,
    workspace_id bigint NOT NULL,
    node_id bigint NOT NULL
);
ALTER TABLE graph_alias ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME graph_alias_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE graph_edge (
    id bigint NOT NULL,
    rel character varying(100) NOT NULL,
    weight double precision NOT NULL,
    props jsonb NOT NULL,
    origin character varying(9) NOT NULL,
    updated_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    workspace_id bigint NOT NULL,
    source_id bigint NOT NULL,
    target_id bigint NOT NULL,
    CONSTRAINT edge_rel_check CHECK ((NOT ((rel)::text = ''::text))),
    CONSTRAINT edge_weight_check CHECK (((weight >= (0.0)::double precision) AND (weight <= (1000000000.0)::double precision)))
);
ALTER TABLE graph_edge ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME graph_edge_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE graph_evidence (
    start integer NOT NULL,
    "end" integer NOT NULL,
    chunk_id bigint NOT NULL,
    edge_id bigint NOT NULL,
    workspace_id bigint NOT NULL,
    CONSTRAINT graph_evidence_end_check CHECK (("end" >= 0)),
    CONSTRAINT graph_evidence_start_check CHECK ((start >= 0))
);
CREATE TABLE graph_extraction (
    id bigint NOT NULL,
    state character varying(7) NOT NULL,
    recipe character varying(64) NOT NULL,
    attempts smallint NOT NULL,
    outages smallint NOT NULL,
    error text NOT NULL,
    due_at timestamp with time zone,
    token uuid,
    leased_until timestamp with time zone,
    mentions integer NOT NULL,
    relations integer NOT NULL,
    extracted_at timestamp with time zone,
    collection_id bigint NOT NULL,
    document_id bigint NOT NULL,
    run_id bigint,
    workspace_id bigint NOT NULL,
    CONSTRAINT graph_extraction_attempts_check CHECK ((attempts >= 0)),
    CONSTRAINT graph_extraction_mentions_check CHECK ((mentions >= 0)),
    CONSTRAINT graph_extraction_outages_check CHECK ((outages >= 0)),
    CONSTRAINT graph_extraction_relations_check CHECK ((relations >= 0))
);
ALTER TABLE graph_extraction ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME graph_extraction_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE graph_mention (
    kind smallint NOT NULL,
    count integer NOT NULL,
    start integer NOT NULL,
    "end" integer NOT NULL,
    chunk_id bigint NOT NULL,
    workspace_id bigint NOT NULL,
    node_id bigint NOT NULL,
    CONSTRAINT graph_mention_count_check CHECK ((count >= 0)),
    CONSTRAINT graph_mention_end_check CHECK (("end" >= 0)),
    CONSTRAINT graph_mention_kind_check CHECK ((kind >= 0)),
    CONSTRAINT graph_mention_start_check CHECK ((start >= 0))
);
CREATE TABLE graph_node (
    id bigint NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    key character varying(1024) NOT NULL,
    name text NOT NULL,
    labels character varying(100)[] NOT NULL,
    props jsonb NOT NULL,
    origin character varying(9) NOT NULL,
    is_stub boolean DEFAULT false NOT NULL,
    chunk_id bigint,
    document_id bigint,
    workspace_id bigint NOT NULL,
    CONSTRAINT node_key_check CHECK ((NOT ((key)::text = ''::text)))
);
ALTER TABLE graph_node ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME graph_node_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE memory_context (
    id bigint NOT NULL,
    user_id character varying(255) NOT NULL,
    origin character varying(5) NOT NULL,
    language regconfig NOT NULL,
    embedding vector,
    embed_attempts smallint NOT NULL,
    conversation character varying(255) NOT NULL,
    user_message text NOT NULL,
    assistant_response text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    content_sha256 character varying(64) NOT NULL,
    size integer GENERATED ALWAYS AS ((octet_length(user_message) + octet_length(assistant_response))) STORED,
    search_vector tsvector GENERATED ALWAYS AS ((setweight(to_tsvector(language, ragsite_words(user_message)), 'A'::"char") || setweight(to_tsvector(language, ragsite_words(assistant_response)), 'B'::"char"))) STORED,
    space_id bigint,
    workspace_id bigint NOT NULL,
    outdated_at timestamp with time zone,
    CONSTRAINT context_embedding_space_check CHECK (((embedding IS NULL) OR (space_id IS NOT NULL))),
    CONSTRAINT memory_context_embed_attempts_check CHECK ((embed_attempts >= 0))
);
ALTER TABLE memory_context ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME memory_context_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE memory_extractionitem (
    id bigint NOT NULL,
    user_id character varying(255) NOT NULL,
    key character varying(255) NOT NULL,
    messages jsonb NOT NULL,
    seen integer NOT NULL,
    taken jsonb NOT NULL,
    state character varying(7) NOT NULL,
    attempts smallint NOT NULL,
    outages smallint NOT NULL,
    error text NOT NULL,
    due_at timestamp with time zone,
    token uuid,
    leased_until timestamp with time zone,
    last_message_at timestamp with time zone NOT NULL,
    extracted_at timestamp with time zone,
    extractor character varying(200) NOT NULL,
    facts integer NOT NULL,
    contexts integer NOT NULL,
    workspace_id bigint NOT NULL,
    last_keys jsonb DEFAULT '[]'::jsonb NOT NULL,
    CONSTRAINT memory_extractionitem_attempts_check CHECK ((attempts >= 0)),
    CONSTRAINT memory_extractionitem_contexts_check CHECK ((contexts >= 0)),
    CONSTRAINT memory_extractionitem_facts_check CHECK ((facts >= 0)),
    CONSTRAINT memory_extractionitem_outages_check CHECK ((outages >= 0)),
    CONSTRAINT memory_extractionitem_seen_check CHECK ((seen >= 0))
);
ALTER TABLE memory_extractionitem ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME memory_extractionitem_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE memory_fact (
    id bigint NOT NULL,
    user_id character varying(255) NOT NULL,
    origin character varying(5) NOT NULL,
    language regconfig NOT NULL,
    embedding vector,
    embed_attempts smallint NOT NULL,
    key character varying(200) NOT NULL,
    value text NOT NULL,
    valid_from timestamp with time zone NOT NULL,
    valid_to timestamp with time zone,
    confirmed_at timestamp with time zone NOT NULL,
    size integer GENERATED ALWAYS AS ((octet_length((key)::text) + octet_length(value))) STORED,
    search_vector tsvector GENERATED ALWAYS AS ((setweight(to_tsvector(language, ragsite_words((key)::text)), 'A'::"char") || setweight(to_tsvector(language, ragsite_words(value)), 'B'::"char"))) STORED,
    source_id bigint,
    space_id bigint,
    superseded_by_id bigint,
    workspace_id bigint NOT NULL,
    CONSTRAINT fact_embedding_space_check CHECK (((embedding IS NULL) OR (space_id IS NOT NULL))),
    CONSTRAINT fact_valid_to_check CHECK (((valid_to IS NULL) OR (valid_to >= valid_from))),
    CONSTRAINT memory_fact_embed_attempts_check CHECK ((embed_attempts >= 0))
);
ALTER TABLE memory_fact ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME memory_fact_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE memory_pruning (
    id bigint NOT NULL,
    user_id character varying(255) NOT NULL,
    reason character varying(9) NOT NULL,
    rows integer NOT NULL,
    bytes bigint NOT NULL,
    until timestamp with time zone NOT NULL,
    created_at timestamp with time zone NOT NULL,
    workspace_id bigint NOT NULL,
    CONSTRAINT memory_pruning_bytes_check CHECK ((bytes >= 0)),
    CONSTRAINT memory_pruning_rows_check CHECK ((rows >= 0))
);
ALTER TABLE memory_pruning ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME memory_pruning_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE model_servers_modelconnection (
    id bigint NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    name character varying(200) NOT NULL,
    kind character varying(20) NOT NULL,
    address character varying(500) NOT NULL,
    model character varying(200) NOT NULL,
    credentials bytea NOT NULL,
    context_tokens integer,
    is_default boolean NOT NULL,
    workspaces bigint[],
    workspace_id bigint,
    input_price double precision,
    output_price double precision,
    dimensions integer,
    purpose character varying(20) DEFAULT 'chat'::character varying NOT NULL,
    CONSTRAINT model_servers_modelconnection_context_tokens_check CHECK ((context_tokens >= 0)),
    CONSTRAINT model_servers_modelconnection_dimensions_check CHECK ((dimensions >= 0)),
    CONSTRAINT modelconnection_default_check CHECK (((NOT is_default) OR ((workspace_id IS NULL) AND (workspaces IS NULL))))
);
ALTER TABLE model_servers_modelconnection ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME model_servers_modelconnection_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE model_servers_modelusage (
    id bigint NOT NULL,
    model character varying(200) NOT NULL,
    purpose character varying(10) NOT NULL,
    day date NOT NULL,
    calls integer NOT NULL,
    estimated_calls integer NOT NULL,
    input_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL,
    cost double precision,
    user_id bigint,
    workspace_id bigint NOT NULL,
    CONSTRAINT model_servers_modelusage_calls_check CHECK ((calls >= 0)),
    CONSTRAINT model_servers_modelusage_estimated_calls_check CHECK ((estimated_calls >= 0)),
    CONSTRAINT model_servers_modelusage_input_tokens_check CHECK ((input_tokens >= 0)),
    CONSTRAINT model_servers_modelusage_output_tokens_check CHECK ((output_tokens >= 0))
);
ALTER TABLE model_servers_modelusage ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME model_servers_modelusage_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE model_servers_workspacemodel (
    id bigint NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    connection_id bigint NOT NULL,
    workspace_id bigint NOT NULL
);
ALTER TABLE model_servers_workspacemodel ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME model_servers_workspacemodel_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE rag_conversation (
    id bigint NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    title character varying(200) NOT NULL,
    collections character varying(63)[] NOT NULL,
    pipeline character varying(63) NOT NULL,
    user_id bigint NOT NULL,
    workspace_id bigint NOT NULL
);
ALTER TABLE rag_conversation ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME rag_conversation_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE rag_databaseconnection (
    id bigint NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    name character varying(200) NOT NULL,
    address character varying(500) NOT NULL,
    database character varying(500) NOT NULL,
    username character varying(200) NOT NULL,
    credentials bytea NOT NULL,
    encryption character varying(20) NOT NULL,
    seconds smallint NOT NULL,
    max_rows smallint NOT NULL,
    access character varying(80)[],
    is_enabled boolean NOT NULL,
    by_operator boolean NOT NULL,
    server_version character varying(100) NOT NULL,
    tried_at timestamp with time zone,
    collection_id bigint NOT NULL,
    workspace_id bigint NOT NULL,
    CONSTRAINT rag_databaseconnection_max_rows_check CHECK ((max_rows >= 0)),
    CONSTRAINT rag_databaseconnection_seconds_check CHECK ((seconds >= 0))
);
ALTER TABLE rag_databaseconnection ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME rag_databaseconnection_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE rag_message (
    id bigint NOT NULL,
    role character varying(9) NOT NULL,
    state character varying(8) NOT NULL,
    content text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    model character varying(200) NOT NULL,
    generator character varying(10) NOT NULL,
    pipeline character varying(63) NOT NULL,
    passages jsonb NOT NULL,
    citations jsonb NOT NULL,
    verdict jsonb NOT NULL,
    memory jsonb,
    degraded character varying(20)[] NOT NULL,
    finish_reason character varying(10) NOT NULL,
    error_code character varying(40) NOT NULL,
    error text NOT NULL,
    input_tokens integer NOT NULL,
    output_tokens integer NOT NULL,
    elapsed_ms double precision,
    first_token_ms double precision,
    documents bigint[] NOT NULL,
    conversation_id bigint NOT NULL,
    workspace_id bigint NOT NULL,
    trace_id bigint,
    reasoning text DEFAULT ''::text NOT NULL,
    reasoning_ms double precision,
    tables jsonb,
    CONSTRAINT message_role_check CHECK (((role)::text = ANY ((ARRAY['user'::character varying, 'assistant'::character varying])::text[]))),
    CONSTRAINT rag_message_input_tokens_check CHECK ((input_tokens >= 0)),
    CONSTRAINT rag_message_output_tokens_check CHECK ((output_tokens >= 0))
);
ALTER TABLE rag_message ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME rag_message_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE rag_pipeline (
    id bigint NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    slug character varying(63) NOT NULL,
    name character varying(200) NOT NULL,
    description text NOT NULL,
    definition jsonb NOT NULL,
    version integer NOT NULL,
    changed_by_id bigint,
    workspace_id bigint NOT NULL,
    CONSTRAINT rag_pipeline_version_check CHECK ((version >= 0))
);
ALTER TABLE rag_pipeline ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME rag_pipeline_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE rag_span (
    id bigint NOT NULL,
    ordinal integer NOT NULL,
    kind character varying(5) NOT NULL,
    node character varying(63) NOT NULL,
    type character varying(63) NOT NULL,
    iteration integer NOT NULL,
    state character varying(9) NOT NULL,
    started_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone NOT NULL,
    input text NOT NULL,
    output text NOT NULL,
    is_cut boolean NOT NULL,
    input_tokens integer NOT NULL,
    output_tokens integer NOT NULL,
    error text NOT NULL,
    parent_id bigint,
    workspace_id bigint NOT NULL,
    trace_id bigint NOT NULL,
    CONSTRAINT rag_span_input_tokens_check CHECK ((input_tokens >= 0)),
    CONSTRAINT rag_span_iteration_check CHECK ((iteration >= 0)),
    CONSTRAINT rag_span_ordinal_check CHECK ((ordinal >= 0)),
    CONSTRAINT rag_span_output_tokens_check CHECK ((output_tokens >= 0))
);
ALTER TABLE rag_span ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME rag_span_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE rag_summary (
    id bigint NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    fingerprint character varying(64) NOT NULL,
    kind character varying(7) NOT NULL,
    model character varying(200) NOT NULL,
    state character varying(7) NOT NULL,
    text text NOT NULL,
    citations jsonb NOT NULL,
    documents bigint[] NOT NULL,
    chunks bigint[] NOT NULL,
    passage_count integer NOT NULL,
    calls_done smallint NOT NULL,
    calls_total smallint NOT NULL,
    error_code character varying(40) NOT NULL,
    error text NOT NULL,
    leased_until timestamp with time zone,
    workspace_id bigint NOT NULL,
    user_id bigint,
    CONSTRAINT rag_summary_calls_done_check CHECK ((calls_done >= 0)),
    CONSTRAINT rag_summary_calls_total_check CHECK ((calls_total >= 0)),
    CONSTRAINT rag_summary_passage_count_check CHECK ((passage_count >= 0))
);
ALTER TABLE rag_summary ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME rag_summary_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE rag_trace (
    id bigint NOT NULL,
    pipeline character varying(63) NOT NULL,
    version integer,
    definition jsonb NOT NULL,
    question text NOT NULL,
    answer text NOT NULL,
    state character varying(9) NOT NULL,
    started_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone,
    input_tokens integer NOT NULL,
    output_tokens integer NOT NULL,
    error_code character varying(40) NOT NULL,
    error text NOT NULL,
    documents bigint[] NOT NULL,
    removed_at timestamp with time zone,
    user_id bigint NOT NULL,
    workspace_id bigint NOT NULL,
    sources jsonb NOT NULL,
    CONSTRAINT rag_trace_input_tokens_check CHECK ((input_tokens >= 0)),
    CONSTRAINT rag_trace_output_tokens_check CHECK ((output_tokens >= 0)),
    CONSTRAINT rag_trace_version_check CHECK ((version >= 0))
);
ALTER TABLE rag_trace ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME rag_trace_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE search_evaluatedquestion (
    id bigint NOT NULL,
    question_sha256 character varying(64) NOT NULL,
    ndcg double precision NOT NULL,
    recall double precision NOT NULL,
    first_rank integer,
    good integer NOT NULL,
    found integer NOT NULL,
    workspace_id bigint NOT NULL,
    evaluation_id bigint NOT NULL,
    CONSTRAINT search_evaluatedquestion_first_rank_check CHECK ((first_rank >= 0)),
    CONSTRAINT search_evaluatedquestion_found_check CHECK ((found >= 0)),
    CONSTRAINT search_evaluatedquestion_good_check CHECK ((good >= 0))
);
ALTER TABLE search_evaluatedquestion ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME search_evaluatedquestion_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE search_evaluation (
    id bigint NOT NULL,
    cause character varying(7) NOT NULL,
    state character varying(7) NOT NULL,
    error_code character varying(40) NOT NULL,
    error text NOT NULL,
    leased_until timestamp with time zone,
    mode character varying(10) NOT NULL,
    k smallint NOT NULL,
    questions integer NOT NULL,
    judgements integer NOT NULL,
    judged_at timestamp with time zone,
    documents integer NOT NULL,
    chunks bigint NOT NULL,
    tuning jsonb,
    space bigint,
    degraded character varying(20)[] NOT NULL,
    ndcg double precision,
    recall double precision,
    mrr double precision,
    p50_ms double precision,
    p95_ms double precision,
    created_at timestamp with time zone NOT NULL,
    finished_at timestamp with time zone,
    collection_id bigint NOT NULL,
    user_id bigint,
    workspace_id bigint NOT NULL,
    CONSTRAINT search_evaluation_chunks_check CHECK ((chunks >= 0)),
    CONSTRAINT search_evaluation_documents_check CHECK ((documents >= 0)),
    CONSTRAINT search_evaluation_judgements_check CHECK ((judgements >= 0)),
    CONSTRAINT search_evaluation_k_check CHECK ((k >= 0)),
    CONSTRAINT search_evaluation_questions_check CHECK ((questions >= 0))
);
ALTER TABLE search_evaluation ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME search_evaluation_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE search_judgement (
    id bigint NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    question text NOT NULL,
    question_sha256 character varying(64) NOT NULL,
    grade smallint NOT NULL,
    note text NOT NULL,
    chunk_id bigint,
    collection_id bigint NOT NULL,
    document_id bigint NOT NULL,
    user_id bigint,
    workspace_id bigint NOT NULL,
    CONSTRAINT judgement_grade_check CHECK ((grade = ANY (ARRAY[0, 1, 2]))),
    CONSTRAINT search_judgement_grade_check CHECK ((grade >= 0))
);
ALTER TABLE search_judgement ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME search_judgement_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE search_savedsearch (
    id bigint NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    name character varying(100) NOT NULL,
    parameters text NOT NULL,
    user_id bigint NOT NULL,
    workspace_id bigint NOT NULL
);
ALTER TABLE search_savedsearch ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME search_savedsearch_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE search_searchlog (
    id bigint NOT NULL,
    query text NOT NULL,
    mode character varying(10) NOT NULL,
    filter jsonb,
    collections bigint[] NOT NULL,
    documents bigint[] NOT NULL,
    total integer NOT NULL,
    lexical_total integer,
    degraded character varying(20)[] NOT NULL,
    milliseconds double precision NOT NULL,
    source character varying(10) NOT NULL,
    created_at timestamp with time zone NOT NULL,
    user_id bigint,
    workspace_id bigint NOT NULL,
    refused boolean NOT NULL,
    similarity double precision,
    confidence character varying(4),
    tables bigint[],
    CONSTRAINT search_searchlog_lexical_total_check CHECK ((lexical_total >= 0)),
    CONSTRAINT search_searchlog_total_check CHECK ((total >= 0))
);
ALTER TABLE search_searchlog ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME search_searchlog_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE sources_datasource (
    id bigint NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    attempts smallint NOT NULL,
    outages smallint NOT NULL,
    error text NOT NULL,
    due_at timestamp with time zone,
    token uuid,
    leased_until timestamp with time zone,
    name character varying(200) NOT NULL,
    connector character varying(40) NOT NULL,
    options jsonb NOT NULL,
    credentials bytea NOT NULL,
    schedule character varying(100) NOT NULL,
    delete_missing boolean NOT NULL,
    max_deletions smallint NOT NULL,
    access character varying(80)[],
    access_rules jsonb NOT NULL,
    state character varying(10) NOT NULL,
    failures smallint NOT NULL,
    applied_access character varying(64) NOT NULL,
    collection_id bigint NOT NULL,
    created_by_id bigint,
    workspace_id bigint NOT NULL,
    maps_readers boolean DEFAULT false NOT NULL,
    problem character varying(10) DEFAULT ''::character varying NOT NULL,
    problem_since timestamp with time zone,
    run_again boolean DEFAULT false NOT NULL,
    webhook_secret bytea DEFAULT '\x'::bytea NOT NULL,
    CONSTRAINT sources_datasource_attempts_check CHECK ((attempts >= 0)),
    CONSTRAINT sources_datasource_failures_check CHECK ((failures >= 0)),
    CONSTRAINT sources_datasource_max_deletions_check CHECK ((max_deletions >= 0)),
    CONSTRAINT sources_datasource_outages_check CHECK ((outages >= 0))
);
ALTER TABLE sources_datasource ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME sources_datasource_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE sources_datasourceitem (
    id bigint NOT NULL,
    key character varying(1024) NOT NULL,
    name character varying(1024) NOT NULL,
    version character varying(200) NOT NULL,
    fetched_version character varying(200) NOT NULL,
    size bigint,
    url character varying(2000) NOT NULL,
    readers character varying(200)[],
    modified_at timestamp with time zone,
    failures smallint NOT NULL,
    error text NOT NULL,
    source_id bigint NOT NULL,
    workspace_id bigint NOT NULL,
    applied_readers character varying(200)[],
    CONSTRAINT sources_datasourceitem_failures_check CHECK ((failures >= 0)),
    CONSTRAINT sources_datasourceitem_size_check CHECK ((size >= 0))
);
ALTER TABLE sources_datasourceitem ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME sources_datasourceitem_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE sources_datasourcenotice (
    id bigint NOT NULL,
    attempts smallint NOT NULL,
    outages smallint NOT NULL,
    error text NOT NULL,
    due_at timestamp with time zone,
    token uuid,
    leased_until timestamp with time zone,
    problem character varying(10) NOT NULL,
    is_over boolean NOT NULL,
    since timestamp with time zone NOT NULL,
    state character varying(10) NOT NULL,
    created_at timestamp with time zone NOT NULL,
    source_id bigint NOT NULL,
    user_id bigint,
    workspace_id bigint NOT NULL,
    CONSTRAINT sources_datasourcenotice_attempts_check CHECK ((attempts >= 0)),
    CONSTRAINT sources_datasourcenotice_outages_check CHECK ((outages >= 0))
);
ALTER TABLE sources_datasourcenotice ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME sources_datasourcenotice_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE sources_datasourcerun (
    id bigint NOT NULL,
    state character varying(10) NOT NULL,
    cancel_requested_at timestamp with time zone,
    listed integer NOT NULL,
    new integer NOT NULL,
    changed integer NOT NULL,
    fetched integer NOT NULL,
    renamed integer NOT NULL,
    deleted integer NOT NULL,
    failed integer NOT NULL,
    bytes bigint NOT NULL,
    gone bigint[] NOT NULL,
    may_delete_any boolean NOT NULL,
    error text NOT NULL,
    ingestion_runs bigint[] NOT NULL,
    started_at timestamp with time zone NOT NULL,
    finished_at timestamp with time zone,
    source_id bigint NOT NULL,
    user_id bigint,
    workspace_id bigint NOT NULL,
    cause character varying(10) DEFAULT 'schedule'::character varying NOT NULL,
    CONSTRAINT sources_datasourcerun_bytes_check CHECK ((bytes >= 0)),
    CONSTRAINT sources_datasourcerun_changed_check CHECK ((changed >= 0)),
    CONSTRAINT sources_datasourcerun_deleted_check CHECK ((deleted >= 0)),
    CONSTRAINT sources_datasourcerun_failed_check CHECK ((failed >= 0)),
    CONSTRAINT sources_datasourcerun_fetched_check CHECK ((fetched >= 0)),
    CONSTRAINT sources_datasourcerun_listed_check CHECK ((listed >= 0)),
    CONSTRAINT sources_datasourcerun_new_check CHECK ((new >= 0)),
    CONSTRAINT sources_datasourcerun_renamed_check CHECK ((renamed >= 0))
);
ALTER TABLE sources_datasourcerun ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME sources_datasourcerun_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE tables_columnblock (
    "position" smallint NOT NULL,
    ordinal integer NOT NULL,
    cells text[],
    numbers double precision[],
    dates date[],
    starts bigint[],
    collection_id bigint NOT NULL,
    workspace_id bigint NOT NULL,
    table_id bigint NOT NULL,
    CONSTRAINT tables_columnblock_ordinal_check CHECK ((ordinal >= 0)),
    CONSTRAINT tables_columnblock_position_check CHECK (("position" >= 0))
);
CREATE TABLE tables_groupcolumn (
    id bigint NOT NULL,
    "position" smallint NOT NULL,
    key character varying(200) NOT NULL,
    type character varying(10) NOT NULL,
    unit character varying(20) NOT NULL,
    collection_id bigint NOT NULL,
    workspace_id bigint NOT NULL,
    group_id bigint NOT NULL,
    CONSTRAINT tables_groupcolumn_position_check CHECK (("position" >= 0))
);
ALTER TABLE tables_groupcolumn ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME tables_groupcolumn_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE tables_table (
    id bigint NOT NULL,
    ordinal integer NOT NULL,
    name character varying(500) NOT NULL,
    heading_path text[] NOT NULL,
    columns jsonb NOT NULL,
    row_count integer NOT NULL,
    rows_left_out integer NOT NULL,
    columns_left_out integer NOT NULL,
    start bigint NOT NULL,
    is_current boolean DEFAULT true NOT NULL,
    text_sha256 character varying(64) NOT NULL,
    collection_id bigint NOT NULL,
    document_id bigint NOT NULL,
    workspace_id bigint NOT NULL,
    fingerprint character varying(64) DEFAULT ''::character varying NOT NULL,
    is_apart boolean DEFAULT false NOT NULL,
    CONSTRAINT tables_table_columns_left_out_check CHECK ((columns_left_out >= 0)),
    CONSTRAINT tables_table_ordinal_check CHECK ((ordinal >= 0)),
    CONSTRAINT tables_table_row_count_check CHECK ((row_count >= 0)),
    CONSTRAINT tables_table_rows_left_out_check CHECK ((rows_left_out >= 0)),
    CONSTRAINT tables_table_start_check CHECK ((start >= 0))
);
ALTER TABLE tables_table ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME tables_table_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE tables_tablegroup (
    id bigint NOT NULL,
    collection_id bigint NOT NULL,
    workspace_id bigint NOT NULL
);
ALTER TABLE tables_tablegroup ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME tables_tablegroup_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE tables_tablelayout (
    id bigint NOT NULL,
    fingerprint character varying(64) NOT NULL,
    positions smallint[] NOT NULL,
    suggested_positions smallint[],
    refused bigint[] NOT NULL,
    is_corrected boolean NOT NULL,
    collection_id bigint NOT NULL,
    group_id bigint NOT NULL,
    suggested_group_id bigint,
    workspace_id bigint NOT NULL
);
ALTER TABLE tables_tablelayout ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME tables_tablelayout_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
INSERT INTO django_migrations (id, app, name, applied) VALUES (1, 'sessions', '0001_initial', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (2, 'contenttypes', '0001_initial', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (3, 'contenttypes', '0002_remove_content_type_name', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (4, 'auth', '0001_initial', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (5, 'auth', '0002_alter_permission_name_max_length', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (6, 'auth', '0003_alter_user_email_max_length', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (7, 'auth', '0004_alter_user_username_opts', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (8, 'auth', '0005_alter_user_last_login_null', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (9, 'auth', '0006_require_contenttypes_0002', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (10, 'auth', '0007_alter_validators_add_error_messages', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (11, 'auth', '0008_alter_user_username_max_length', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (12, 'auth', '0009_alter_user_last_name_max_length', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (13, 'auth', '0010_alter_group_name_max_length', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (14, 'auth', '0011_update_proxy_permissions', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (15, 'auth', '0012_alter_user_first_name_max_length', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (16, 'accounts', '0001_initial', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (17, 'accounts', '0002_idempotency_record', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (18, 'accounts', '0003_api_key', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (19, 'accounts', '0004_change', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (20, 'accounts', '0005_user_language', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (21, 'accounts', '0006_groups_and_invitations', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (22, 'accounts', '0007_sign_in', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (23, 'accounts', '0008_workspace_shard', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (24, 'admin', '0001_initial', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (25, 'admin', '0002_logentry_remove_auto_add', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (26, 'admin', '0003_logentry_add_action_flag_choices', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (27, 'dashboard', '0001_initial', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (28, 'documents', '0001_initial', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (29, 'documents', '0002_default_space', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (30, 'documents', '0003_reembedding', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (31, 'documents', '0004_split_names', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (32, 'documents', '0005_metadata_index', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (33, 'documents', '0006_collection_search', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (34, 'documents', '0007_words_without_spaces', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (35, 'documents', '0008_similar_words', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (36, 'documents', '0009_restricted_chunks', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (37, 'documents', '0010_ingestion_at_scale', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (38, 'documents', '0011_graph_extraction', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (39, 'documents', '0012_collection_facets', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (40, 'documents', '0013_chunk_edits', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (41, 'documents', '0014_lexical_index', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (42, 'documents', '0015_index_chunks', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (43, 'documents', '0016_collection_fusion', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (44, 'documents', '0017_scanned_page', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (45, 'documents', '0018_collection_automatic_model', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (46, 'documents', '0019_models_chosen_by_hand', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (47, 'documents', '0020_bundled_model', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (48, 'documents', '0021_chunk_tokens', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (49, 'documents', '0022_pending_postings', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (50, 'documents', '0023_index_at_once', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (51, 'documents', '0024_word_forms', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (52, 'documents', '0025_staged_vectors', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (53, 'documents', '0026_word_forms_in_linear_time', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (54, 'documents', '0027_collection_vectors', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (55, 'documents', '0028_small_digits', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (56, 'documents', '0029_half_precision', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (57, 'graph', '0001_nodes_and_edges', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (58, 'memory', '0001_contexts_and_facts', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (59, 'memory', '0002_endings_of_facts', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (60, 'memory', '0003_single_messages_are_due', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (61, 'model_servers', '0001_initial', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (62, 'model_servers', '0002_usage', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (63, 'model_servers', '0003_purpose', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (64, 'model_servers', '0004_usage_of_tables', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (65, 'rag', '0001_conversations_pipelines_traces', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (66, 'rag', '0002_trace_sources', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (67, 'rag', '0003_forget_as_the_owner', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (68, 'rag', '0004_summary', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (69, 'rag', '0005_message_reasoning', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (70, 'rag', '0006_summary_user', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (71, 'rag', '0007_message_tables', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (72, 'rag', '0008_database_connection', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (73, 'search', '0001_search_log_and_judgements', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (74, 'search', '0002_saved_search', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (75, 'search', '0003_evaluation_and_refusals', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (76, 'search', '0004_forget_as_the_owner', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (77, 'search', '0005_answer_confidence', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (78, 'search', '0006_searchlog_tables', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (79, 'sources', '0001_sources', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (80, 'sources', '0002_readers', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (81, 'sources', '0003_webhooks_and_notices', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (82, 'tables', '0001_tables_and_blocks', now());
INSERT INTO django_migrations (id, app, name, applied) VALUES (83, 'tables', '0002_groups_of_tables', now());
INSERT INTO documents_embeddingspace (id, created_at, updated_at, name, embedder, model_name, dimensions, metric, query_instruction, index_type, index_options, "precision", state, is_default) VALUES (1, now(), now(), 'minilm-384', 'default', 'all-MiniLM-L6-v2', 384, 'cosine', '', 'hnsw', '{"m": 16, "ef_construction": 64}', 'half', 'live', true);
SELECT pg_catalog.setval('django_migrations_id_seq', 83, true);
SELECT pg_catalog.setval('documents_embeddingspace_id_seq', 1, true);
ALTER TABLE ONLY accounts_apikey
    ADD CONSTRAINT accounts_apikey_pkey PRIMARY KEY (id);
ALTER TABLE ONLY accounts_change
    ADD CONSTRAINT accounts_change_pkey PRIMARY KEY (id);
ALTER TABLE ONLY accounts_groupmember
    ADD CONSTRAINT accounts_groupmember_pkey PRIMARY KEY (id);
ALTER TABLE ONLY accounts_idempotencyrecord
    ADD CONSTRAINT accounts_idempotencyrecord_pkey PRIMARY KEY (id);
ALTER TABLE ONLY accounts_identity
    ADD CONSTRAINT accounts_identity_pkey PRIMARY KEY (id);
ALTER TABLE ONLY accounts_invitation
    ADD CONSTRAINT accounts_invitation_pkey PRIMARY KEY (id);
ALTER TABLE ONLY accounts_loginsession
    ADD CONSTRAINT accounts_loginsession_pkey PRIMARY KEY (id);
ALTER TABLE ONLY accounts_loginsession
    ADD CONSTRAINT accounts_loginsession_session_id_key UNIQUE (session_id);
ALTER TABLE ONLY accounts_membership
    ADD CONSTRAINT accounts_membership_pkey PRIMARY KEY (id);
ALTER TABLE ONLY accounts_secondfactor
    ADD CONSTRAINT accounts_secondfactor_pkey PRIMARY KEY (id);
ALTER TABLE ONLY accounts_user_groups
    ADD CONSTRAINT accounts_user_groups_pkey PRIMARY KEY (id);
ALTER TABLE ONLY accounts_user_groups
    ADD CONSTRAINT accounts_user_groups_user_id_group_id_59c0b32f_uniq UNIQUE (user_id, group_id);
ALTER TABLE ONLY accounts_user
    ADD CONSTRAINT accounts_user_pkey PRIMARY KEY (id);
ALTER TABLE ONLY accounts_user_user_permissions
    ADD CONSTRAINT accounts_user_user_permi_user_id_permission_id_2ab516c2_uniq UNIQUE (user_id, permission_id);
ALTER TABLE ONLY accounts_user_user_permissions
    ADD CONSTRAINT accounts_user_user_permissions_pkey PRIMARY KEY (id);
ALTER TABLE ONLY accounts_user
    ADD CONSTRAINT accounts_user_username_key UNIQUE (username);
ALTER TABLE ONLY accounts_workspace
    ADD CONSTRAINT accounts_workspace_pkey PRIMARY KEY (id);
ALTER TABLE ONLY accounts_workspacegroup
    ADD CONSTRAINT accounts_workspacegroup_pkey PRIMARY KEY (group_id);
ALTER TABLE ONLY graph_alias
    ADD CONSTRAINT alias_workspace_form_unique UNIQUE (workspace_id, form);
ALTER TABLE ONLY accounts_apikey
    ADD CONSTRAINT apikey_workspace_user_digest_unique UNIQUE (workspace_id, user_id, digest);
ALTER TABLE ONLY auth_group
    ADD CONSTRAINT auth_group_name_key UNIQUE (name);
ALTER TABLE ONLY auth_group_permissions
    ADD CONSTRAINT auth_group_permissions_group_id_permission_id_0cd325b0_uniq UNIQUE (group_id, permission_id);
ALTER TABLE ONLY auth_group_permissions
    ADD CONSTRAINT auth_group_permissions_pkey PRIMARY KEY (id);
ALTER TABLE ONLY auth_group
    ADD CONSTRAINT auth_group_pkey PRIMARY KEY (id);
ALTER TABLE ONLY auth_permission
    ADD CONSTRAINT auth_permission_content_type_id_codename_01ab375a_uniq UNIQUE (content_type_id, codename);
ALTER TABLE ONLY auth_permission
    ADD CONSTRAINT auth_permission_pkey PRIMARY KEY (id);
ALTER TABLE ONLY documents_chunk
    ADD CONSTRAINT chunk_document_ordinal_unique UNIQUE (document_id, ordinal, workspace_id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY documents_collection
    ADD CONSTRAINT collection_workspace_slug_unique UNIQUE (workspace_id, slug);
ALTER TABLE ONLY memory_context
    ADD CONSTRAINT context_workspace_user_content_unique UNIQUE (workspace_id, user_id, content_sha256);
ALTER TABLE ONLY dashboard_sample
    ADD CONSTRAINT dashboard_sample_pkey PRIMARY KEY (id);
ALTER TABLE ONLY rag_databaseconnection
    ADD CONSTRAINT databaseconnection_database_unique UNIQUE (workspace_id, collection_id, database);
ALTER TABLE ONLY rag_databaseconnection
    ADD CONSTRAINT databaseconnection_name_unique UNIQUE (workspace_id, name);
ALTER TABLE ONLY sources_datasource
    ADD CONSTRAINT datasource_name_unique UNIQUE (workspace_id, name);
ALTER TABLE ONLY sources_datasourceitem
    ADD CONSTRAINT datasourceitem_key_unique UNIQUE (source_id, key, workspace_id);
ALTER TABLE ONLY django_admin_log
    ADD CONSTRAINT django_admin_log_pkey PRIMARY KEY (id);
ALTER TABLE ONLY django_content_type
    ADD CONSTRAINT django_content_type_app_label_model_76bd3d3b_uniq UNIQUE (app_label, model);
ALTER TABLE ONLY django_content_type
    ADD CONSTRAINT django_content_type_pkey PRIMARY KEY (id);
ALTER TABLE ONLY django_migrations
    ADD CONSTRAINT django_migrations_pkey PRIMARY KEY (id);
ALTER TABLE ONLY django_session
    ADD CONSTRAINT django_session_pkey PRIMARY KEY (session_key);
ALTER TABLE ONLY documents_document
    ADD CONSTRAINT document_collection_key_version_unique UNIQUE (collection_id, key, version, workspace_id);
ALTER TABLE ONLY documents_chunk
    ADD CONSTRAINT documents_chunk_pkey PRIMARY KEY (id);
ALTER TABLE ONLY documents_chunkedit
    ADD CONSTRAINT documents_chunkedit_pkey PRIMARY KEY (id);
ALTER TABLE ONLY documents_chunktokens
    ADD CONSTRAINT documents_chunktokens_pkey PRIMARY KEY (chunk_id);
ALTER TABLE ONLY documents_collection
    ADD CONSTRAINT documents_collection_pkey PRIMARY KEY (id);
ALTER TABLE ONLY documents_document
    ADD CONSTRAINT documents_document_pkey PRIMARY KEY (id);
ALTER TABLE ONLY documents_embeddingspace
    ADD CONSTRAINT documents_embeddingspace_pkey PRIMARY KEY (id);
ALTER TABLE ONLY documents_ingestionitem
    ADD CONSTRAINT documents_ingestionitem_pkey PRIMARY KEY (id);
ALTER TABLE ONLY documents_ingestionrun
    ADD CONSTRAINT documents_ingestionrun_pkey PRIMARY KEY (id);
ALTER TABLE ONLY documents_lexeme
    ADD CONSTRAINT documents_lexeme_pkey PRIMARY KEY (collection_id, language, lexeme, workspace_id);
ALTER TABLE ONLY documents_lexicalsegment
    ADD CONSTRAINT documents_lexicalsegment_pkey PRIMARY KEY (id);
ALTER TABLE ONLY documents_pendingchunk
    ADD CONSTRAINT documents_pendingchunk_pkey PRIMARY KEY (collection_id, index_id, workspace_id);
ALTER TABLE ONLY documents_pendingposting
    ADD CONSTRAINT documents_pendingposting_pkey PRIMARY KEY (collection_id, lexeme, index_id, workspace_id);
ALTER TABLE ONLY documents_posting
    ADD CONSTRAINT documents_posting_pkey PRIMARY KEY (segment_id, lexeme, base, workspace_id);
ALTER TABLE ONLY documents_reembedding
    ADD CONSTRAINT documents_reembedding_pkey PRIMARY KEY (id);
ALTER TABLE ONLY documents_removedchunk
    ADD CONSTRAINT documents_removedchunk_pkey PRIMARY KEY (collection_id, index_id, workspace_id);
ALTER TABLE ONLY documents_scannedpage
    ADD CONSTRAINT documents_scannedpage_pkey PRIMARY KEY (id);
ALTER TABLE ONLY documents_stageddocument
    ADD CONSTRAINT documents_stageddocument_document_id_key UNIQUE (document_id);
ALTER TABLE ONLY documents_stageddocument
    ADD CONSTRAINT documents_stageddocument_pkey PRIMARY KEY (id);
ALTER TABLE ONLY documents_stagedvectors
    ADD CONSTRAINT documents_stagedvectors_pkey PRIMARY KEY (id);
ALTER TABLE ONLY graph_edge
    ADD CONSTRAINT edge_source_rel_target_unique UNIQUE (source_id, rel, target_id, workspace_id);
ALTER TABLE ONLY documents_embeddingspace
    ADD CONSTRAINT embeddingspace_name_unique UNIQUE (name);
ALTER TABLE ONLY search_evaluatedquestion
    ADD CONSTRAINT evaluatedquestion_question_unique UNIQUE (evaluation_id, question_sha256, workspace_id);
ALTER TABLE ONLY memory_extractionitem
    ADD CONSTRAINT extractionitem_conversation_unique UNIQUE (workspace_id, user_id, key);
ALTER TABLE ONLY graph_alias
    ADD CONSTRAINT graph_alias_pkey PRIMARY KEY (id);
ALTER TABLE ONLY graph_edge
    ADD CONSTRAINT graph_edge_pkey PRIMARY KEY (id);
ALTER TABLE ONLY graph_evidence
    ADD CONSTRAINT graph_evidence_pkey PRIMARY KEY (chunk_id, edge_id);
ALTER TABLE ONLY graph_extraction
    ADD CONSTRAINT graph_extraction_document_id_key UNIQUE (document_id);
ALTER TABLE ONLY graph_extraction
    ADD CONSTRAINT graph_extraction_pkey PRIMARY KEY (id);
ALTER TABLE ONLY graph_mention
    ADD CONSTRAINT graph_mention_pkey PRIMARY KEY (chunk_id, node_id);
ALTER TABLE ONLY graph_node
    ADD CONSTRAINT graph_node_pkey PRIMARY KEY (id);
ALTER TABLE ONLY tables_groupcolumn
    ADD CONSTRAINT groupcolumn_group_position_key_unique UNIQUE (group_id, "position", key);
ALTER TABLE ONLY accounts_groupmember
    ADD CONSTRAINT groupmember_membership_group_unique UNIQUE (membership_id, group_id, source);
ALTER TABLE ONLY accounts_idempotencyrecord
    ADD CONSTRAINT idempotencyrecord_key_unique UNIQUE (workspace_id, user_id, key);
ALTER TABLE ONLY accounts_identity
    ADD CONSTRAINT identity_issuer_subject_unique UNIQUE (issuer, subject);
ALTER TABLE ONLY accounts_invitation
    ADD CONSTRAINT invitation_digest_unique UNIQUE (digest, workspace_id);
ALTER TABLE ONLY search_judgement
    ADD CONSTRAINT judgement_question_document_unique UNIQUE (collection_id, question_sha256, document_id, workspace_id);
ALTER TABLE ONLY accounts_membership
    ADD CONSTRAINT membership_workspace_user_unique UNIQUE (workspace_id, user_id);
ALTER TABLE ONLY memory_context
    ADD CONSTRAINT memory_context_pkey PRIMARY KEY (id);
ALTER TABLE ONLY memory_extractionitem
    ADD CONSTRAINT memory_extractionitem_pkey PRIMARY KEY (id);
ALTER TABLE ONLY memory_fact
    ADD CONSTRAINT memory_fact_pkey PRIMARY KEY (id);
ALTER TABLE ONLY memory_pruning
    ADD CONSTRAINT memory_pruning_pkey PRIMARY KEY (id);
ALTER TABLE ONLY model_servers_modelconnection
    ADD CONSTRAINT model_servers_modelconnection_pkey PRIMARY KEY (id);
ALTER TABLE ONLY model_servers_modelusage
    ADD CONSTRAINT model_servers_modelusage_pkey PRIMARY KEY (id);
ALTER TABLE ONLY model_servers_workspacemodel
    ADD CONSTRAINT model_servers_workspacemodel_pkey PRIMARY KEY (id);
ALTER TABLE ONLY model_servers_workspacemodel
    ADD CONSTRAINT model_servers_workspacemodel_workspace_id_key UNIQUE (workspace_id);
ALTER TABLE ONLY model_servers_modelconnection
    ADD CONSTRAINT modelconnection_name_unique UNIQUE NULLS NOT DISTINCT (workspace_id, name);
ALTER TABLE ONLY model_servers_modelusage
    ADD CONSTRAINT modelusage_day_workspace_user_model_purpose_unique UNIQUE NULLS NOT DISTINCT (day, workspace_id, user_id, model, purpose);
ALTER TABLE ONLY graph_node
    ADD CONSTRAINT node_workspace_key_unique UNIQUE (workspace_id, key);
ALTER TABLE ONLY rag_pipeline
    ADD CONSTRAINT pipeline_workspace_slug_unique UNIQUE (workspace_id, slug);
ALTER TABLE ONLY rag_conversation
    ADD CONSTRAINT rag_conversation_pkey PRIMARY KEY (id);
ALTER TABLE ONLY rag_databaseconnection
    ADD CONSTRAINT rag_databaseconnection_pkey PRIMARY KEY (id);
ALTER TABLE ONLY rag_message
    ADD CONSTRAINT rag_message_pkey PRIMARY KEY (id);
ALTER TABLE ONLY rag_pipeline
    ADD CONSTRAINT rag_pipeline_pkey PRIMARY KEY (id);
ALTER TABLE ONLY rag_span
    ADD CONSTRAINT rag_span_pkey PRIMARY KEY (id);
ALTER TABLE ONLY rag_summary
    ADD CONSTRAINT rag_summary_pkey PRIMARY KEY (id);
ALTER TABLE ONLY rag_trace
    ADD CONSTRAINT rag_trace_pkey PRIMARY KEY (id);
ALTER TABLE ONLY dashboard_sample
    ADD CONSTRAINT sample_workspace_at_unique UNIQUE (workspace_id, at);
ALTER TABLE ONLY search_savedsearch
    ADD CONSTRAINT savedsearch_name_unique UNIQUE (workspace_id, user_id, name);
ALTER TABLE ONLY documents_scannedpage
    ADD CONSTRAINT scannedpage_document_source_page_unique UNIQUE (document_id, source_sha256, page, workspace_id);
ALTER TABLE ONLY search_evaluatedquestion
    ADD CONSTRAINT search_evaluatedquestion_pkey PRIMARY KEY (id);
ALTER TABLE ONLY search_evaluation
    ADD CONSTRAINT search_evaluation_pkey PRIMARY KEY (id);
ALTER TABLE ONLY search_judgement
    ADD CONSTRAINT search_judgement_pkey PRIMARY KEY (id);
ALTER TABLE ONLY search_savedsearch
    ADD CONSTRAINT search_savedsearch_pkey PRIMARY KEY (id);
ALTER TABLE ONLY search_searchlog
    ADD CONSTRAINT search_searchlog_pkey PRIMARY KEY (id);
ALTER TABLE ONLY sources_datasource
    ADD CONSTRAINT sources_datasource_pkey PRIMARY KEY (id);
ALTER TABLE ONLY sources_datasourceitem
    ADD CONSTRAINT sources_datasourceitem_pkey PRIMARY KEY (id);
ALTER TABLE ONLY sources_datasourcenotice
    ADD CONSTRAINT sources_datasourcenotice_pkey PRIMARY KEY (id);
ALTER TABLE ONLY sources_datasourcerun
    ADD CONSTRAINT sources_datasourcerun_pkey PRIMARY KEY (id);
ALTER TABLE ONLY rag_span
    ADD CONSTRAINT span_trace_ordinal_unique UNIQUE (trace_id, ordinal, workspace_id);
ALTER TABLE ONLY rag_summary
    ADD CONSTRAINT summary_workspace_fingerprint_kind_model_unique UNIQUE (workspace_id, fingerprint, kind, model);
ALTER TABLE ONLY tables_table
    ADD CONSTRAINT table_document_ordinal_unique UNIQUE (document_id, ordinal);
ALTER TABLE ONLY tables_tablelayout
    ADD CONSTRAINT tablelayout_collection_layout_unique UNIQUE (collection_id, fingerprint);
ALTER TABLE ONLY tables_columnblock
    ADD CONSTRAINT tables_columnblock_pkey PRIMARY KEY (table_id, "position", ordinal);
ALTER TABLE ONLY tables_groupcolumn
    ADD CONSTRAINT tables_groupcolumn_pkey PRIMARY KEY (id);
ALTER TABLE ONLY tables_table
    ADD CONSTRAINT tables_table_pkey PRIMARY KEY (id);
ALTER TABLE ONLY tables_tablegroup
    ADD CONSTRAINT tables_tablegroup_pkey PRIMARY KEY (id);
ALTER TABLE ONLY tables_tablelayout
    ADD CONSTRAINT tables_tablelayout_pkey PRIMARY KEY (id);
ALTER TABLE ONLY accounts_workspace
    ADD CONSTRAINT workspace_slug_unique UNIQUE (slug);
ALTER TABLE ONLY accounts_workspacegroup
    ADD CONSTRAINT workspacegroup_workspace_name_unique UNIQUE (workspace_id, name);
CREATE INDEX accounts_apikey_membership_id_7146a482 ON accounts_apikey USING btree (membership_id);
CREATE INDEX accounts_apikey_user_id_bd902026 ON accounts_apikey USING btree (user_id);
CREATE INDEX accounts_change_key_id_4508af91 ON accounts_change USING btree (key_id);
CREATE INDEX accounts_change_user_id_e3d5ee31 ON accounts_change USING btree (user_id);
CREATE INDEX accounts_groupmember_group_id_590adbea ON accounts_groupmember USING btree (group_id);
CREATE INDEX accounts_idempotencyrecord_user_id_00f7187b ON accounts_idempotencyrecord USING btree (user_id);
CREATE INDEX accounts_identity_user_id_f7ddf146 ON accounts_identity USING btree (user_id);
CREATE INDEX accounts_invitation_created_by_id_e6097355 ON accounts_invitation USING btree (created_by_id);
CREATE INDEX accounts_loginsession_session_id_d72f8e99_like ON accounts_loginsession USING btree (session_id varchar_pattern_ops);
CREATE INDEX accounts_loginsession_user_id_88028387 ON accounts_loginsession USING btree (user_id);
CREATE INDEX accounts_membership_user_id_487fb39e ON accounts_membership USING btree (user_id);
CREATE INDEX accounts_membership_workspace_id_3a7fb173 ON accounts_membership USING btree (workspace_id);
CREATE INDEX accounts_secondfactor_user_id_1e182b70 ON accounts_secondfactor USING btree (user_id);
CREATE INDEX accounts_user_groups_group_id_bd11a704 ON accounts_user_groups USING btree (group_id);
CREATE INDEX accounts_user_groups_user_id_52b62117 ON accounts_user_groups USING btree (user_id);
CREATE INDEX accounts_user_user_permissions_permission_id_113bb443 ON accounts_user_user_permissions USING btree (permission_id);
CREATE INDEX accounts_user_user_permissions_user_id_e4f0a161 ON accounts_user_user_permissions USING btree (user_id);
CREATE INDEX accounts_user_username_6088629e_like ON accounts_user USING btree (username varchar_pattern_ops);
CREATE INDEX accounts_workspace_slug_bdf7b4c7 ON accounts_workspace USING btree (slug);
CREATE INDEX accounts_workspace_slug_bdf7b4c7_like ON accounts_workspace USING btree (slug varchar_pattern_ops);
CREATE INDEX apikey_prefix_index ON accounts_apikey USING btree (prefix);
CREATE INDEX auth_group_name_a6ea08ec_like ON auth_group USING btree (name varchar_pattern_ops);
CREATE INDEX auth_group_permissions_group_id_b120cbf9 ON auth_group_permissions USING btree (group_id);
CREATE INDEX auth_group_permissions_permission_id_84c5c92e ON auth_group_permissions USING btree (permission_id);
CREATE INDEX auth_permission_content_type_id_2f476e4b ON auth_permission USING btree (content_type_id);
CREATE INDEX change_age_index ON accounts_change USING btree (created_at);
CREATE INDEX change_collection_index ON accounts_change USING btree (collection, id DESC) WHERE (collection IS NOT NULL);
CREATE INDEX change_document_index ON accounts_change USING btree (document, id DESC) WHERE (document IS NOT NULL);
CREATE INDEX change_subject_index ON accounts_change USING btree (workspace_id, subject) WHERE (NOT ((subject)::text = ''::text));
CREATE INDEX change_thing_index ON accounts_change USING btree (kind, thing, id DESC);
CREATE INDEX change_workspace_index ON accounts_change USING btree (workspace_id, id DESC);
CREATE INDEX chunk_collection_space_index ON documents_chunk USING btree (collection_id, space_id);
CREATE INDEX chunk_index_id_index ON documents_chunk USING btree (index_id);
CREATE INDEX chunk_metadata_index ON documents_chunk USING gin (metadata jsonb_path_ops) WITH (fastupdate=off);
CREATE INDEX chunk_restricted_index ON documents_chunk USING btree (collection_id) WHERE (access IS NOT NULL);
CREATE INDEX chunk_space_1_index ON documents_chunk USING hnsw (((embedding)::halfvec(384)) halfvec_cosine_ops) WITH (m='16', ef_construction='64') WHERE (space_id = 1);
CREATE INDEX context_age_index ON memory_context USING btree (workspace_id, user_id, created_at) INCLUDE (size);
CREATE INDEX context_space_index ON memory_context USING btree (space_id);
CREATE INDEX context_unembedded_index ON memory_context USING btree (id) WHERE (embedding IS NULL);
CREATE INDEX conversation_recent_index ON rag_conversation USING btree (workspace_id, user_id, updated_at DESC);
CREATE INDEX datasource_due_index ON sources_datasource USING btree (state, due_at);
CREATE INDEX datasourcenotice_due_index ON sources_datasourcenotice USING btree (state, due_at);
CREATE INDEX django_admin_log_content_type_id_c4bce8eb ON django_admin_log USING btree (content_type_id);
CREATE INDEX django_admin_log_user_id_c564eba6 ON django_admin_log USING btree (user_id);
CREATE INDEX django_session_expire_date_a5c62663 ON django_session USING btree (expire_date);
CREATE INDEX django_session_session_key_c0390e0f_like ON django_session USING btree (session_key varchar_pattern_ops);
CREATE UNIQUE INDEX document_current_key_unique ON documents_document USING btree (collection_id, key, workspace_id) WHERE is_current;
CREATE INDEX document_source_index ON documents_document USING btree (collection_id, source_sha256);
CREATE INDEX document_title_index ON documents_document USING gin (title gin_trgm_ops);
CREATE INDEX document_tokens_model_index ON documents_document USING btree (tokens_model) WHERE ((chunk_count > 0) AND is_current AND ((status)::text = 'ready'::text));
CREATE INDEX document_unfinished_index ON documents_document USING btree (claimed_until) WHERE ((status)::text = ANY ((ARRAY['queued'::character varying, 'processing'::character varying])::text[]));
CREATE INDEX documents_chunkedit_document_id_212effbf ON documents_chunkedit USING btree (document_id);
CREATE INDEX documents_chunkedit_settled_by_id_40ab318d ON documents_chunkedit USING btree (settled_by_id);
CREATE INDEX documents_chunkedit_user_id_97492a02 ON documents_chunkedit USING btree (user_id);
CREATE INDEX documents_collection_slug_8d630641 ON documents_collection USING btree (slug);
CREATE INDEX documents_collection_slug_8d630641_like ON documents_collection USING btree (slug varchar_pattern_ops);
CREATE INDEX documents_collection_space_id_4ee37fbe ON documents_collection USING btree (space_id);
CREATE INDEX documents_collection_workspace_id_3b44b5f5 ON documents_collection USING btree (workspace_id);
CREATE INDEX documents_document_collection_id_041e3fe8 ON documents_document USING btree (collection_id);
CREATE INDEX documents_document_duplicate_of_id_f77ea283 ON documents_document USING btree (duplicate_of_id);
CREATE INDEX documents_embeddingspace_name_a41a61df ON documents_embeddingspace USING btree (name);
CREATE INDEX documents_embeddingspace_name_a41a61df_like ON documents_embeddingspace USING btree (name varchar_pattern_ops);
CREATE INDEX documents_ingestionitem_document_id_ef260970 ON documents_ingestionitem USING btree (document_id);
CREATE INDEX documents_ingestionitem_run_id_0bab2fcd ON documents_ingestionitem USING btree (run_id);
CREATE INDEX documents_ingestionrun_collection_id_7ac8c91f ON documents_ingestionrun USING btree (collection_id);
CREATE INDEX documents_ingestionrun_retry_of_id_e3a714f7 ON documents_ingestionrun USING btree (retry_of_id);
CREATE INDEX documents_ingestionrun_user_id_a39fc60d ON documents_ingestionrun USING btree (user_id);
CREATE INDEX documents_lexicalsegment_collection_id_e21c80f7 ON documents_lexicalsegment USING btree (collection_id);
CREATE INDEX documents_reembedding_collection_id_3cd00e7b ON documents_reembedding USING btree (collection_id);
CREATE INDEX documents_reembedding_created_by_id_06d47f3f ON documents_reembedding USING btree (created_by_id);
CREATE INDEX documents_reembedding_target_id_c9a74d0a ON documents_reembedding USING btree (target_id);
CREATE INDEX documents_scannedpage_document_id_8c20a29b ON documents_scannedpage USING btree (document_id);
CREATE INDEX documents_stagedvectors_document_id_117c87ff ON documents_stagedvectors USING btree (document_id);
CREATE INDEX documents_stagedvectors_space_id_c309ed19 ON documents_stagedvectors USING btree (space_id);
CREATE INDEX edge_source_weight_index ON graph_edge USING btree (source_id, weight DESC, target_id, rel);
CREATE INDEX edge_target_weight_index ON graph_edge USING btree (target_id, weight DESC, source_id, rel);
CREATE UNIQUE INDEX embeddingspace_default_unique ON documents_embeddingspace USING btree (is_default) WHERE is_default;
CREATE INDEX evaluatedquestion_ws_index ON search_evaluatedquestion USING btree (workspace_id);
CREATE INDEX evaluation_collection_index ON search_evaluation USING btree (collection_id, id DESC);
CREATE UNIQUE INDEX evaluation_waiting_unique ON search_evaluation USING btree (collection_id, workspace_id) WHERE ((state)::text = 'waiting'::text);
CREATE INDEX evaluation_workspace_index ON search_evaluation USING btree (workspace_id, created_at);
CREATE INDEX extraction_unfinished_index ON graph_extraction USING btree (due_at) WHERE ((state)::text = ANY ((ARRAY['waiting'::character varying, 'running'::character varying])::text[]));
CREATE INDEX extractionitem_due_index ON memory_extractionitem USING btree (state, due_at);
CREATE INDEX fact_history_index ON memory_fact USING btree (workspace_id, user_id, key, valid_from);
CREATE INDEX fact_space_index ON memory_fact USING btree (space_id);
CREATE INDEX fact_unembedded_index ON memory_fact USING btree (id) WHERE (embedding IS NULL);
CREATE UNIQUE INDEX fact_workspace_user_key_current_unique ON memory_fact USING btree (workspace_id, user_id, key) WHERE (valid_to IS NULL);
CREATE INDEX graph_alias_node_id_1328ca64 ON graph_alias USING btree (node_id);
CREATE INDEX graph_edge_workspace_id_bade7096 ON graph_edge USING btree (workspace_id);
CREATE INDEX graph_evidence_edge_id_3810ffcb ON graph_evidence USING btree (edge_id);
CREATE INDEX graph_extraction_collection_id_726576b2 ON graph_extraction USING btree (collection_id);
CREATE INDEX graph_extraction_run_id_8a1b7865 ON graph_extraction USING btree (run_id);
CREATE INDEX groupcolumn_key_index ON tables_groupcolumn USING btree (collection_id, key);
CREATE INDEX idempotencyrecord_age_index ON accounts_idempotencyrecord USING btree (created_at);
CREATE INDEX judgement_workspace_index ON search_judgement USING btree (workspace_id);
CREATE INDEX lexeme_similar_index ON documents_lexeme USING gin (lexeme gin_trgm_ops);
CREATE INDEX memory_fact_source_id_cae00356 ON memory_fact USING btree (source_id);
CREATE INDEX memory_fact_superseded_by_id_d0528491 ON memory_fact USING btree (superseded_by_id);
CREATE INDEX mention_link_index ON graph_mention USING btree (node_id, kind, chunk_id) WHERE (kind = ANY (ARRAY[0, 3]));
CREATE INDEX mention_node_chunk_index ON graph_mention USING btree (node_id, chunk_id);
CREATE INDEX message_documents_index ON rag_message USING gin (documents);
CREATE INDEX message_running_index ON rag_message USING btree (created_at) WHERE ((state)::text = 'running'::text);
CREATE INDEX model_servers_modelconnection_workspace_id_1b15ea88 ON model_servers_modelconnection USING btree (workspace_id);
CREATE INDEX model_servers_modelusage_workspace_id_2548faf8 ON model_servers_modelusage USING btree (workspace_id);
CREATE INDEX model_servers_workspacemodel_connection_id_fc8710b6 ON model_servers_workspacemodel USING btree (connection_id);
CREATE UNIQUE INDEX modelconnection_purpose_default_unique ON model_servers_modelconnection USING btree (purpose) WHERE is_default;
CREATE INDEX node_chunk_index ON graph_node USING btree (chunk_id) WHERE (chunk_id IS NOT NULL);
CREATE INDEX node_document_index ON graph_node USING btree (document_id) WHERE (document_id IS NOT NULL);
CREATE INDEX node_labels_index ON graph_node USING gin (labels);
CREATE INDEX node_name_index ON graph_node USING gin (name gin_trgm_ops);
CREATE INDEX pruning_user_index ON memory_pruning USING btree (workspace_id, user_id, created_at);
CREATE INDEX rag_conversation_user_id_170af81c ON rag_conversation USING btree (user_id);
CREATE INDEX rag_databaseconnection_collection_id_317caaaa ON rag_databaseconnection USING btree (collection_id);
CREATE INDEX rag_message_conversation_id_79249371 ON rag_message USING btree (conversation_id);
CREATE INDEX rag_message_trace_id_dfa60a08 ON rag_message USING btree (trace_id);
CREATE INDEX rag_message_workspace_id_d3b52f2f ON rag_message USING btree (workspace_id);
CREATE INDEX rag_pipeline_slug_3d46dd67 ON rag_pipeline USING btree (slug);
CREATE INDEX rag_pipeline_slug_3d46dd67_like ON rag_pipeline USING btree (slug varchar_pattern_ops);
CREATE INDEX rag_span_parent_id_ed6badbd ON rag_span USING btree (parent_id);
CREATE INDEX rag_span_workspace_id_0273a63f ON rag_span USING btree (workspace_id);
CREATE INDEX rag_summary_user_id_761b5000 ON rag_summary USING btree (user_id);
CREATE INDEX rag_trace_user_id_0feb2eef ON rag_trace USING btree (user_id);
CREATE UNIQUE INDEX reembedding_target_collection_unique ON documents_reembedding USING btree (target_id, collection_id) NULLS NOT DISTINCT WHERE (NOT ((state)::text = 'done'::text));
CREATE INDEX sample_at_index ON dashboard_sample USING btree (at);
CREATE INDEX scannedpage_source_index ON documents_scannedpage USING btree (source_sha256, page);
CREATE INDEX search_evaluation_user_id_b6781adc ON search_evaluation USING btree (user_id);
CREATE INDEX search_judgement_document_id_573ba0a6 ON search_judgement USING btree (document_id);
CREATE INDEX search_judgement_user_id_20538022 ON search_judgement USING btree (user_id);
CREATE INDEX search_savedsearch_user_id_78794d3d ON search_savedsearch USING btree (user_id);
CREATE INDEX search_searchlog_user_id_79cc0ad6 ON search_searchlog USING btree (user_id);
CREATE INDEX searchlog_created_at_index ON search_searchlog USING btree (created_at);
CREATE INDEX searchlog_documents_index ON search_searchlog USING gin (documents);
CREATE INDEX searchlog_found_nothing_index ON search_searchlog USING btree (workspace_id, created_at) WHERE ((total = 0) OR refused);
CREATE INDEX searchlog_workspace_index ON search_searchlog USING btree (workspace_id, created_at);
CREATE UNIQUE INDEX secondfactor_user_kind_unique ON accounts_secondfactor USING btree (user_id, kind) WHERE (NOT ((kind)::text = 'passkey'::text));
CREATE INDEX sources_datasource_collection_id_f3f3661e ON sources_datasource USING btree (collection_id);
CREATE INDEX sources_datasource_created_by_id_e9a6edc9 ON sources_datasource USING btree (created_by_id);
CREATE INDEX sources_datasourceitem_source_id_06bbeb0e ON sources_datasourceitem USING btree (source_id);
CREATE INDEX sources_datasourcenotice_source_id_61ae9f0b ON sources_datasourcenotice USING btree (source_id);
CREATE INDEX sources_datasourcenotice_user_id_35930871 ON sources_datasourcenotice USING btree (user_id);
CREATE INDEX sources_datasourcerun_source_id_cf6af5f9 ON sources_datasourcerun USING btree (source_id);
CREATE INDEX sources_datasourcerun_user_id_5ad56c5b ON sources_datasourcerun USING btree (user_id);
CREATE INDEX summary_documents_index ON rag_summary USING gin (documents);
CREATE INDEX summary_unfinished_index ON rag_summary USING btree (created_at) WHERE ((state)::text = ANY ((ARRAY['waiting'::character varying, 'running'::character varying])::text[]));
CREATE INDEX table_layout_index ON tables_table USING btree (collection_id, fingerprint);
CREATE INDEX tables_groupcolumn_group_id_1b3475af ON tables_groupcolumn USING btree (group_id);
CREATE INDEX tables_table_collection_id_3e1ac7df ON tables_table USING btree (collection_id);
CREATE INDEX tables_tablegroup_collection_id_b61621d5 ON tables_tablegroup USING btree (collection_id);
CREATE INDEX tables_tablelayout_group_id_308e6924 ON tables_tablelayout USING btree (group_id);
CREATE INDEX tables_tablelayout_suggested_group_id_e41df947 ON tables_tablelayout USING btree (suggested_group_id);
CREATE INDEX trace_age_index ON rag_trace USING btree (started_at);
CREATE INDEX trace_documents_index ON rag_trace USING gin (documents);
CREATE INDEX trace_pipeline_index ON rag_trace USING btree (workspace_id, pipeline, started_at DESC);
CREATE INDEX trace_recent_index ON rag_trace USING btree (workspace_id, user_id, started_at DESC);
CREATE TRIGGER chunk_index_changed BEFORE UPDATE OF text, context, language, is_current, collection_id, workspace_id ON documents_chunk FOR EACH ROW WHEN (((((((old.text IS DISTINCT FROM new.text) OR (old.context IS DISTINCT FROM new.context)) OR ((old.language)::oid IS DISTINCT FROM (new.language)::oid)) OR (old.is_current IS DISTINCT FROM new.is_current)) OR (old.collection_id IS DISTINCT FROM new.collection_id)) OR (old.workspace_id IS DISTINCT FROM new.workspace_id))) EXECUTE FUNCTION documents_index_changed_chunk();
CREATE TRIGGER chunk_index_changed_words AFTER UPDATE ON documents_chunk FOR EACH ROW WHEN ((old.index_id <> new.index_id)) EXECUTE FUNCTION documents_index_changed_words();
CREATE TRIGGER chunk_index_new AFTER INSERT ON documents_chunk REFERENCING NEW TABLE AS new_chunk FOR EACH STATEMENT WHEN ((current_setting('ragsite.index_at_once'::text, true) IS DISTINCT FROM 'on'::text)) EXECUTE FUNCTION documents_index_new_chunks();
CREATE TRIGGER chunk_index_removed AFTER DELETE ON documents_chunk REFERENCING OLD TABLE AS old_chunk FOR EACH STATEMENT EXECUTE FUNCTION documents_index_removed_chunks();
CREATE TRIGGER collection_drop_index AFTER DELETE ON documents_collection FOR EACH ROW EXECUTE FUNCTION documents_drop_index();
CREATE TRIGGER lexicalsegment_drop_postings AFTER DELETE ON documents_lexicalsegment REFERENCING OLD TABLE AS old_segment FOR EACH STATEMENT EXECUTE FUNCTION documents_drop_postings();
CREATE TRIGGER pendingchunk_drop_postings AFTER DELETE ON documents_pendingchunk REFERENCING OLD TABLE AS old_pending FOR EACH STATEMENT EXECUTE FUNCTION documents_drop_pending_postings();
CREATE TRIGGER rag_forget_changed_summaries AFTER UPDATE OF content_sha256, title ON documents_document FOR EACH ROW WHEN ((((old.content_sha256)::text <> ''::text) AND (((old.content_sha256)::text IS DISTINCT FROM (new.content_sha256)::text) OR ((old.title)::text IS DISTINCT FROM (new.title)::text)))) EXECUTE FUNCTION rag_forget_changed_summaries();
CREATE TRIGGER rag_forget_deleted_summaries AFTER DELETE ON documents_document REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION rag_forget_deleted_summaries();
CREATE TRIGGER rag_forget_documents AFTER DELETE ON documents_document REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION rag_forget_documents();
CREATE TRIGGER searchlog_forget_collections AFTER DELETE ON documents_collection REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION search_forget_collections();
CREATE TRIGGER searchlog_forget_documents AFTER DELETE ON documents_document REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION search_forget_documents();
CREATE CONSTRAINT TRIGGER table_forget_layout AFTER DELETE OR UPDATE OF fingerprint, collection_id ON tables_table DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION tables_forget_layout();
ALTER TABLE ONLY accounts_apikey
    ADD CONSTRAINT accounts_apikey_membership_id_7146a482_fk_accounts_ FOREIGN KEY (membership_id) REFERENCES accounts_membership(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY accounts_apikey
    ADD CONSTRAINT accounts_apikey_user_id_bd902026_fk_accounts_user_id FOREIGN KEY (user_id) REFERENCES accounts_user(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY accounts_apikey
    ADD CONSTRAINT accounts_apikey_workspace_id_29bdbd99_fk_accounts_workspace_id FOREIGN KEY (workspace_id) REFERENCES accounts_workspace(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY accounts_change
    ADD CONSTRAINT accounts_change_key_id_4508af91_fk_accounts_apikey_id FOREIGN KEY (key_id) REFERENCES accounts_apikey(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY accounts_change
    ADD CONSTRAINT accounts_change_user_id_e3d5ee31_fk_accounts_user_id FOREIGN KEY (user_id) REFERENCES accounts_user(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY accounts_change
    ADD CONSTRAINT accounts_change_workspace_id_e1114ad8_fk_accounts_workspace_id FOREIGN KEY (workspace_id) REFERENCES accounts_workspace(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY accounts_groupmember
    ADD CONSTRAINT accounts_groupmember_group_id_590adbea_fk_accounts_ FOREIGN KEY (group_id) REFERENCES accounts_workspacegroup(group_id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY accounts_groupmember
    ADD CONSTRAINT accounts_groupmember_membership_id_a74a398b_fk_accounts_ FOREIGN KEY (membership_id) REFERENCES accounts_membership(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY accounts_groupmember
    ADD CONSTRAINT accounts_groupmember_workspace_id_d3bfccde_fk_accounts_ FOREIGN KEY (workspace_id) REFERENCES accounts_workspace(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY accounts_idempotencyrecord
    ADD CONSTRAINT accounts_idempotency_workspace_id_08264cbd_fk_accounts_ FOREIGN KEY (workspace_id) REFERENCES accounts_workspace(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY accounts_idempotencyrecord
    ADD CONSTRAINT accounts_idempotencyrecord_user_id_00f7187b_fk_accounts_user_id FOREIGN KEY (user_id) REFERENCES accounts_user(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY accounts_identity
    ADD CONSTRAINT accounts_identity_user_id_f7ddf146_fk_accounts_user_id FOREIGN KEY (user_id) REFERENCES accounts_user(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY accounts_invitation
    ADD CONSTRAINT accounts_invitation_created_by_id_e6097355_fk_accounts_user_id FOREIGN KEY (created_by_id) REFERENCES accounts_user(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY accounts_invitation
    ADD CONSTRAINT accounts_invitation_workspace_id_7dc693ca_fk_accounts_ FOREIGN KEY (workspace_id) REFERENCES accounts_workspace(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY accounts_loginsession
    ADD CONSTRAINT accounts_loginsessio_session_id_d72f8e99_fk_django_se FOREIGN KEY (session_id) REFERENCES django_session(session_key) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY accounts_loginsession
    ADD CONSTRAINT accounts_loginsession_user_id_88028387_fk_accounts_user_id FOREIGN KEY (user_id) REFERENCES accounts_user(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY accounts_membership
    ADD CONSTRAINT accounts_membership_user_id_487fb39e_fk_accounts_user_id FOREIGN KEY (user_id) REFERENCES accounts_user(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY accounts_membership
    ADD CONSTRAINT accounts_membership_workspace_id_3a7fb173_fk_accounts_ FOREIGN KEY (workspace_id) REFERENCES accounts_workspace(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY accounts_secondfactor
    ADD CONSTRAINT accounts_secondfactor_user_id_1e182b70_fk_accounts_user_id FOREIGN KEY (user_id) REFERENCES accounts_user(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY accounts_user_groups
    ADD CONSTRAINT accounts_user_groups_group_id_bd11a704_fk_auth_group_id FOREIGN KEY (group_id) REFERENCES auth_group(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY accounts_user_groups
    ADD CONSTRAINT accounts_user_groups_user_id_52b62117_fk_accounts_user_id FOREIGN KEY (user_id) REFERENCES accounts_user(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY accounts_user_user_permissions
    ADD CONSTRAINT accounts_user_user_p_permission_id_113bb443_fk_auth_perm FOREIGN KEY (permission_id) REFERENCES auth_permission(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY accounts_user_user_permissions
    ADD CONSTRAINT accounts_user_user_p_user_id_e4f0a161_fk_accounts_ FOREIGN KEY (user_id) REFERENCES accounts_user(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY accounts_workspacegroup
    ADD CONSTRAINT accounts_workspacegr_workspace_id_480f1717_fk_accounts_ FOREIGN KEY (workspace_id) REFERENCES accounts_workspace(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY accounts_workspacegroup
    ADD CONSTRAINT accounts_workspacegroup_group_id_53107722_fk_auth_group_id FOREIGN KEY (group_id) REFERENCES auth_group(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY auth_group_permissions
    ADD CONSTRAINT auth_group_permissio_permission_id_84c5c92e_fk_auth_perm FOREIGN KEY (permission_id) REFERENCES auth_permission(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY auth_group_permissions
    ADD CONSTRAINT auth_group_permissions_group_id_b120cbf9_fk_auth_group_id FOREIGN KEY (group_id) REFERENCES auth_group(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY auth_permission
    ADD CONSTRAINT auth_permission_content_type_id_2f476e4b_fk_django_co FOREIGN KEY (content_type_id) REFERENCES django_content_type(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY dashboard_sample
    ADD CONSTRAINT dashboard_sample_workspace_id_f72e9739_fk_accounts_workspace_id FOREIGN KEY (workspace_id) REFERENCES accounts_workspace(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY django_admin_log
    ADD CONSTRAINT django_admin_log_content_type_id_c4bce8eb_fk_django_co FOREIGN KEY (content_type_id) REFERENCES django_content_type(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY django_admin_log
    ADD CONSTRAINT django_admin_log_user_id_c564eba6_fk_accounts_user_id FOREIGN KEY (user_id) REFERENCES accounts_user(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY documents_chunk
    ADD CONSTRAINT documents_chunk_collection_id_c5582089_fk_documents FOREIGN KEY (collection_id) REFERENCES documents_collection(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY documents_chunk
    ADD CONSTRAINT documents_chunk_document_id_3b191792_fk_documents_document_id FOREIGN KEY (document_id) REFERENCES documents_document(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY documents_chunk
    ADD CONSTRAINT documents_chunk_space_id_2cae189a_fk_documents FOREIGN KEY (space_id) REFERENCES documents_embeddingspace(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY documents_chunk
    ADD CONSTRAINT documents_chunk_workspace_id_07ab7cbe_fk_accounts_workspace_id FOREIGN KEY (workspace_id) REFERENCES accounts_workspace(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY documents_chunkedit
    ADD CONSTRAINT documents_chunkedit_document_id_212effbf_fk_documents FOREIGN KEY (document_id) REFERENCES documents_document(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY documents_chunkedit
    ADD CONSTRAINT documents_chunkedit_settled_by_id_40ab318d_fk_accounts_user_id FOREIGN KEY (settled_by_id) REFERENCES accounts_user(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY documents_chunkedit
    ADD CONSTRAINT documents_chunkedit_user_id_97492a02_fk_accounts_user_id FOREIGN KEY (user_id) REFERENCES accounts_user(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY documents_chunkedit
    ADD CONSTRAINT documents_chunkedit_workspace_id_926ad4a0_fk_accounts_ FOREIGN KEY (workspace_id) REFERENCES accounts_workspace(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY documents_chunktokens
    ADD CONSTRAINT documents_chunktokens_chunk_id_cascade FOREIGN KEY (chunk_id) REFERENCES documents_chunk(id) ON DELETE CASCADE;
ALTER TABLE ONLY documents_collection
    ADD CONSTRAINT documents_collection_space_id_4ee37fbe_fk_documents FOREIGN KEY (space_id) REFERENCES documents_embeddingspace(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY documents_collection
    ADD CONSTRAINT documents_collection_workspace_id_3b44b5f5_fk_accounts_ FOREIGN KEY (workspace_id) REFERENCES accounts_workspace(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY documents_document
    ADD CONSTRAINT documents_document_collection_id_041e3fe8_fk_documents FOREIGN KEY (collection_id) REFERENCES documents_collection(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY documents_document
    ADD CONSTRAINT documents_document_duplicate_of_id_f77ea283_fk_documents FOREIGN KEY (duplicate_of_id) REFERENCES documents_document(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY documents_document
    ADD CONSTRAINT documents_document_workspace_id_75c69096_fk_accounts_ FOREIGN KEY (workspace_id) REFERENCES accounts_workspace(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY documents_ingestionitem
    ADD CONSTRAINT documents_ingestioni_document_id_ef260970_fk_documents FOREIGN KEY (document_id) REFERENCES documents_document(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY documents_ingestionitem
    ADD CONSTRAINT documents_ingestioni_run_id_0bab2fcd_fk_documents FOREIGN KEY (run_id) REFERENCES documents_ingestionrun(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY documents_ingestionitem
    ADD CONSTRAINT documents_ingestioni_workspace_id_1acaff3b_fk_accounts_ FOREIGN KEY (workspace_id) REFERENCES accounts_workspace(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY documents_ingestionrun
    ADD CONSTRAINT documents_ingestionr_collection_id_7ac8c91f_fk_documents FOREIGN KEY (collection_id) REFERENCES documents_collection(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY documents_ingestionrun
    ADD CONSTRAINT documents_ingestionr_retry_of_id_e3a714f7_fk_documents FOREIGN KEY (retry_of_id) REFERENCES documents_ingestionrun(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY documents_ingestionrun
    ADD CONSTRAINT documents_ingestionr_workspace_id_88e695bb_fk_accounts_ FOREIGN KEY (workspace_id) REFERENCES accounts_workspace(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY documents_ingestionrun
    ADD CONSTRAINT documents_ingestionrun_user_id_a39fc60d_fk_accounts_user_id FOREIGN KEY (user_id) REFERENCES accounts_user(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY documents_lexicalsegment
    ADD CONSTRAINT documents_lexicalseg_collection_id_e21c80f7_fk_documents FOREIGN KEY (collection_id) REFERENCES documents_collection(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY documents_lexicalsegment
    ADD CONSTRAINT documents_lexicalseg_workspace_id_b196510c_fk_accounts_ FOREIGN KEY (workspace_id) REFERENCES accounts_workspace(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY documents_reembedding
    ADD CONSTRAINT documents_reembeddin_collection_id_3cd00e7b_fk_documents FOREIGN KEY (collection_id) REFERENCES documents_collection(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY documents_reembedding
    ADD CONSTRAINT documents_reembeddin_created_by_id_06d47f3f_fk_accounts_ FOREIGN KEY (created_by_id) REFERENCES accounts_user(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY documents_reembedding
    ADD CONSTRAINT documents_reembeddin_target_id_c9a74d0a_fk_documents FOREIGN KEY (target_id) REFERENCES documents_embeddingspace(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY documents_scannedpage
    ADD CONSTRAINT documents_scannedpag_document_id_8c20a29b_fk_documents FOREIGN KEY (document_id) REFERENCES documents_document(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY documents_scannedpage
    ADD CONSTRAINT documents_scannedpag_workspace_id_fe28adef_fk_accounts_ FOREIGN KEY (workspace_id) REFERENCES accounts_workspace(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY documents_stageddocument
    ADD CONSTRAINT documents_stageddocu_document_id_b2d243e1_fk_documents FOREIGN KEY (document_id) REFERENCES documents_document(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY documents_stageddocument
    ADD CONSTRAINT documents_stageddocu_workspace_id_57c087ca_fk_accounts_ FOREIGN KEY (workspace_id) REFERENCES accounts_workspace(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY documents_stagedvectors
    ADD CONSTRAINT documents_stagedvect_document_id_117c87ff_fk_documents FOREIGN KEY (document_id) REFERENCES documents_document(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY documents_stagedvectors
    ADD CONSTRAINT documents_stagedvect_space_id_c309ed19_fk_documents FOREIGN KEY (space_id) REFERENCES documents_embeddingspace(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY documents_stagedvectors
    ADD CONSTRAINT documents_stagedvect_workspace_id_090aeb53_fk_accounts_ FOREIGN KEY (workspace_id) REFERENCES accounts_workspace(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY graph_alias
    ADD CONSTRAINT graph_alias_node_id_cascade FOREIGN KEY (node_id) REFERENCES graph_node(id) ON DELETE CASCADE;
ALTER TABLE ONLY graph_alias
    ADD CONSTRAINT graph_alias_workspace_id_70df0c28_fk_accounts_workspace_id FOREIGN KEY (workspace_id) REFERENCES accounts_workspace(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY graph_edge
    ADD CONSTRAINT graph_edge_source_id_cascade FOREIGN KEY (source_id) REFERENCES graph_node(id) ON DELETE CASCADE;
ALTER TABLE ONLY graph_edge
    ADD CONSTRAINT graph_edge_target_id_cascade FOREIGN KEY (target_id) REFERENCES graph_node(id) ON DELETE CASCADE;
ALTER TABLE ONLY graph_evidence
    ADD CONSTRAINT graph_evidence_chunk_id_cascade FOREIGN KEY (chunk_id) REFERENCES documents_chunk(id) ON DELETE CASCADE;
ALTER TABLE ONLY graph_evidence
    ADD CONSTRAINT graph_evidence_edge_id_cascade FOREIGN KEY (edge_id) REFERENCES graph_edge(id) ON DELETE CASCADE;
ALTER TABLE ONLY graph_extraction
    ADD CONSTRAINT graph_extraction_collection_id_726576b2_fk_documents FOREIGN KEY (collection_id) REFERENCES documents_collection(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY graph_extraction
    ADD CONSTRAINT graph_extraction_document_id_f62389e0_fk_documents_document_id FOREIGN KEY (document_id) REFERENCES documents_document(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY graph_extraction
    ADD CONSTRAINT graph_extraction_run_id_8a1b7865_fk_documents_ingestionrun_id FOREIGN KEY (run_id) REFERENCES documents_ingestionrun(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY graph_extraction
    ADD CONSTRAINT graph_extraction_workspace_id_ca94f95d_fk_accounts_workspace_id FOREIGN KEY (workspace_id) REFERENCES accounts_workspace(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY graph_mention
    ADD CONSTRAINT graph_mention_chunk_id_cascade FOREIGN KEY (chunk_id) REFERENCES documents_chunk(id) ON DELETE CASCADE;
ALTER TABLE ONLY graph_mention
    ADD CONSTRAINT graph_mention_node_id_cascade FOREIGN KEY (node_id) REFERENCES graph_node(id) ON DELETE CASCADE;
ALTER TABLE ONLY graph_node
    ADD CONSTRAINT graph_node_chunk_id_cascade FOREIGN KEY (chunk_id) REFERENCES documents_chunk(id) ON DELETE CASCADE;
ALTER TABLE ONLY graph_node
    ADD CONSTRAINT graph_node_document_id_4c3046a6_fk_documents_document_id FOREIGN KEY (document_id) REFERENCES documents_document(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY graph_node
    ADD CONSTRAINT graph_node_workspace_id_7b90e649_fk_accounts_workspace_id FOREIGN KEY (workspace_id) REFERENCES accounts_workspace(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY memory_context
    ADD CONSTRAINT memory_context_space_id_389a337f_fk_documents_embeddingspace_id FOREIGN KEY (space_id) REFERENCES documents_embeddingspace(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY memory_context
    ADD CONSTRAINT memory_context_workspace_id_2d536efa_fk_accounts_workspace_id FOREIGN KEY (workspace_id) REFERENCES accounts_workspace(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY memory_extractionitem
    ADD CONSTRAINT memory_extractionite_workspace_id_94258a97_fk_accounts_ FOREIGN KEY (workspace_id) REFERENCES accounts_workspace(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY memory_fact
    ADD CONSTRAINT memory_fact_source_id_cae00356_fk_memory_context_id FOREIGN KEY (source_id) REFERENCES memory_context(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY memory_fact
    ADD CONSTRAINT memory_fact_space_id_1f7e1807_fk_documents_embeddingspace_id FOREIGN KEY (space_id) REFERENCES documents_embeddingspace(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY memory_fact
    ADD CONSTRAINT memory_fact_superseded_by_id_d0528491_fk_memory_fact_id FOREIGN KEY (superseded_by_id) REFERENCES memory_fact(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY memory_fact
    ADD CONSTRAINT memory_fact_workspace_id_6933276f_fk_accounts_workspace_id FOREIGN KEY (workspace_id) REFERENCES accounts_workspace(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY memory_pruning
    ADD CONSTRAINT memory_pruning_workspace_id_c33798a9_fk_accounts_workspace_id FOREIGN KEY (workspace_id) REFERENCES accounts_workspace(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY model_servers_modelconnection
    ADD CONSTRAINT model_servers_modelc_workspace_id_1b15ea88_fk_accounts_ FOREIGN KEY (workspace_id) REFERENCES accounts_workspace(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY model_servers_modelusage
    ADD CONSTRAINT model_servers_modelu_workspace_id_2548faf8_fk_accounts_ FOREIGN KEY (workspace_id) REFERENCES accounts_workspace(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY model_servers_workspacemodel
    ADD CONSTRAINT model_servers_worksp_connection_id_fc8710b6_fk_model_ser FOREIGN KEY (connection_id) REFERENCES model_servers_modelconnection(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY model_servers_workspacemodel
    ADD CONSTRAINT model_servers_worksp_workspace_id_18903c35_fk_accounts_ FOREIGN KEY (workspace_id) REFERENCES accounts_workspace(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY rag_conversation
    ADD CONSTRAINT rag_conversation_user_id_170af81c_fk_accounts_user_id FOREIGN KEY (user_id) REFERENCES accounts_user(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY rag_conversation
    ADD CONSTRAINT rag_conversation_workspace_id_d8548801_fk_accounts_workspace_id FOREIGN KEY (workspace_id) REFERENCES accounts_workspace(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY rag_databaseconnection
    ADD CONSTRAINT rag_databaseconnecti_collection_id_317caaaa_fk_documents FOREIGN KEY (collection_id) REFERENCES documents_collection(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY rag_databaseconnection
    ADD CONSTRAINT rag_databaseconnecti_workspace_id_75f087be_fk_accounts_ FOREIGN KEY (workspace_id) REFERENCES accounts_workspace(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY rag_message
    ADD CONSTRAINT rag_message_conversation_id_79249371_fk_rag_conversation_id FOREIGN KEY (conversation_id) REFERENCES rag_conversation(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY rag_message
    ADD CONSTRAINT rag_message_trace_id_dfa60a08_fk_rag_trace_id FOREIGN KEY (trace_id) REFERENCES rag_trace(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY rag_message
    ADD CONSTRAINT rag_message_workspace_id_d3b52f2f_fk_accounts_workspace_id FOREIGN KEY (workspace_id) REFERENCES accounts_workspace(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY rag_pipeline
    ADD CONSTRAINT rag_pipeline_changed_by_id_eb303260_fk_accounts_user_id FOREIGN KEY (changed_by_id) REFERENCES accounts_user(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY rag_pipeline
    ADD CONSTRAINT rag_pipeline_workspace_id_90ba9c60_fk_accounts_workspace_id FOREIGN KEY (workspace_id) REFERENCES accounts_workspace(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY rag_span
    ADD CONSTRAINT rag_span_parent_id_ed6badbd_fk_rag_span_id FOREIGN KEY (parent_id) REFERENCES rag_span(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY rag_span
    ADD CONSTRAINT rag_span_trace_id_af82fd08_fk_rag_trace_id FOREIGN KEY (trace_id) REFERENCES rag_trace(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY rag_span
    ADD CONSTRAINT rag_span_workspace_id_0273a63f_fk_accounts_workspace_id FOREIGN KEY (workspace_id) REFERENCES accounts_workspace(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY rag_summary
    ADD CONSTRAINT rag_summary_user_id_761b5000_fk_accounts_user_id FOREIGN KEY (user_id) REFERENCES accounts_user(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY rag_summary
    ADD CONSTRAINT rag_summary_workspace_id_9f250306_fk_accounts_workspace_id FOREIGN KEY (workspace_id) REFERENCES accounts_workspace(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY rag_trace
    ADD CONSTRAINT rag_trace_user_id_0feb2eef_fk_accounts_user_id FOREIGN KEY (user_id) REFERENCES accounts_user(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY rag_trace
    ADD CONSTRAINT rag_trace_workspace_id_5a1097bc_fk_accounts_workspace_id FOREIGN KEY (workspace_id) REFERENCES accounts_workspace(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY search_evaluatedquestion
    ADD CONSTRAINT search_evaluatedques_evaluation_id_8b6f1d4b_fk_search_ev FOREIGN KEY (evaluation_id) REFERENCES search_evaluation(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY search_evaluatedquestion
    ADD CONSTRAINT search_evaluatedques_workspace_id_cc4f338f_fk_accounts_ FOREIGN KEY (workspace_id) REFERENCES accounts_workspace(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY search_evaluation
    ADD CONSTRAINT search_evaluation_collection_id_9f0f1777_fk_documents FOREIGN KEY (collection_id) REFERENCES documents_collection(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY search_evaluation
    ADD CONSTRAINT search_evaluation_user_id_b6781adc_fk_accounts_user_id FOREIGN KEY (user_id) REFERENCES accounts_user(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY search_evaluation
    ADD CONSTRAINT search_evaluation_workspace_id_e6354d9f_fk_accounts_ FOREIGN KEY (workspace_id) REFERENCES accounts_workspace(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY search_judgement
    ADD CONSTRAINT search_judgement_collection_id_d3d06026_fk_documents FOREIGN KEY (collection_id) REFERENCES documents_collection(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY search_judgement
    ADD CONSTRAINT search_judgement_document_id_573ba0a6_fk_documents_document_id FOREIGN KEY (document_id) REFERENCES documents_document(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY search_judgement
    ADD CONSTRAINT search_judgement_user_id_20538022_fk_accounts_user_id FOREIGN KEY (user_id) REFERENCES accounts_user(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY search_judgement
    ADD CONSTRAINT search_judgement_workspace_id_e47b5568_fk_accounts_workspace_id FOREIGN KEY (workspace_id) REFERENCES accounts_workspace(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY search_savedsearch
    ADD CONSTRAINT search_savedsearch_user_id_78794d3d_fk_accounts_user_id FOREIGN KEY (user_id) REFERENCES accounts_user(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY search_savedsearch
    ADD CONSTRAINT search_savedsearch_workspace_id_7a0b4000_fk_accounts_ FOREIGN KEY (workspace_id) REFERENCES accounts_workspace(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY search_searchlog
    ADD CONSTRAINT search_searchlog_user_id_79cc0ad6_fk_accounts_user_id FOREIGN KEY (user_id) REFERENCES accounts_user(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY search_searchlog
    ADD CONSTRAINT search_searchlog_workspace_id_38b4a436_fk_accounts_workspace_id FOREIGN KEY (workspace_id) REFERENCES accounts_workspace(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY sources_datasource
    ADD CONSTRAINT sources_datasource_collection_id_f3f3661e_fk_documents FOREIGN KEY (collection_id) REFERENCES documents_collection(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY sources_datasource
    ADD CONSTRAINT sources_datasource_created_by_id_e9a6edc9_fk_accounts_user_id FOREIGN KEY (created_by_id) REFERENCES accounts_user(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY sources_datasource
    ADD CONSTRAINT sources_datasource_workspace_id_46ce9b3b_fk_accounts_ FOREIGN KEY (workspace_id) REFERENCES accounts_workspace(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY sources_datasourceitem
    ADD CONSTRAINT sources_datasourceit_source_id_06bbeb0e_fk_sources_d FOREIGN KEY (source_id) REFERENCES sources_datasource(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY sources_datasourceitem
    ADD CONSTRAINT sources_datasourceit_workspace_id_f0b6109b_fk_accounts_ FOREIGN KEY (workspace_id) REFERENCES accounts_workspace(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY sources_datasourcenotice
    ADD CONSTRAINT sources_datasourceno_source_id_61ae9f0b_fk_sources_d FOREIGN KEY (source_id) REFERENCES sources_datasource(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY sources_datasourcenotice
    ADD CONSTRAINT sources_datasourceno_workspace_id_508130a0_fk_accounts_ FOREIGN KEY (workspace_id) REFERENCES accounts_workspace(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY sources_datasourcenotice
    ADD CONSTRAINT sources_datasourcenotice_user_id_35930871_fk_accounts_user_id FOREIGN KEY (user_id) REFERENCES accounts_user(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY sources_datasourcerun
    ADD CONSTRAINT sources_datasourceru_source_id_cf6af5f9_fk_sources_d FOREIGN KEY (source_id) REFERENCES sources_datasource(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY sources_datasourcerun
    ADD CONSTRAINT sources_datasourceru_workspace_id_7be0cd48_fk_accounts_ FOREIGN KEY (workspace_id) REFERENCES accounts_workspace(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY sources_datasourcerun
    ADD CONSTRAINT sources_datasourcerun_user_id_5ad56c5b_fk_accounts_user_id FOREIGN KEY (user_id) REFERENCES accounts_user(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY tables_columnblock
    ADD CONSTRAINT tables_columnblock_table_id_cascade FOREIGN KEY (table_id) REFERENCES tables_table(id) ON DELETE CASCADE;
ALTER TABLE ONLY tables_groupcolumn
    ADD CONSTRAINT tables_groupcolumn_collection_id_56c15755_fk_documents FOREIGN KEY (collection_id) REFERENCES documents_collection(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY tables_groupcolumn
    ADD CONSTRAINT tables_groupcolumn_group_id_1b3475af_fk_tables_tablegroup_id FOREIGN KEY (group_id) REFERENCES tables_tablegroup(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY tables_groupcolumn
    ADD CONSTRAINT tables_groupcolumn_workspace_id_d968d3be_fk_accounts_ FOREIGN KEY (workspace_id) REFERENCES accounts_workspace(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY tables_table
    ADD CONSTRAINT tables_table_collection_id_3e1ac7df_fk_documents_collection_id FOREIGN KEY (collection_id) REFERENCES documents_collection(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY tables_table
    ADD CONSTRAINT tables_table_document_id_a353ca41_fk_documents_document_id FOREIGN KEY (document_id) REFERENCES documents_document(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY tables_table
    ADD CONSTRAINT tables_table_workspace_id_026bbc51_fk_accounts_workspace_id FOREIGN KEY (workspace_id) REFERENCES accounts_workspace(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY tables_tablegroup
    ADD CONSTRAINT tables_tablegroup_collection_id_b61621d5_fk_documents FOREIGN KEY (collection_id) REFERENCES documents_collection(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY tables_tablegroup
    ADD CONSTRAINT tables_tablegroup_workspace_id_dad9fcfe_fk_accounts_ FOREIGN KEY (workspace_id) REFERENCES accounts_workspace(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY tables_tablelayout
    ADD CONSTRAINT tables_tablelayout_collection_id_c93baf63_fk_documents FOREIGN KEY (collection_id) REFERENCES documents_collection(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY tables_tablelayout
    ADD CONSTRAINT tables_tablelayout_group_id_308e6924_fk_tables_tablegroup_id FOREIGN KEY (group_id) REFERENCES tables_tablegroup(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY tables_tablelayout
    ADD CONSTRAINT tables_tablelayout_suggested_group_id_e41df947_fk_tables_ta FOREIGN KEY (suggested_group_id) REFERENCES tables_tablegroup(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY tables_tablelayout
    ADD CONSTRAINT tables_tablelayout_workspace_id_dff4a2c9_fk_accounts_ FOREIGN KEY (workspace_id) REFERENCES accounts_workspace(id) DEFERRABLE INITIALLY DEFERRED;
