"""The vocabulary everyone shares. Standard library only; imports nothing from the rest of the package."""
