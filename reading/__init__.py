"""Bytes in, text with places out: parsers, OCR, the sandbox around them, chunkers. Without Django."""
