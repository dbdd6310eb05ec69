"""Text to terms, the same for documents and queries."""
