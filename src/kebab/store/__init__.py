"""The stores of a knowledge base, which implement the ports of `core`: `sqlite`, `qdrant`, and the shared `fts5`."""
