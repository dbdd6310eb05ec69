"""Queries → ranked, cited hits. Each retriever answers one mode behind the same interface."""
