"""The MCP server: tools for agents, over stdio or HTTP; see `server.py`."""
