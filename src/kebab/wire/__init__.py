"""The JSON shapes of version 1, by family. CLI, HTTP and MCP return these very objects.

Frozen keyword-only dataclasses: schemas are derived from them, and nothing needs a validation library to make one.
Inside v1, fields are only ever added, and only optional ones.
"""
