"""The web page and the REST interface, on one port; see `server.py`."""
