"""Pages of the graph: what one looks at (`explorer`) and what editors change (`editor`)."""
