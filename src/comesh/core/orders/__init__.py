"""Orders that people give to a group, and the audit log."""

from comesh.core.orders.part import Orders

__all__ = ["Orders"]
