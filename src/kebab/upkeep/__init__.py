"""The commands `kb doctor`, `kb verify` and `kb migrate`."""
