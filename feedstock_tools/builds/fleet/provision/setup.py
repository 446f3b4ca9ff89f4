"""What is written for a host: the settings of its worker, the units and loops of its services, its shell."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from feedstock_tools import __version__
from feedstock_tools.builds.fleet.provision.settings import Plan
from feedstock_tools.data import text_templates

#: Where a host keeps the programs, the settings and certificates, and the notes about what was there before.
INSTALLED, CONFIGURED, NOTES = "/opt/feedstock-tools", "/etc/feedstock-tools", "/var/lib/feedstock-tools-fleet"
#: The services, by role.
SERVICES = {"worker": "feedstock-tools-worker", "hub": "feedstock-tools-hub"}
#: What ProtectHome of systemd hides.
_HOMES = ("/home/", "/root/", "/run/user/")
#: The only variables of a service.
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#: A shell that is no login shell has no `module` yet.
_MODULES = """\
if ! command -v module >/dev/null; then
  for start in /etc/profile.d/*lmod*.sh /etc/profile.d/*modules*.sh /usr/share/lmod/lmod/init/profile; do
    if [ -r "$start" ]; then . "$start"; fi
    if command -v module >/dev/null; then break; fi
  done
fi"""


@dataclass(frozen=True, slots=True)
class Setup:
    """A host of a fleet, and digests of what is sent to it: without them it can be tested and given back.

    Attributes:
        folders: of the files of its roles: when they change, its services start again.
    """

    plan: Plan
    fleet: str
    wheels: str = ""
    debs: str = ""
    folders: str = ""

    @property
    def _made_from(self) -> str:
        return f"Made from {__version__} {self.wheels} {self.folders}"

    def command(self, role: str) -> str:
        """The command of a role's service, with the only variables that it sees."""
        plan = self.plan
        address = (f"0.0.0.0:{plan.hub.rpartition(':')[2]}",) if role == "hub" else ()
        variables = (f"PATH={_PATH}", f"HOME={plan.root}", "LANG=C.UTF-8")
        python = (f"{INSTALLED}/env/bin/python", "-P", "-m", f"feedstock_tools.builds.fleet.{role}")
        return shlex.join(["/usr/bin/env", "-i", *variables, *python, f"{CONFIGURED}/{role}", *address])

    def unit(self, role: str) -> str:
        """The unit of a role's service."""
        plan, builds = self.plan, role == "worker"
        return (
            text_templates()
            .get_template("fleet-service.unit")
            .render(
                what=role,
                fleet=self.fleet,
                made_from=self._made_from,
                user=plan.user,
                root=plan.root,
                command=self.command(role),
                cores=plan.cores if builds else None,
                memory=plan.memory if builds else None,
                gpus=builds and plan.gpus,
                podman=plan.container == "podman",  # without root it needs newuidmap, which gains privileges
                at_home=plan.root.startswith(_HOMES),
            )
        )

    def loop(self, role: str) -> str:
        """The program that runs a role where there is no systemd."""
        return f"#!/bin/sh\n# {self._made_from}\ncd /\nwhile :; do\n  {self.command(role)}\n  sleep 2\ndone\n"

    @property
    def activate(self) -> str:
        """What a shell reads to build with the toolchain of the host."""
        lines = ["# `. /opt/feedstock-tools/activate` prepares a shell to build with the toolchain of this host."]
        if self.plan.modules:
            lines += [_MODULES, f"module load {' '.join(self.plan.modules)}"]
        if self.plan.numpy:
            lines.append(f". {INSTALLED}/toolchain/bin/activate")
        lines.append(f'export PATH="{INSTALLED}/bin:$PATH"')
        return "\n".join(lines) + "\n"


def host_settings(plan: Plan) -> dict[str, object]:
    """What `host.json` says of a host; see `host.settings.read_settings`."""
    return {
        "root": plan.root,
        "jobs": plan.jobs,
        "cores": plan.cores,
        "memory": plan.memory,
        "gpus": plan.gpus,
        "engines": ["rattler-build", *(["container"] if plan.container != "none" else [])],
        "images": "any" if plan.container != "none" else [],
        "labels": list(plan.labels),
        "price": plan.price,
        "preempted": plan.preempted,
        "after_build": plan.after_build,
    }
