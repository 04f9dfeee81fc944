"""The `comesh` command: one file per command, joined in main.py."""
