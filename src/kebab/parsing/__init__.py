"""Bytes of one file → ParsedDocument. Never touches the store; a bad file gives ParseError and nothing else."""
