CREATE SCHEMA crm;
CREATE TABLE crm.customers (id bigint PRIMARY KEY, name text NOT NULL, city text);
CREATE TABLE crm.customer_revenue (
  customer_id bigint NOT NULL REFERENCES crm.customers (id),
  "revenueEur" decimal(12, 2)
);
CREATE TABLE crm.orders (
  id bigint PRIMARY KEY, customer_id bigint REFERENCES crm.customers (id), revenue_eur decimal(12, 2)
);
