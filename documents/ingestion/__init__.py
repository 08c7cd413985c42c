"""From a source to the chunk table: `sources` → `preparation` → `loader`, run by `pipeline`; `jobs`
has the claims and counts."""
