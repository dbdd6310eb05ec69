"""Ingest: reads files and indexes them as documents."""
