"""What SQLite's text index knows how to do without a database: cut text, read expressions, check a few passages. For
every store.
"""
