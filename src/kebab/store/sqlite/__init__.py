"""The embedded store: one SQLite file. Only this package runs SQL on it."""
