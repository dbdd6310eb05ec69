"""The embedded store: one SQLite file. The only place in Kebab that speaks SQL."""
