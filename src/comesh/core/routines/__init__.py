"""What a serving group does for its routines: it notices their triggers and takes their runs to an end."""

from comesh.core.routines.part import Routines

__all__ = ["Routines"]
