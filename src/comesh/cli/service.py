"""`comesh service`: a systemd unit that runs a node, hardened as far as a node allows."""

import sys
from pathlib import Path
from typing import Annotated

import typer

UNIT = """\
# Made by `comesh service`. Put it at {unit}, then:
#   sudo useradd --system --home-dir {data} --shell /usr/sbin/nologin {user}
#   sudo install -d -o {user} -m 700 {data}
#   sudo systemctl daemon-reload && sudo systemctl enable --now {service}
# The keys of this node (authority.crt, {name}.crt, {name}.key) belong to {user} and are readable by it only.

[Unit]
Description=CoMesh node {name}
Documentation=man:systemd.exec(5)
Wants=network-online.target
After=network-online.target
StartLimitIntervalSec=0

[Service]
Type=notify
User={user}
ExecStart={python} -m comesh node {file} --name {name} --data {data} --keys {keys}
Restart=always
RestartSec=2
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
MemoryDenyWriteExecute=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
CapabilityBoundingSet=
UMask=0077

[Install]
WantedBy=multi-user.target
"""


def service(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The deployment document.", show_default=False)
    ],
    *,
    name: Annotated[str, typer.Option(help="Which node this machine is.")],
    data: Annotated[Path, typer.Option(help="Where it keeps its journal.")] = Path("/var/lib/comesh"),
    keys: Annotated[Path, typer.Option(help="Where its keys are.")] = Path("/etc/comesh/keys"),
    user: Annotated[str, typer.Option(help="Who runs it.")] = "comesh",
    devices: Annotated[
        bool, typer.Option("--hardware", help="It reaches devices by serial ports or pins: let it see /dev.")
    ] = False,
) -> None:
    """Print a systemd unit for a node. The first start of a deployment needs --init once, by hand."""
    unit = f"comesh-{name}.service"
    text = UNIT.format(
        unit=f"/etc/systemd/system/{unit}",
        service=unit,
        name=name,
        file=file.absolute(),
        data=data.absolute(),
        keys=keys.absolute(),
        user=user,
        python=sys.executable,
        private_devices="no" if devices else "yes",
    )
    typer.echo(text, nl=False)
