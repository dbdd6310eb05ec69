"""Text → vectors: the models, and how each is run."""
