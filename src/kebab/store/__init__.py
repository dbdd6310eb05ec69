"""The stores of a knowledge base, which implement the ports of `core`: `sqlite`, `qdrant`, and `fts5`, which both use."""
