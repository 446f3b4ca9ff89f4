"""One call of `build`: from the command line's words to a list, a debug environment or a finished run."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from feedstock_tools.builds.engines.choice import Engines
from feedstock_tools.builds.plan.cache import Plan
from feedstock_tools.builds.plan.refusals import in_words, refuse_unbuildable, refused
from feedstock_tools.builds.plan.workspace import Setting
from feedstock_tools.errors import InputError
from feedstock_tools.feedstock.folder import find_feedstock
from feedstock_tools.feedstock.layout import Artifacts
from feedstock_tools.feedstock.names import select, with_filter
from feedstock_tools.feedstock.planned import PlannedConfiguration
from feedstock_tools.feedstock.provenance import typed
from feedstock_tools.feedstock.up_to_date import recipe_to_build, refresh
from feedstock_tools.report.run.folding import UNFOLDED, Fold, fold_of
from feedstock_tools.report.run.plain import Terminal, choose_from_menu

if TYPE_CHECKING:
    from feedstock_tools.builds.plan.capacity import Capacity, Limits
    from feedstock_tools.builds.runs.observer import Console
    from feedstock_tools.builds.runs.run import Outcome
    from feedstock_tools.builds.stand_in.choice import ChannelChoice

__all__ = ["Planned", "Session"]

#: So many rows are rendered within a second or two.
_FORESEEN = 200


class Planned(NamedTuple):
    """What a build of some configurations would work with: channels by configuration, or why one cannot be built."""

    setting: Setting
    chosen: tuple[PlannedConfiguration, ...]
    choices: Mapping[str, ChannelChoice]
    refused: Mapping[str, str]


@dataclass(frozen=True)
class Session:
    """A feedstock, its artifacts and plan, and how to answer: text, or JSON with the text on stderr."""

    setting: Setting
    plan: Plan
    engines: Engines
    console: Terminal
    fold: Fold
    as_json: bool

    @classmethod
    def open(
        cls,
        folder: Path | None,
        output: Path | None,
        channels: Sequence[str],
        here: Path,
        machine: Mapping[str, str],
        *,
        as_json: bool,
        engine: str | None = None,
    ) -> Session:
        """Find the feedstock, bring what is generated up to date, and plan.

        Args:
            engine: the one that was asked for; None to choose.

        Raises:
            InputError: there is no feedstock, its files cannot be used, or the output folder lies among them.
            WorkError: what is generated cannot be written.
        """
        fold = fold_of(machine)
        console = Terminal(sys.stderr if as_json else sys.stdout, fold)
        feedstock = find_feedstock(folder, here)
        artifacts = Artifacts((output or feedstock.artifacts).resolve())
        if artifacts.root.is_relative_to(feedstock.recipe):
            hint = "Give one elsewhere with --output-dir."
            raise InputError("what is built cannot be kept among the files it is built from", path=output, hint=hint)
        engines = Engines(feedstock.folder, lambda: recipe_to_build(feedstock, artifacts, engine), machine, engine)
        plan = Plan(
            feedstock,
            artifacts,
            recipe=engines.recipe,
            engine=lambda platform: engines.planned(platform).identity,
            stamp=engines.stamp,
            refresh=lambda: refresh(feedstock, artifacts, machine, console.say),
        )
        setting = Setting(feedstock, artifacts, engines.recipe(), tuple(channels), machine, command=typed(sys.argv))
        return cls(setting, plan, engines, console, fold, as_json)

    def list(self, names: Sequence[str], glob: str | None) -> int:
        """Print the configurations, all or those named, and what is built already."""
        from feedstock_tools.builds.matrix.listing import list_text, listed

        candidates = with_filter(glob, self.plan.configurations)
        entries = listed(self.setting, self.plan.complete(select(names, candidates) if names else candidates))
        print(json.dumps(entries, indent=2) if self.as_json else list_text(entries))  # noqa: T201
        return 0

    def build(
        self,
        names: Sequence[str],
        glob: str | None,
        capacity: Capacity,
        limits: Limits,
        *,
        everything: bool,
        interactive: bool,
    ) -> int:
        """Build what the names mean and print the table; the exit status is 1 where an output failed.

        Args:
            everything: build all that can be built on this machine too; what cannot is left out, which is no failure.

        Raises:
            InputError: a name means nothing, or what it means cannot be built here.
            WorkError: a channel, the artifacts folder or the ledger cannot be used.
        """
        from feedstock_tools.builds.engines.process.supervision import signals_as_exit
        from feedstock_tools.builds.runs.run import run_builds
        from feedstock_tools.report.run.text import summary_json, summary_text

        possible, left_out = self._possible(glob) if everything else ((), {})
        chosen = self._chosen((*names, *possible), glob, interactive=interactive)
        refuse_unbuildable(chosen, self.engines.why_not)
        for line in self.engines.told(chosen):
            self.console.say(line)
        setting = replace(self.setting, needs=self.plan.needs, sources=self.plan.sources)
        rows = sum(len(configuration.rows) for configuration in chosen)
        with signals_as_exit(), self._showing(min(limits.jobs, rows), rows) as console:
            optional = frozenset(possible) - {each.name for each in select(names, self.plan.configurations)}
            run = run_builds(setting, self.engines.engine, chosen, console, capacity, limits, optional)
        outcomes, left_out = run[0], {**left_out, **run[1]}
        if self.as_json:
            print(json.dumps(summary_json(setting.artifacts, outcomes, left_out), indent=2))  # noqa: T201
        else:
            self.console.say(summary_text(setting.artifacts, outcomes, left_out))
        if any(outcome.new for outcome in outcomes):
            self._foresee()
        return 0 if _complete(outcomes) else 1

    def _foresee(self) -> None:
        """Render the configurations that were not built, now that nobody waits for it: a list is to come at once."""
        rest = [each for each in self.plan.configurations if not each.rendered]
        if rest and sum(len(each.rows) for each in rest) <= _FORESEEN:
            with suppress(InputError):  # whoever asks for them is told
                self.plan.complete(rest)

    @contextmanager
    def _showing(self, jobs: int, rows: int) -> Iterator[Console]:
        """The console of a run: the log itself of one row at a time, otherwise a table or lines."""
        if jobs == 1:
            yield self.console
            return
        from feedstock_tools.report.run.many import Lines, LiveTable

        stream = self.console.stream
        if stream.isatty() and self.fold == UNFOLDED:
            with LiveTable(stream) as table:
                yield table
        else:
            yield Lines(stream, rows, self.fold)

    def planned(self, names: Sequence[str]) -> Planned:
        """What a build of the names would work with; all configurations without a name.

        Raises:
            InputError: a name means nothing, or channels were given to an engine that takes none.
            WorkError: a channel cannot be reached.
        """
        from feedstock_tools.builds.runs.run import choices_for

        chosen = self.complete(names)
        reasons = refused(chosen, self.engines.why_not)
        possible = [each for each in chosen if each.name not in reasons]
        for line in self.engines.told(possible):
            self.console.say(line)
        setting = replace(self.setting, needs=self.plan.needs)
        return Planned(setting, chosen, choices_for(setting, possible, self.engines.engine, self.console), reasons)

    def complete(self, names: Sequence[str]) -> tuple[PlannedConfiguration, ...]:
        """What the names mean, with outputs; all configurations without a name.

        Raises:
            InputError: a name means nothing.
        """
        known = self.plan.configurations
        return self.plan.complete(select(names, known) if names else known)

    def _possible(self, glob: str | None) -> tuple[tuple[str, ...], Mapping[str, str]]:
        """The names of the configurations that this machine has an engine for, and of the others why it has none.

        One whose recipe cannot be rendered is among the former: that is a mistake to be told of, and not for another
        machine to build.

        Raises:
            InputError: this machine has an engine for none.
        """
        candidates = self._candidates(glob)
        left_out = refused(candidates, self.engines.why_elsewhere)
        if len(left_out) == len(candidates):
            refuse_unbuildable(candidates, self.engines.why_not)
        for line in in_words(left_out):
            self.console.say(f"Left out: {line}")
        return tuple(each.name for each in candidates if each.name not in left_out), left_out

    def debug(self, names: Sequence[str], glob: str | None, output: str | None, *, interactive: bool) -> int:
        """Set up the environments of one output without building it; in a terminal, open a shell there."""
        from feedstock_tools.builds.engines.embedded.engine import RattlerBuild
        from feedstock_tools.builds.runs.debug import debug_output

        chosen = self._chosen(names, glob, interactive=interactive)
        refuse_unbuildable(chosen, self.engines.why_not)
        engine = self.engines.engine(chosen[0])
        if not isinstance(engine, RattlerBuild):
            hint = "The feedstock's own build-locally.py has a --debug too." if engine.own_channels else None
            what = f"--debug works with the embedded engine alone, and {chosen[0].name} is built with {engine.name}"
            raise InputError(what, hint=hint)
        return debug_output(self.setting, engine, chosen, output, self.console, interactive=interactive)

    def _chosen(self, names: Sequence[str], glob: str | None, *, interactive: bool) -> tuple[PlannedConfiguration, ...]:
        """What the names mean; without one the only configuration there is, or what the menu gives.

        Raises:
            InputError: a name means nothing, or none was given and nobody can be asked.
        """
        candidates = self._candidates(glob)
        if names:
            return self.plan.complete(select(names, candidates))
        if len(candidates) == 1:
            self.console.say(f"Found {candidates[0].name} configuration")
            return self.plan.complete(candidates)
        if interactive:
            return self.plan.complete([choose_from_menu(candidates)])
        listed = "\n".join(f"  {each.short_name:32} {each.name}" for each in candidates)
        raise InputError(f"name the configurations to build, or --all for what can be built here:\n{listed}")

    def _candidates(self, glob: str | None) -> tuple[PlannedConfiguration, ...]:
        if not self.plan.configurations:
            raise InputError("the feedstock has no configurations", path=self.setting.feedstock.folder / ".ci_support")
        return with_filter(glob, self.plan.configurations)


def _complete(outcomes: Sequence[Outcome]) -> bool:
    return all(outcome.record is not None and outcome.record.result == "done" for outcome in outcomes)
