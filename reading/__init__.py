"""Bytes in, text with places out: parsers, OCR, their sandbox, chunkers. Without Django."""
