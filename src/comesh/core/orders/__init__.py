"""Orders that people give to a group, and the audit log."""
