"""The store for more than one machine: points in a Qdrant cluster."""
