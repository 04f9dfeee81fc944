"""The deployment document: reading it, checking it, and planning from it."""
