"""The store that several machines can share: points in a Qdrant cluster."""
