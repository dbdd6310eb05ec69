"""Sources of files: folders, git repositories, archives and the web."""
