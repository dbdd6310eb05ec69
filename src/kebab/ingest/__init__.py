"""Ingest: from files to indexed documents."""
