"""The command line, HTTP and MCP interfaces. All of them call the KnowledgeBase facade."""
