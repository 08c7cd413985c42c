"""Files made to do harm: a small real one of every format, mutations, and hostile ones by hand."""
