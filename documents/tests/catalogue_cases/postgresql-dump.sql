
--
-- Name: orders; Type: TABLE; Schema: public; Owner: ada
--
CREATE TABLE public.orders (
    id bigint NOT NULL,
    "custId" integer, -- who bought it
    state public.order_state DEFAULT 'new;'::public.order_state NOT NULL,
    total numeric(10,2) DEFAULT 0.00 NOT NULL CHECK (total >= 0)
);
ALTER TABLE public.orders OWNER TO ada;
COMMENT ON TABLE public.orders IS 'What people bought; it''s revenue';
COMMENT ON COLUMN public.orders.total IS 'with tax';
COPY public.orders (id, "custId") FROM stdin;
1	it's; a trap
CREATE TABLE trap (a int);
\.
ALTER TABLE ONLY public.orders ADD CONSTRAINT orders_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.orders
    ADD CONSTRAINT fk FOREIGN KEY ("custId") REFERENCES crm.customers(id) ON DELETE CASCADE;
CREATE UNIQUE INDEX u ON public.orders USING btree (state, total);
CREATE UNIQUE INDEX of_an_expression ON public.orders (lower(state), total);
CREATE UNIQUE INDEX of_a_part ON public.orders (state) WHERE total > 0;
