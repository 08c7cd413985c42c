"""Answers from documents: retrieval-augmented chat, pipelines, tools, MCP and OpenAI-compatible
endpoints.

Read `services.answers` (one answer), `answering` (quotations, prompts, citations, refusal), then
`pipelines`, `tools`, `openai` and `mcp`, each by itself.
"""
