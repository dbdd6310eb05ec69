"""Cuts text into search terms, in the same way for documents and queries."""
