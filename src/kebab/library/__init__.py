"""Documentation of libraries: adding, versions, extraction, search, one-file export."""
