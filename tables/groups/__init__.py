"""Tables of one shape over many files, asked as one: which columns mean the same (`headers`,
`matching`), kept for each layout of a collection (`store`), and corrected by curators (`curation`).
"""
