"""Parsers turn the bytes of one file into a ParsedDocument. They never use the store, and raise only ParseError."""
