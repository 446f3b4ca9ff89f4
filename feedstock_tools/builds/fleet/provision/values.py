"""What the placeholders of steps stand for on a host."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from feedstock_tools.builds.fleet.provision.roles import CONFIGURED, INSTALLED
from feedstock_tools.builds.fleet.provision.settings import LIBRARIES, Plan
from feedstock_tools.builds.fleet.provision.steps import Values
from feedstock_tools.data import text_templates

#: What ProtectHome of systemd hides.
_HOMES = ("/home/", "/root/", "/run/user/")
#: The only variables of a service.
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#: What the words of `fleet_toolchain` and `fleet_container` are among Debian's and Ubuntu's packages.
_PACKAGES = {
    "compilers": "gcc g++ gfortran make",
    "openblas": "libopenblas-dev",
    "fftw": "libfftw3-dev",
    "hdf5": "libhdf5-dev",
    "podman": "podman uidmap slirp4netns",
    "docker": "docker.io",
    "none": "",
}
#: A shell that is no login shell has no `module` yet.
_MODULES = """\
if ! command -v module >/dev/null; then
  for start in /etc/profile.d/*lmod*.sh /etc/profile.d/*modules*.sh /usr/share/lmod/lmod/init/profile; do
    if [ -r "$start" ]; then . "$start"; fi
    if command -v module >/dev/null; then break; fi
  done
fi"""


@dataclass(frozen=True, slots=True)
class Payload:
    """What is sent to a host: archives by their paths, and their digests; those of packages may be empty."""

    wheelhouse: str
    wheels_digest: str
    debs: str = ""
    debs_digest: str = ""


def values_of(
    plan: Plan, fleet: str, payload: Payload, role_folders: dict[str, str], folders_digest: str, version: str
) -> Values:
    """The values of a host.

    Args:
        role_folders: role → the folder with what the fleet's private folder holds for it.
        folders_digest: of these files: when they change, the services start again.
    """
    words = {word: word in plan.toolchain for word in LIBRARIES}
    made_from = f"{version} {payload.wheels_digest} {folders_digest}"
    values: dict[str, str | bool] = {
        "fleet_host": plan.name,
        "fleet_name": fleet,
        "fleet_root": plan.root,
        "fleet_user": plan.user,
        "fleet_supervisor": plan.supervisor,
        "fleet_python": plan.python,
        "fleet_machine": plan.machine,
        "fleet_wheelhouse": payload.wheelhouse,
        "fleet_wheels_digest": payload.wheels_digest,
        "fleet_debs_archive": payload.debs,
        "fleet_debs_digest": payload.debs_digest,
        "fleet_debs_sent": bool(payload.debs),
        "fleet_systemd": plan.supervisor == "systemd",
        "fleet_shell": plan.supervisor == "shell",
        "fleet_container": plan.container,
        "fleet_container_on": plan.container != "none",
        "fleet_container_packages": _PACKAGES[plan.container],
        "fleet_toolchain_on": bool(plan.toolchain),
        "fleet_toolchain_packages": " ".join(_PACKAGES[word] for word in LIBRARIES if word in plan.toolchain),
        **{f"fleet_{word}_on": on for word, on in words.items()},
        "fleet_pinned_on": bool(plan.bazel or plan.numpy or plan.modules),
        "fleet_modules": " ".join(plan.modules),
        "fleet_modules_on": bool(plan.modules),
        "fleet_bazel": plan.bazel,
        "fleet_bazel_on": bool(plan.bazel),
        "fleet_bazel_file": plan.bazel_file,
        "fleet_numpy_on": bool(plan.numpy),
        "fleet_activate": _activate(plan),
        "fleet_gpus": str(plan.gpus),
        "fleet_gpu_on": plan.gpus > 0,
        "fleet_hub_on": plan.is_hub,
    }
    for role, line in (("worker", worker_line(plan)), ("hub", _hub_line(plan))):
        values[f"fleet_given_{role}"] = role_folders[role]
        values[f"fleet_unit_{role}"] = _unit(plan, fleet, role, line, made_from)
        values[f"fleet_loop_{role}"] = _loop(line, made_from)
    return values


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
        "lease": plan.lease,
        "after_build": plan.after_build,
    }


def worker_line(plan: Plan) -> str:
    """The command of the worker, with the only variables that it sees."""
    return _line(plan, "worker", f"{CONFIGURED}/worker")


def _hub_line(plan: Plan) -> str:
    port = plan.hub.rpartition(":")[2]
    return _line(plan, "hub", f"{CONFIGURED}/hub", f"0.0.0.0:{port}")


def _line(plan: Plan, program: str, *arguments: str) -> str:
    variables = (f"PATH={_PATH}", f"HOME={plan.root}", "LANG=C.UTF-8")
    module = f"feedstock_tools.builds.fleet.{program}"
    python = (f"{INSTALLED}/env/bin/python", "-P", "-m", module)
    return shlex.join(["/usr/bin/env", "-i", *variables, *python, *arguments])


def _unit(plan: Plan, fleet: str, role: str, line: str, made_from: str) -> str:
    builds = role == "worker"
    return (
        text_templates()
        .get_template("fleet-service.unit")
        .render(
            what=role,
            fleet=fleet,
            made_from=f"Made from {made_from}",
            user=plan.user,
            root=plan.root,
            command=line,
            cores=plan.cores if builds else None,
            memory=plan.memory if builds else None,
            gpus=builds and plan.gpus,
            podman=plan.container == "podman",  # without root it needs newuidmap, which gains privileges
            at_home=plan.root.startswith(_HOMES),
        )
    )


def _loop(line: str, made_from: str) -> str:
    return f"#!/bin/sh\n# Made from {made_from}\ncd /\nwhile :; do\n  {line}\n  sleep 2\ndone\n"


def _activate(plan: Plan) -> str:
    lines = ["# `. /opt/feedstock-tools/activate` prepares a shell to build with the toolchain of this host."]
    if plan.modules:
        lines += [_MODULES, f"module load {' '.join(plan.modules)}"]
    if plan.numpy:
        lines.append(f". {INSTALLED}/toolchain/bin/activate")
    lines.append(f'export PATH="{INSTALLED}/bin:$PATH"')
    return "\n".join(lines) + "\n"
