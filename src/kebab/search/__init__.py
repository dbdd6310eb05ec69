"""Search: from a request to cited hits."""
