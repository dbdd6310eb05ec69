"""Documentation of libraries: what is particular to it. Storing, searching, embedding and citing are those of
everything else.
"""
