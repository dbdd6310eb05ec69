"""Answers from what was found: evidence, sentences, prose by a model, and the check of every claim."""
