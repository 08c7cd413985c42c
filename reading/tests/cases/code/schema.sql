-- People; and what they buy
CREATE TABLE IF NOT EXISTS "shop"."customers" (id int, note text DEFAULT ';');  -- who; buys
COMMENT ON TABLE "shop"."customers" IS 'It''s; people';
CREATE INDEX by_id ON shop.customers (id);

CREATE TABLE [dbo].[Orders] (
  id int CHECK (id > 0)
)
GO
CREATE VIEW revenue AS SELECT 1;
CREATE FUNCTION total() RETURNS int AS $$ BEGIN; CREATE TABLE no (a int); END $$ LANGUAGE plpgsql;
CREATE PROCEDURE pay() BEGIN SELECT 1; SELECT 2; END;
ALTER TABLE shop.customers ADD CONSTRAINT pk PRIMARY KEY (id);
