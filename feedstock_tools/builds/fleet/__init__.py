"""Other machines: Dask's scheduler places rows on hosts, which Ansible, a cluster or hand has made; and its simulation.

This is its door: what the command line and the reports need of it. Its processes import modules behind the door, so
each name is loaded when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from feedstock_tools.builds.fleet.carrying.link import Away, Link
    from feedstock_tools.builds.fleet.cluster.hub_process import end_hub, ensure_hub
    from feedstock_tools.builds.fleet.cluster.kinds import JobKind, job_kinds, write_kinds
    from feedstock_tools.builds.fleet.cluster.settings import kind_of, read_cluster
    from feedstock_tools.builds.fleet.folder import (
        FleetFolder,
        add_host,
        find_fleet,
        fleet_name,
        fleet_names,
        fleets_root,
        invite,
        join_fleet,
        make_fleet,
        open_fleet,
        remove_maintainer,
    )
    from feedstock_tools.builds.fleet.host.settings import host_of
    from feedstock_tools.builds.fleet.hub import main as serve_hub
    from feedstock_tools.builds.fleet.local import free_port, local_fleet
    from feedstock_tools.builds.fleet.orders.order import Refused
    from feedstock_tools.builds.fleet.provision.hosts import check, chosen_hosts, down, up, why_unfit, write_scripts
    from feedstock_tools.builds.fleet.provision.inventory import Inventory, read_inventory
    from feedstock_tools.builds.fleet.provision.playing import Played
    from feedstock_tools.builds.fleet.provision.wheelhouse import Target, wheelhouse
    from feedstock_tools.builds.fleet.results.events import Damaged
    from feedstock_tools.builds.fleet.run import run_name, run_on_fleet
    from feedstock_tools.builds.fleet.simulation.hosts import SimulatedHosts, read_hosts
    from feedstock_tools.builds.fleet.simulation.simulate import HostUse, SimulatedBuild, Simulation, courses
    from feedstock_tools.builds.fleet.simulation.times import read_times, with_times
    from feedstock_tools.builds.fleet.worker import main as serve_host

#: Module → the names that it offers; `name=other` if the module calls it differently.
_WHERE = {
    # The folder of a fleet on its client, and a connection to it.
    "folder": "FleetFolder add_host find_fleet fleet_name fleet_names fleets_root make_fleet open_fleet"
    " invite join_fleet remove_maintainer",
    "carrying.link": "Away Link",
    "orders.order": "Refused",
    "results.events": "Damaged",
    # A run, and the hosts that it may use.
    "run": "run_name run_on_fleet",
    "host.settings": "host_of",
    # The processes of a fleet, and a fleet on this machine.
    "hub": "serve_hub=main",
    "worker": "serve_host=main",
    "local": "free_port local_fleet",
    # Machines that become hosts.
    "provision.inventory": "Inventory read_inventory",
    "provision.hosts": "check chosen_hosts down up why_unfit write_scripts",
    "provision.playing": "Played",
    "provision.wheelhouse": "Target wheelhouse",
    # Jobs of a cluster.
    "cluster.settings": "kind_of read_cluster",
    "cluster.kinds": "JobKind job_kinds write_kinds",
    "cluster.hub_process": "end_hub ensure_hub",
    # A simulated run.
    "simulation.hosts": "SimulatedHosts read_hosts",
    "simulation.times": "read_times with_times",
    "simulation.simulate": "HostUse SimulatedBuild Simulation courses",
}
_NAMES = {
    name: (f"{__name__}.{module}", other or name)
    for module, names in _WHERE.items()
    for name, _, other in (entry.partition("=") for entry in names.split())
}


if not TYPE_CHECKING:  # type checkers must report unknown names

    def __getattr__(name: str) -> Any:
        if name not in _NAMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module, attribute = _NAMES[name]
        value = globals()[name] = getattr(import_module(module), attribute)
        return value
