"""Typed settings and where their values come from. Nothing else reads files or the environment for them."""
