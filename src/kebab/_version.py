"""The version, read by the build and by `kb --version`; nothing else lives here, so that reading it costs nothing."""

__version__ = "0.1.0"
