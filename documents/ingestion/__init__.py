"""From a source to the chunk table: `sources` → `registration` → `preparation` → `loader`, run by
`pipeline`, for items of programs by `items`; `jobs` has the claims and counts."""
