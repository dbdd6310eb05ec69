"""Typed settings. Only this package reads their values from files and the environment."""
