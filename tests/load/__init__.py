"""Mixed load on a whole site, and what its processes do meanwhile: `python -m bench.mixed`."""
