"""The Model Context Protocol: the site's tools, and its documents as resources, over HTTP (`views`)
and over stdio (`server.serve`). Both need an API key with the scope `read`.
"""
