COMMENT ON TABLE crm.customer_revenue IS 'What each customer paid';
COMMENT ON COLUMN crm.customer_revenue."revenueEur" IS 'Without tax';
