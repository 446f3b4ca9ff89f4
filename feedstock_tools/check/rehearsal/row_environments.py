"""The environments of one row: build and host of each output in turn, then run and test environments.

(conda_build/render.py: add_upstream_pins, get_upstream_pins; rattler_build_core: resolved_dependencies.rs.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from feedstock_tools.channel.many_solves import Answer, ManySolves
from feedstock_tools.channel.metadata import RunExports
from feedstock_tools.channel.solving import Question, only_lacks, virtual_packages
from feedstock_tools.check.demands import Demands, Promised, Row, promise
from feedstock_tools.check.rehearsal.model import FOLLOWS, Environment, State
from feedstock_tools.errors import InputError
from feedstock_tools.platforms import Platform
from feedstock_tools.recipe.requirements import Pin, Requirement, spec_name

#: The glibc of conda-forge's images, by the part of their names that identifies the system.
_GLIBC = {"cos6": "2.12", "cos7": "2.17", "alma8": "2.28", "alma9": "2.34", "alma10": "2.39"}
_GLIBC_OF_OTHERS = "2.28"


class RowEnvironments:
    """The work on one row; `environments`, `promised` and `installable` fill up as it goes on.

    Args:
        outputs: in build order.
        own: the names of all outputs of the feedstock, also of other rows.
        partial: the channels are incomplete.
    """

    def __init__(
        self, row: Row, outputs: Sequence[Demands], solver: ManySolves, own: frozenset[str], *, partial: bool
    ) -> None:
        self.row = row
        self.outputs = outputs
        self.environments: list[Environment] = []
        self.promised: dict[str, Promised] = {}
        self.installable: list[Promised] = []
        self._solver = solver
        self._own = own
        self._partial = partial
        self._blocked: dict[str, State] = {}

    async def build_and_host(self) -> None:
        """Solve the build and host environments, which determine the requirements of packages."""
        for demands in self.outputs:
            await self._prepare(demands)

    async def run_and_test(self, everywhere: Sequence[Promised], same_job: Sequence[RowEnvironments]) -> None:
        """Solve the run and test environments.

        Args:
            everywhere: noarch outputs of other rows, which may be built elsewhere.
            same_job: the other rows of the configuration, whose outputs are built in the same job.
        """
        others = {package.record.file_name: package for package in everywhere}
        for row in same_job:
            others |= {package.record.file_name: package for package in row.promised.values()}
            missing = row._blocked.keys() - self.promised.keys()
            self._blocked |= {name: row._blocked[name] for name in missing}
        visible = [*self.promised.values()]
        visible += [package for package in others.values() if package.record.name not in self.promised]
        for demands in self.outputs:
            await self._use(demands, visible)

    async def _prepare(self, demands: Demands) -> None:
        before = list(self.promised.values())
        built = await self._solve(demands, "build", self._resolved(demands.build, {}), before, self.row.builder)
        from_build = await self._exports(demands, demands.build, built)
        joint = demands.host is None and self.row.builder == self.row.platform
        wanted = (*self._resolved(demands.host or (), {}), *from_build.strong)
        hosted = await self._solve(demands, "host", wanted, before, self.row.platform) if not joint else built
        from_host = await self._exports(demands, demands.build if joint else (demands.host or ()), hosted)
        packages = {
            name: (solved.version, solved.build) for name, solved in (hosted.packages if hosted else {}).items()
        }
        if built is None or hosted is None:
            failed = any(
                environment.output == demands.name and environment.state == "failed"
                for environment in self.environments
            )
            self._blocked[demands.name.lower()] = "waiting" if failed else "unknown"
        depends, constrains = _inherited(demands, from_build, from_host)
        depends = (*self._at_run_time(demands, packages), *depends)
        exports = RunExports.from_json(
            {kind: self._resolved(specs, packages, demands) for kind, specs in demands.run_exports.items()}
        )
        limits = (*self._resolved(demands.constrains, packages, demands), *constrains)
        self.promised[demands.name.lower()] = promise(demands, self.row.platform, depends, limits, exports)

    async def _use(self, demands: Demands, visible: Sequence[Promised]) -> None:
        own = self.promised[demands.name.lower()]
        kinds = {"run": ((),), "test": demands.tests or ()}
        for kind, tests in kinds.items():
            for test in dict.fromkeys(tests):
                specs = (own.spec, *self._resolved(test, {}))
                answer = await self._solve(demands, kind, specs, visible, self.row.platform)
                if kind == "run" and answer is not None:
                    self.installable.append(own)

    def _at_run_time(self, demands: Demands, packages: Mapping[str, tuple[str, str]]) -> Iterable[str]:
        """Its own requirements at run time; bare names in `pin_run_as_build` follow the host environment."""
        for spec in self._resolved(demands.run, packages, demands):
            bounds = demands.run_pins.get(spec)
            if bounds and spec in packages and not (demands.noarch and spec == "python"):
                pin = Pin(spec, compatible=True, lower=bounds.get("min_pin"), upper=bounds.get("max_pin"))
                yield pin.applied(*packages[spec])
            else:
                yield spec

    def _resolved(
        self,
        requirements: Iterable[Requirement],
        packages: Mapping[str, tuple[str, str]],
        itself: Demands | None = None,
    ) -> tuple[str, ...]:
        """Requirements with their pins applied; a pin on an unknown package becomes its bare name."""
        pinned = {name: (package.record.version, package.record.build) for name, package in self.promised.items()}
        pinned |= {
            output.name.lower(): (output.version, output.build_string)
            for output in self.outputs
            if output.name not in pinned
        }
        if itself is not None:
            pinned[itself.name.lower()] = (itself.version, itself.build_string)
        return tuple(
            requirement
            if isinstance(requirement, str)
            else _applied(requirement, packages if requirement.compatible else pinned)
            for requirement in requirements
        )

    async def _exports(
        self, demands: Demands, requirements: Iterable[Requirement], answer: Answer | None
    ) -> RunExports:
        """The run exports of an environment's requested packages, except those that the recipe ignores."""
        if answer is None:
            return RunExports()
        requested = {
            requirement.name if isinstance(requirement, Pin) else spec_name(requirement) for requirement in requirements
        }
        specs_of_kinds: dict[str, list[str]] = {}
        for name in sorted(requested & answer.packages.keys() - demands.ignored_from):
            own = self.promised.get(name)
            exports = own.run_exports if own else await self._solver.run_exports(answer.packages[name])
            for kind, specs in exports.to_json().items():
                specs_of_kinds.setdefault(kind, []).extend(
                    spec for spec in specs if spec_name(spec) not in demands.ignored
                )
        return RunExports.from_json(specs_of_kinds)

    async def _solve(
        self,
        demands: Demands,
        kind: str,
        specs: Sequence[str],
        visible: Sequence[Promised],
        platform: Platform,
    ) -> Answer | None:
        """Solve one environment and record the result; None if there is no solution."""
        if not specs:
            return Answer({})
        own, others = _reached(specs, visible)
        blocked = next((self._blocked[name] for name in sorted(own) if name in self._blocked), None)
        if blocked is not None and kind in ("run", "test"):
            self._note(demands, kind, platform, blocked, FOLLOWS)
            return None
        absent = sorted(others - await self._solver.names(platform))
        if absent:
            unknown = self._partial and not self._own.intersection(absent)
            self._note(demands, kind, platform, "unknown" if unknown else "failed", self._absence(absent))
            return None
        question = Question(tuple(sorted(set(specs))), platform, self._machine(platform))
        try:
            answer = await self._ask(question, visible, uses_own=bool(own))
        except InputError as error:
            answer = Answer({}, str(error))
        if answer.reason is not None:
            unknown = self._partial and only_lacks(answer.reason)
            self._note(demands, kind, platform, "unknown" if unknown else "failed", answer.reason)
            return None
        self._note(demands, kind, platform, "solved", answer=answer)
        return answer

    async def _ask(self, question: Question, visible: Sequence[Promised], *, uses_own: bool) -> Answer:
        """An environment without outputs of the feedstock is the same for all rows, and solved once."""
        records = [package.record for package in visible]
        if not uses_own:
            answer = await self._solver.solve(question)
            if answer.reason is None and not answer.packages.keys() & {record.name for record in records}:
                return answer
        return await self._solver.solve(question, records)

    def _machine(self, platform: Platform) -> tuple[str, ...]:
        """The virtual packages of the machine that builds and tests, whose driver has the row's CUDA version."""
        images = self.row.configuration.values.get("docker_image") or ("",)
        glibcs = (glibc for word, glibc in _GLIBC.items() if word in images[0])
        return virtual_packages(platform, cuda=self.row.cuda, glibc=next(glibcs, _GLIBC_OF_OTHERS))

    def _absence(self, absent: Sequence[str]) -> str:
        own = [name for name in absent if name in self._own]
        if own:
            return f"{', '.join(own)} is an output of this feedstock, but this configuration does not build it before"
        return f"no channel has {', '.join(absent)}"

    def _note(
        self,
        demands: Demands,
        kind: str,
        platform: Platform,
        state: State,
        reason: str | None = None,
        answer: Answer | None = None,
    ) -> None:
        name = self.row.configuration.name
        by_time = "\n".join(f"{first} or {other}" for first, other in answer.by_time) or None if answer else None
        count = len(answer.packages) if answer else 0
        self.environments.append(
            Environment(name, self.row.name, demands.name, kind, platform.subdir, state, count, reason, by_time)
        )


def _applied(pin: Pin, packages: Mapping[str, tuple[str, str]]) -> str:
    package = packages.get(pin.name)
    return pin.applied(*package) if package else pin.name


def _reached(specs: Iterable[str], visible: Sequence[Promised]) -> tuple[set[str], set[str]]:
    """The names of the feedstock's own packages that specs depend on, and of all other non-virtual packages."""
    promised = {package.record.name: package for package in visible}
    pending = {spec_name(spec) for spec in specs}
    seen: set[str] = set()
    while pending:
        name = pending.pop()
        seen.add(name)
        if name in promised:
            pending |= {spec_name(spec) for spec in promised[name].record.depends} - seen
    own = seen & promised.keys()
    return own, {name for name in seen - own if not name.startswith("__")}


def _inherited(demands: Demands, build: RunExports, host: RunExports) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The run requirements and constraints of an output that follow from the packages it was built with."""
    if demands.noarch:
        return host.noarch, ()
    return (*build.strong, *host.strong, *host.weak), (
        *build.strong_constrains,
        *host.strong_constrains,
        *host.weak_constrains,
    )
