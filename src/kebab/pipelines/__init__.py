"""The use cases, step by step; the engines are passed in."""
