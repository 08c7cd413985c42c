-- people
CREATE TABLE person (id int PRIMARY KEY, name text DEFAULT 'it''s', note text);
CREATE OR REPLACE FUNCTION f() RETURNS int AS $body$ BEGIN RETURN 1; END $body$ LANGUAGE plpgsql;
INSERT INTO person VALUES (1, E'a\'b', $$c;d$$); /* end */
