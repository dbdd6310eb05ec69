"""Search: turns a request into cited hits."""
