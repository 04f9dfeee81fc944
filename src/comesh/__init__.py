"""CoMesh: a control plane for edge meshes with no hub and no cloud."""

__version__ = "0.1.0"
