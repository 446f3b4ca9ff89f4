"""The steps by which a machine becomes a host: one list, which Ansible and a bash script carry out.

A step calls a function of `templates/fleet-provision.sh`. Each can be done again, changes nothing then, and is undone
by removing what it made. All that steps make lies in `/opt/feedstock-tools`, `/etc/feedstock-tools`,
`/var/lib/feedstock-tools-fleet`, the folder of the worker and a unit of systemd. Packages of the distribution are noted
before they are installed, so that only those are removed that were not there before.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from feedstock_tools.builds.fleet.provision.settings import LIBRARIES, Plan
from feedstock_tools.builds.fleet.provision.setup import CONFIGURED, INSTALLED, NOTES, SERVICES, Setup

#: What a host and a hub get of the fleet's private folder: nothing else that is secret leaves the client.
FILES: Mapping[str, tuple[str, ...]] = {
    "hub": ("authority.crt", "own.crt", "own.key"),
    "worker": ("authority.crt", "own.crt", "own.key", "host.json"),
}
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


@dataclass(frozen=True, slots=True)
class Sent:
    """A file of the client: its name beside the script, its path on the host, its mode and owner."""

    source: str
    path: str
    mode: str = "0644"
    owner: str = "root"


@dataclass(frozen=True, slots=True)
class Step:
    """A step of `up`.

    Attributes:
        call: of a function in bash, which prints `changed` if it has changed something.
        undo: the call that undoes it, whether the step is on or not; empty where that of another step does.
        sent: the file that it sends; Ansible sends it in place of the call.
        on: whether this host needs it.
    """

    name: str
    call: str
    undo: str = ""
    sent: Sent | None = None
    on: bool = True


def _folder(name: str, path: str, mode: str = "0755", owner: str = "root", *, on: bool = True) -> Step:
    return Step(name, shlex.join(("folder", path, mode, owner)), shlex.join(("gone", path)), on=on)


def _text(name: str, path: str, content: str, mode: str = "0644", *, on: bool = True) -> Step:
    call = f"text {path} {mode} root <<'END_OF_TEXT'\n{content}END_OF_TEXT"
    return Step(name, call, f"gone {path}", on=on)


def _sent(name: str, source: str, path: str, mode: str = "0644", owner: str = "root", *, on: bool = True) -> Step:
    return Step(name, f"sent {source} {path} {mode} {owner}", f"gone {path}", Sent(source, path, mode, owner), on)


def steps_of(setup: Setup) -> Iterator[Step]:
    """The steps of a host, in the order of `up`; their names and order are the same for every host."""
    plan = setup.plan
    builds, packaged = plan.container != "none", bool(plan.toolchain)
    pinned = bool(plan.bazel or plan.numpy or plan.modules)
    toolchain = " ".join(_PACKAGES[word] for word in LIBRARIES if word in plan.toolchain)
    yield Step("Check that the machine suits", "suits")
    yield Step("Check that the machine is free", "is_free")
    yield _folder("Make the folder of notes", NOTES)
    # It goes with its folder, which is the last.
    yield Step("Note which fleet the host belongs to", f"text {NOTES}/fleet 0644 root <<<{shlex.quote(setup.fleet)}")
    yield _folder("Make the folder of programs", INSTALLED)
    yield _folder("Make the folder of settings", CONFIGURED)
    yield Step("Make the account of builds", "account", "account_gone")
    yield _folder("Make the folder of builds", plan.root, "0755", plan.user)
    yield _sent("Send the wheels", "wheelhouse.tar", f"{INSTALLED}/wheelhouse.tar")
    yield Step("Install feedstock-tools from the wheels", "environment env host.txt")
    yield _sent("Send packages of the distribution", "debs.tar", f"{INSTALLED}/debs.tar", on=bool(plan.debs))
    yield Step("Index the packages of the distribution", "unpacked_debs", on=bool(plan.debs))
    yield Step(
        "Note what the container engine will leave", "note_what_engines_leave", "without_what_engines_left", on=builds
    )
    yield Step("Install the container engine", f"engine {_PACKAGES[plan.container]}", "without_packages", on=builds)
    yield Step("Let the account run containers", "may_run_containers", on=builds)
    yield Step("Install compilers and libraries", f"packages {toolchain}", on=packaged)
    yield _folder("Make the folder of pinned programs", f"{INSTALLED}/bin", on=pinned)
    yield _sent("Send Bazel", "bazel", f"{INSTALLED}/bin/bazel", "0755", on=bool(plan.bazel))
    yield Step("Install NumPy from the wheels", "environment toolchain toolchain.txt", on=bool(plan.numpy))
    activate = "Write what a shell reads to build"
    yield _text(activate, f"{INSTALLED}/activate", setup.activate, on=pinned)
    for role, on in (("hub", plan.is_hub), ("worker", True)):
        yield from _served(role, setup, on=on)


def _served(role: str, setup: Setup, *, on: bool) -> Iterator[Step]:
    """What a role gets of the fleet's private folder, for its user alone, and its service, under systemd or not."""
    folder, service, user = f"{CONFIGURED}/{role}", SERVICES[role], setup.plan.user
    systemd = setup.plan.supervisor == "systemd"
    yield _folder(f"Make the folder for the certificate of the {role}", folder, "0700", user, on=on)
    for file in FILES[role]:
        yield _sent(f"Send {file} of the {role}", f"{role}/{file}", f"{folder}/{file}", "0600", user, on=on)
    unit = f"/etc/systemd/system/{service}.service"
    yield _text(f"Write the unit of the {role}", unit, setup.unit(role), on=on and systemd)
    yield Step(f"Run the service of the {role}", f"service {service}", f"service_gone {service}", on=on and systemd)
    yield _text(
        f"Write the loop of the {role}", f"{INSTALLED}/{service}", setup.loop(role), "0755", on=on and not systemd
    )
    yield Step(f"Run the loop of the {role}", f"loop {service}", f"loop_gone {service}", on=on and not systemd)


def checks_of(plan: Plan) -> Iterator[tuple[str, str]]:
    """What `fleet test` tries on a host: the names of checks, and their functions."""
    yield "machine", "suits"
    yield "disk", "has_room"
    yield "hello-world", "says_hello"
    yield "service", "is_served"
    for word, function in (("compilers", "compiles"), *((word, f"links_{word}") for word in LIBRARIES[1:])):
        if word in plan.toolchain:
            yield word, function
    switches = {"bazel": plan.bazel, "numpy": plan.numpy, "modules": plan.modules}
    yield from ((word, f"has_{word}") for word, on in switches.items() if on)
    if plan.container != "none":
        yield "container", "runs_containers"
    if plan.gpus:
        yield "gpu", "has_gpus"
