"""The part of a serving group that looks after its devices: sensing, events, locks, commands (protocol,
sections 5 to 7).

Each file has one concern; `part.py` routes what happens to them. Whatever must outlive the leader is in the
`DeviceRecord`s; everything else is rebuilt by `begin`.
"""

from comesh.core.devices.part import Devices

__all__ = ["Devices"]
