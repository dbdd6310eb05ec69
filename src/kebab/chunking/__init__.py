"""Cuts a ParsedDocument into chunks small enough to show and to embed."""
