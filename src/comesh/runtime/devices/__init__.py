"""The devices of a deployment, as one node reaches them.

    devices = Devices(own, deployment, send=..., give=..., now_ms=...)
    await devices.open()
    devices.perform(effect)               # answered later through give(DeviceAnswered | DeviceReported)
    devices.on_frame(sender, frame)       # what other nodes' devices said, or wanted of ours
    devices.adopt(deployment)             # a new version of the document
    await devices.close()

- `homes`: on which node a device's driver runs
- `local`: devices that this node reaches by a driver of its own
- `relay`, `hosting`, `frames`: the way to devices that are part of another node, and the other end of it

Two words go to the core as it knows them: TOO_LATE, a command that was not sent because the lease was over,
and NO_ANSWER, one that may have been done or still be. Any other error of a command says that it was not
done.
"""

from comesh.runtime.devices.devices import DeviceEvent, Devices

__all__ = ["DeviceEvent", "Devices"]
