"""The roles of a host: what `fleet up` does on it, in order, and `fleet down` undoes from the end.

All that a role makes lies in `/opt/feedstock-tools`, `/etc/feedstock-tools`, `/var/lib/feedstock-tools-fleet`, the
folder of the worker and a unit of systemd. Packages of the distribution are noted before they are installed, so that
only those are removed that were not there before.
"""

from __future__ import annotations

from feedstock_tools.builds.fleet.provision.snippets import (
    ENGINE_IS_THERE,
    ENVIRONMENT,
    LEFT_BY_ENGINE,
    PACKAGES,
    REFUSE,
    SUBORDINATE_IDS,
    SUPERVISED,
    TOOLCHAIN_ENVIRONMENT,
    UNPACKED_DEBS,
    UNSUPERVISED,
    WITHOUT_LEFT_BY_ENGINE,
    WITHOUT_PACKAGES,
)
from feedstock_tools.builds.fleet.provision.steps import Account, Folder, Role, Sent, Service, Shell, Step, Text

#: Where a host keeps the programs, the settings and certificates, and the notes about what was there before.
INSTALLED, CONFIGURED, NOTES = "/opt/feedstock-tools", "/etc/feedstock-tools", "/var/lib/feedstock-tools-fleet"
#: Through which Ansible sends files, as in templates/fleet-ansible.cfg.
SENT_THROUGH = "/tmp/.feedstock-tools-ansible"  # noqa: S108
#: What a host and a hub get of the fleet's private folder: nothing else that is secret leaves the client.
HOST_FILES = ("authority.crt", "own.crt", "own.key", "orders.pub", "host.json")
HUB_FILES = ("authority.crt", "own.crt", "own.key")
#: The services, by role.
SERVICES = {"worker": "feedstock-tools-worker", "hub": "feedstock-tools-hub"}


def _given(role: str, files: tuple[str, ...]) -> tuple[Step, ...]:
    """The files of the fleet's private folder that a role gets, for its user alone."""
    folder = f"{CONFIGURED}/{role}"
    return (
        Folder(f"Make the folder of the {role}'s certificate", folder, "0700", "{{ fleet_user }}"),
        *(
            Sent(
                f"Send {file} of the {role}",
                f"{folder}/{file}",
                f"{{{{ fleet_given_{role} }}}}/{file}",
                "0600",
                "{{ fleet_user }}",
            )
            for file in files
        ),
    )


def _served(role: str) -> tuple[Step, ...]:
    """The service of a role under systemd, or under a shell where there is none."""
    service = SERVICES[role]
    unit, loop = f"/etc/systemd/system/{service}.service", f"{INSTALLED}/{service}"
    return (
        Text(
            f"Write the unit of the {role}",
            unit,
            f"{{{{ fleet_unit_{role} }}}}",
            restarts=service,
            when="fleet_systemd",
        ),
        Service(f"Run the service of the {role}", service, when="fleet_systemd"),
        Text(
            f"Write the loop of the {role}",
            loop,
            f"{{{{ fleet_loop_{role} }}}}",
            "0755",
            when="fleet_shell",
        ),
        Shell(
            f"Run the loop of the {role}",
            SUPERVISED.replace("SERVICE", service),
            UNSUPERVISED.replace("SERVICE", service),
            when="fleet_shell",
        ),
    )


ROLES: tuple[Role, ...] = (
    Role(
        "base",
        "the account, the folders, and this program in an environment of its own",
        (
            Shell("Check that the machine suits and is free", REFUSE),
            Folder("Make the folder of notes", NOTES),
            Text("Note which fleet the host belongs to", f"{NOTES}/fleet", "{{ fleet_name }}\n"),
            Folder("Make the folder of programs", INSTALLED),
            Folder("Make the folder of settings", CONFIGURED),
            Account("Make the account of builds", "{{ fleet_user }}", "{{ fleet_root }}"),
            Folder("Make the folder of builds", "{{ fleet_root }}", "0755", "{{ fleet_user }}"),
            Sent("Send the wheels", f"{INSTALLED}/wheelhouse.tar", "{{ fleet_wheelhouse }}"),
            Shell("Install feedstock-tools from the wheels", ENVIRONMENT),
            Sent(
                "Send packages of the distribution",
                f"{INSTALLED}/debs.tar",
                "{{ fleet_debs_archive }}",
                when="fleet_debs_sent",
            ),
            Shell("Index the packages of the distribution", UNPACKED_DEBS, when="fleet_debs_sent"),
        ),
    ),
    Role(
        "container",
        "an engine that runs containers",
        (
            Shell("Note what the container engine will leave", LEFT_BY_ENGINE, WITHOUT_LEFT_BY_ENGINE),
            Shell(
                "Install the container engine",
                ENGINE_IS_THERE + PACKAGES.replace("NAMES", "{{ fleet_container_packages }}"),
                WITHOUT_PACKAGES,
            ),
            Shell("Let the account run containers", SUBORDINATE_IDS),
        ),
        when="fleet_container_on",
    ),
    Role(
        "toolchain",
        "compilers and libraries for builds without conda packages",
        (
            Shell(
                "Install compilers and libraries",
                PACKAGES.replace("NAMES", "{{ fleet_toolchain_packages }}"),
                WITHOUT_PACKAGES,
                when="fleet_toolchain_on",
            ),
            Folder("Make the folder of pinned programs", f"{INSTALLED}/bin", when="fleet_pinned_on"),
            Sent("Send Bazel", f"{INSTALLED}/bin/bazel", "{{ fleet_bazel_file }}", "0755", when="fleet_bazel_on"),
            Shell("Install NumPy from the wheels", TOOLCHAIN_ENVIRONMENT, when="fleet_numpy_on"),
            Text(
                "Write what a shell reads to build",
                f"{INSTALLED}/activate",
                "{{ fleet_activate }}",
                when="fleet_pinned_on",
            ),
        ),
    ),
    Role("hub", "the hub of the fleet", (*_given("hub", HUB_FILES), *_served("hub")), when="fleet_hub_on"),
    Role("worker", "what builds", (*_given("worker", HOST_FILES), *_served("worker"))),
)
