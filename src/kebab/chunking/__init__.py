"""ParsedDocument → passages small enough to show and to embed, cut where the text itself is cut."""
