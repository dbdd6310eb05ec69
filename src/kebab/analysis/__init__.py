"""Text to terms, the same way for what is indexed and for what is asked."""
