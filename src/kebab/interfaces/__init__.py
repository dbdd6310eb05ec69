"""The surfaces. Each talks to the KnowledgeBase facade and to nothing below it."""
