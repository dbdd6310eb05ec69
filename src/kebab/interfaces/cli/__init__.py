"""The commands `kebab` and `kb`."""
