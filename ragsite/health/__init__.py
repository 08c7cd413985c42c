"""Health of the site: probes with a time limit and a short cache."""
