"""`comesh service`: prints a systemd unit that runs a node, hardened as far as a node allows.

MemoryDenyWriteExecute is not in it: OpenSSL calls what checks certificates through a piece of code that is
made at run time (cffi), which it forbids.
"""

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final

import typer

from comesh.cli.documents import DocumentFile, read_deployment
from comesh.cli.terminal import err, fail
from comesh.deployment.model import Deployment
from comesh.deployment.problems import did_you_mean

PRIVATE: Final = (Path("/tmp"), Path("/var/tmp"))
"""Directories of which a service with PrivateTmp has its own, emptied at a restart of the machine."""

UNIT = """\
# Made by `comesh service`. Put it at {unit}, then, on this machine:
#   sudo useradd --system --home-dir {data} --shell /usr/sbin/nologin {user}
#   sudo install -d -o {user} -m 700 {data} {keys}
#   sudo install -o {user} -m 600 authority.crt {name}.crt {name}.key {keys}
# Only at the very first start of the whole deployment, on every node (Ctrl-C once it says ready):
#   sudo -u {user} {command} --init
# And from then on:
#   sudo systemctl daemon-reload && sudo systemctl enable --now {service}
#   sudo -u {user} {python} -m comesh status --data {data}
# {user} must be able to read {file}.

[Unit]
Description=CoMesh node {name}
Wants=network-online.target
After=network-online.target
StartLimitIntervalSec=0

[Service]
Type=notify
User={user}
ExecStart={command}
Restart=always
RestartPreventExitStatus=1 3
RestartSec=2
# A node is ready once it takes part in the mesh: after an outage that waits for others.
TimeoutStartSec=infinity
TimeoutStopSec=20
MemoryMax=256M
TasksMax=64
LimitCORE=0

NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome=read-only
ReadWritePaths={data}
PrivateTmp=yes
PrivateDevices={private_devices}
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectProc=invisible
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
CapabilityBoundingSet=
UMask=0077

[Install]
WantedBy=multi-user.target
"""


def service(
    file: DocumentFile,
    *,
    name: Annotated[str, typer.Option(help="Name of this node in the document.")],
    data: Annotated[Path, typer.Option(help="Directory for the journal.")] = Path("/var/lib/comesh"),
    keys: Annotated[Path, typer.Option(help="Directory with the node's keys.")] = Path("/etc/comesh/keys"),
    user: Annotated[str, typer.Option(help="User that runs the service.")] = "comesh",
    devices: Annotated[
        bool,
        typer.Option("--hardware", help="Let the node reach devices by serial ports and pins, below /dev."),
    ] = False,
) -> None:
    """Print a systemd unit for a node.

    The unit begins with what to do before the first start.
    """
    deployment = read_deployment(file)
    if name not in deployment.nodes:
        hint = did_you_mean(name, deployment.nodes)
        fail(f"{file}: there is no node {name!r}" + (f"; {hint}" if hint else ""))
    for note in _notes(deployment, name, file.absolute(), data.absolute(), keys.absolute()):
        err.print(f"warning: {note}")
    unit = f"comesh-{name}.service"
    where = f"--data {shlex.quote(str(data.absolute()))} --keys {shlex.quote(str(keys.absolute()))}"
    document = shlex.quote(str(file.absolute()))
    text = UNIT.format(
        unit=f"/etc/systemd/system/{unit}",
        service=unit,
        name=name,
        file=file.absolute(),
        command=f"{sys.executable} -m comesh node {document} --name {name} {where}",
        data=data.absolute(),
        keys=keys.absolute(),
        user=user,
        python=sys.executable,
        private_devices="no" if devices else "yes",
    )
    typer.echo(text, nl=False)


def _notes(deployment: Deployment, name: str, *places: Path) -> Iterator[str]:
    """Yields what would keep the service from running."""
    for place in places:
        if any(place.is_relative_to(private) for private in PRIVATE):
            yield (
                f"{place} is below a directory for temporary files: the service has its own, empty one "
                "there, and a restart of the machine removes what is in it. Put it elsewhere, such as below "
                "/etc/comesh"
            )
    lacking = sorted(node for node, entry in deployment.nodes.items() if entry.address is None)
    if lacking:
        has = "has no address" if len(lacking) == 1 else "have no address"
        yield (
            f"{', '.join(lacking)} {has} in the document, so {name} will not start: add address: to each, or "
            "--addresses FILE to ExecStart"
        )
