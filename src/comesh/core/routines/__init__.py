"""The part of a serving group that looks after its routines: it notices triggers and completes runs."""

from comesh.core.routines.part import Routines

__all__ = ["Routines"]
