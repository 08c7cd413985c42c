"""The site for clients of the Model Context Protocol: its tools, and its documents as resources,
over HTTP (`views`) and over standard input and output (`stdio`). An API key needs the scope `read`
for either."""
