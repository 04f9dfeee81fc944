"""What people order of a group, and the log of who did what."""

from comesh.core.orders.part import Orders

__all__ = ["Orders"]
