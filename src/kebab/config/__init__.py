"""Typed settings and where their values come from. Nothing else in the package reads files or the environment for them."""
