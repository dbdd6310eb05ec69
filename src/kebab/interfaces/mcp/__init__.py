"""Tools for agents, over stdio or HTTP; see `server.py`."""
