"""SQLite FTS5 without a stored database: cutting text into terms, building match expressions, checking passages."""
