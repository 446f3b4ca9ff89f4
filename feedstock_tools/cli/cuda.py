"""`feedstock-tools cuda`: what goes with which CUDA, and which builds a GPU runs."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from feedstock_tools.channel.properties import STAND_IN
from feedstock_tools.cli import completion, options, printing
from feedstock_tools.cli.commands import Group
from feedstock_tools.cli.opening import tidy
from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.files.temporary import system_folder
from feedstock_tools.platforms import Platform
from feedstock_tools.stages import stage

if TYPE_CHECKING:
    from feedstock_tools.pins.environments import Environment

_NOTE = "Reading the STAND-IN channel: it has the metadata of conda-forge's packages."


def readable(channels: Sequence[str], platforms: Iterable[Platform]) -> tuple[str, ...]:
    """The given channels, with the folders of the stand-in channel in place of `stand-in`.

    Creates the stand-in channel for these platforms if it is missing.
    """
    if STAND_IN.origin not in channels:
        return tuple(channels)
    from feedstock_tools.builds.channels import channels_named, names_to_solve_in

    chosen = channels_named(channels)
    printing.say_note(_NOTE)
    fallback = system_folder() / "feedstock-tools"
    by_subdir = names_to_solve_in(chosen, platforms, os.environ, fallback)
    return tuple(name for names in by_subdir.values() for name in names)


@contextmanager
def suggesting_stand_in() -> Iterator[None]:
    """Name the stand-in channel in the error of a channel on a server that cannot be read.

    Raises:
        WorkError: there was one.
    """
    try:
        yield
    except WorkError as error:
        from feedstock_tools.channel.repodata import UnreadChannelError

        if not isinstance(error, UnreadChannelError):
            raise
        hint = f"Use --channel {STAND_IN.origin} to read one that is made on the spot."
        raise WorkError(error.mistakes[0].message, hint=hint) from error


_CHANNELS = options.channels("none: what the facts say of conda-forge")
_PLATFORM = options.platform("linux-64")
_NO_FACTS = click.option("--no-facts", is_flag=True, help="With --channel: use its metadata alone, and no facts.")


@click.group("cuda", cls=Group)
def cuda() -> None:
    """Ask which CUDA, cuDNN, NCCL, compiler, driver and GPU go together."""


@cuda.command("resolve", short_help="Find releases that go together, or explain why none do.")
@click.argument("demands", nargs=-1, required=True, metavar="DEMAND...", shell_complete=completion.demands)
@_CHANNELS
@_PLATFORM
@_NO_FACTS
@click.option("--limit", type=click.IntRange(1), default=1, metavar="N", help="Find up to N sets (default: 1).")
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    metavar="KIND",
    help="Besides those demanded, only this kind: cudnn, gcc (repeatable).",
)
@click.option("--config", "as_config", is_flag=True, help="Print lines for a conda_build_config.yaml.")
@options.as_json
@suggesting_stand_in()
def resolve(
    demands: tuple[str, ...],
    channels: tuple[str, ...],
    platform: str | None,
    no_facts: bool,
    limit: int,
    kinds: tuple[str, ...],
    as_config: bool,
    as_json: bool,
) -> int:
    """Find releases that go together, newest first; or explain which demands are incompatible, and what would work.

    DEMAND is cuda=11.2, 'gcc<=10', cudnn (any), python=3.9, platform=win-64 (or linux-aarch64, wsl), driver=470,
    'gpu=RTX 3080', a framework, by its wheels on PyPI (torch=2.8, tensorflow, jax, cupy, vllm, onnxruntime-gpu), or,
    with --channel, any package: pytorch=2.1. The name of several GPUs is answered for each. Exits with 1 if nothing
    goes together.
    """
    from feedstock_tools.pins.graph import answers
    from feedstock_tools.pins.graph.kinds import kind_named, parse_demands
    from feedstock_tools.report.pins.answer import answer_config, answer_json, answer_text

    named = [text for text in demands if kind_named(text.partition("=")[0].strip().lower()).name == "platform"]
    demanded = [each.spec for each in parse_demands(named)]
    readable_channels = readable(channels, [Platform.parse(platform or (*demanded, "linux-64")[0])])
    found = []
    for asked in [demands] if as_json or as_config else answers.for_each_gpu(demands):
        answer = answers.resolve(
            asked, channels=readable_channels, platform=platform, facts=not no_facts, kinds=kinds, most=limit
        )
        found.append(bool(answer.sets))
        heading = "".join(f"{text}:\n" for text in asked if text not in demands)
        text = (answer_json if as_json else answer_config if as_config else answer_text)(answer)
        printing.say(f"{heading}{text}", whole=as_json or as_config)
    return 0 if any(found) else 1


@cuda.command("archs", short_help="Print the list of GPU architectures in a build system's form.")
@click.argument("cuda", metavar="cuda=VERSION", shell_complete=completion.demands)
@click.option(
    "--for", "form", default="nvcc", metavar="TOOL", help="Form for tensorflow, pytorch, cmake or nvcc (default: nvcc)."
)
@options.preset("common", default="common")
@options.as_json
def archs(cuda: str, form: str, preset: str, as_json: bool) -> int:
    """Print the list of GPU architectures in the form that a build system takes, and the GPUs that it covers.

    The last one is PTX of the newest architecture, which drivers compile for later GPUs. --quiet prints only the list,
    for scripts.
    """
    from feedstock_tools.facts.cuda import load_cuda
    from feedstock_tools.pins import architectures
    from feedstock_tools.report.pins.gpu import architectures_json, architectures_text

    chosen = architectures.architecture_list(load_cuda(), cuda, preset)
    if printing.is_quiet():
        printing.say(chosen.written(form), whole=True)
    else:
        printing.say_result((architectures_json if as_json else architectures_text)(chosen, form))
    return 0


@cuda.command("show", short_help="Show the table of CUDA versions and the graph of what goes with them.")
@click.argument("versions", nargs=-1, metavar="[VERSION...]", shell_complete=completion.cuda_versions)
@_CHANNELS
@_PLATFORM
@_NO_FACTS
@options.form("text", "markdown", "json", "mermaid", "dot", "html")
@options.markdown
@options.as_json
@options.output("the terminal", kind="file")
@suggesting_stand_in()
def show(
    versions: tuple[str, ...],
    channels: tuple[str, ...],
    platform: str | None,
    no_facts: bool,
    form: str,
    markdown: bool,
    as_json: bool,
    output: Path | None,
) -> int:
    """Show the table of CUDA versions and the graph of what goes with them; VERSION limits it: 11.2, 12.

    The HTML page has table and picture in one file and needs no network.
    """
    options.refuse_both(as_json, markdown)
    from feedstock_tools.report.pins import show as pin_show

    form = "json" if as_json else "markdown" if markdown else form
    readable_channels = readable(channels, [Platform.parse(platform or "linux-64")])
    width = None if output else printing.table_width()
    text = pin_show.show(versions, readable_channels, platform, facts=not no_facts, form=form, width=width)
    printing.say_or_write(text, output)
    return 0


@cuda.command("variants", short_help="List or write the named variant files, such as linux_64_cuda11.2.")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@options.output("none: the files are listed", kind="folder")
@click.option("--print", "printed", is_flag=True, help="Print the contents of the files; write nothing.")
@options.check
@options.as_json
def variants(names: tuple[str, ...], output: Path | None, printed: bool, check: bool, as_json: bool) -> int:
    """List the named variant files, such as linux_64_cuda11.2 and osx_arm64_cpu, or write them with --output.

    Each file lists the compilers, cuDNN, image and glibc that conda-forge's pinning last had for a platform and CUDA
    version, and is a variant file for `conda build -m`. A NAME is a name or a glob; without one: all files.
    --check compares the files in the folder of --output.
    """
    from feedstock_tools.facts.cuda import load_cuda
    from feedstock_tools.generate import named_variants
    from feedstock_tools.report.spec import variants_json, variants_table

    if check and output is None:
        raise click.UsageError("--check needs the folder of the files: --output PATH")
    facts = load_cuda()
    files = named_variants.variant_files(facts)
    chosen = named_variants.choose(names, files)
    if output is not None and check:
        states = {each.path: each.kind for each in named_variants.compare(output, files, chosen)}
        _say_states(states, [f"{path}: {kind}" for path, kind in states.items()], as_json=as_json)
        return 1 if states else 0
    if output is not None:
        written = named_variants.write(output, files, chosen)
        _say_states(dict.fromkeys(written, "written"), map(str, written), as_json=as_json)
        printing.say_note(f"{len(written)} written, {len(chosen) - len(written)} unchanged")
    elif printed:
        contents = {name: files[name] for name in chosen}
        printing.say_result(contents if as_json else "\n".join(contents.values()), whole=True)
    else:
        rows = [row for row in facts.rows if row.name in chosen]
        printing.say_result(variants_json(rows) if as_json else variants_table(rows, printing.table_width()))
    return 0


def _say_states(states: Mapping[Path, str], lines: Iterable[str], *, as_json: bool) -> None:
    """Print files with what became of them, as JSON or in lines of text."""
    if as_json:
        printing.say_result([{"file": path, "state": state} for path, state in states.items()])
    else:
        for line in lines:
            printing.say(line)


@cuda.command("graph", short_help="Write the graph of releases and bounds for other tools.")
@_CHANNELS
@_PLATFORM
@_NO_FACTS
@options.form("graphml", "json")
@options.as_json
@options.output("the terminal", kind="file")
@suggesting_stand_in()
def graph(
    channels: tuple[str, ...], platform: str | None, no_facts: bool, form: str, as_json: bool, output: Path | None
) -> int:
    """Write the whole graph: releases and the bounds between them as nodes with attributes, as networkx reads them.

    Gephi, yEd and Cytoscape open GraphML; the JSON is that of networkx's node_link_graph.
    """
    from feedstock_tools.report.pins.show import exported

    readable_channels = readable(channels, [Platform.parse(platform or "linux-64")])
    text = exported(readable_channels, platform, facts=not no_facts, form="json" if as_json else form)
    printing.say_or_write(text, output)
    return 0


@cuda.command("audit", short_help="Compare the facts with what a channel has.")
@options.channels("conda-forge")
@options.platform("all that have CUDA", repeatable=True)
@options.strict
@options.as_json
def audit(channels: tuple[str, ...], platforms: tuple[str, ...], strict: bool, as_json: bool) -> int:
    """Compare the facts with the packages of a channel, and list every disagreement.

    Exits with 1 if there is any. What the channel lacks entirely for a platform is unknown.
    """
    from feedstock_tools.check.findings import verdict_of
    from feedstock_tools.facts.cuda import load_cuda
    from feedstock_tools.pins.channels import channel_title
    from feedstock_tools.pins.graph import audit
    from feedstock_tools.pins.graph.answers import records_of
    from feedstock_tools.report.pins.channel import audit_checks, audit_json, audit_text

    subdirs = platforms or audit.PLATFORMS
    readable_channels = readable(channels or ("conda-forge",), map(Platform.parse, subdirs))
    origin = " and ".join(channel_title(channel) for channel in readable_channels)
    found = audit.audit(load_cuda(), records_of(readable_channels, *subdirs), origin, subdirs)
    printing.say_result(audit_json(found) if as_json else audit_text(found, origin))
    return options.status_of(verdict_of(audit_checks(found)), strict=strict)


@cuda.command("check", short_help="Check the configurations of a feedstock against the facts.")
@options.pinning
@options.strict
@options.as_json
@options.configurations
def check(names: tuple[str, ...], feedstock: Path | None, pinning: str | None, strict: bool, as_json: bool) -> int:
    """Check configurations in .ci_support against the facts.

    Without a NAME: all configurations. The command reports host compilers that nvcc refuses, libraries that were never
    built for a CUDA version, images for another CUDA or platform, a glibc that is too old, CUDA versions that the
    pinning dropped or that never existed, guards that are missing or do not fit, zipped keys out of step, and, in
    configurations, scripts, recipe and spec, architectures that nvcc does not know and lists that leave GPUs out.
    Exits with 1 if it finds a mistake; remarks do not count.
    """
    from feedstock_tools.check.against_facts import check_feedstock
    from feedstock_tools.cli.fetched import named_pinning
    from feedstock_tools.facts.cuda import load_cuda
    from feedstock_tools.feedstock.configurations import configurations_of, in_short
    from feedstock_tools.report.checks.linting import findings_text, report_values

    folder = feedstock or Path()  # with .ci_support; a recipe is not needed
    configurations = configurations_of(folder, names)
    printing.say_note(f"facts: of conda-forge's pinning on {load_cuda().newest_date}")
    found = check_feedstock(folder, configurations, pinning=named_pinning(pinning))
    printing.say_result(
        report_values(found) if as_json else findings_text(in_short(found, folder), len(configurations))
    )
    return options.status_of(found.verdict, strict=strict)


@cuda.command("binary", short_help="List the GPU architectures that a package or library was compiled for.")
@click.argument("path", type=click.Path(path_type=Path, exists=True))
@click.option(
    "--require", "required", metavar="LIST", help="Exit with 1 unless it has all of these: sm_80,sm_90,compute_90."
)
@options.as_json
def binary(path: Path, required: str | None, as_json: bool) -> int:
    """List the GPU architectures that a package, a library, a program or a folder was compiled for.

    PATH is a conda package, a wheel, a zip, a tar (.gz, .bz2, .xz), any other file, or a folder. Archives inside are
    read too. Machine code is listed as sm_90, PTX as compute_90.
    """
    from feedstock_tools.gpu_code.architecture import parse_architectures
    from feedstock_tools.gpu_code.code import contents, lacking, with_code
    from feedstock_tools.report.pins.gpu import gpu_code_json, gpu_code_text

    promised = parse_architectures(required.replace(";", ",").split(",")) if required else ()
    found = contents(path)
    printing.say_result((gpu_code_json if as_json else gpu_code_text)(found))
    missing = lacking(promised, with_code(found))
    if missing:
        printing.say_error(f"Missing: {' '.join(map(str, missing))}")
    return 1 if missing else 0


@cuda.command("explain", short_help="Explain an error message about CUDA.")
@click.argument("message", nargs=-1, metavar="MESSAGE...")
@options.as_json
def explain(message: tuple[str, ...], as_json: bool) -> int:
    """Explain an error message of a compiler, driver, framework or solver: what it means, what to check, what to run.

    MESSAGE is the message itself, or - for standard input, such as a log. Exits with 1 if nothing is known about it.
    """
    from feedstock_tools.facts.messages import explain_message
    from feedstock_tools.pins.graph.answers import resolve as answered
    from feedstock_tools.report.pins.answer import answer_line
    from feedstock_tools.report.pins.channel import messages_json, messages_text

    piped = message == ("-",) or not (message or sys.stdin.isatty())
    text = _end_of_input() if piped else " ".join(message)
    if not text.strip():
        raise InputError("the message is empty", hint="Paste it in quotes, or give - and pipe the log in.")
    explanations = explain_message(text)
    judged = [
        answer_line(answered(each.ask, kinds=[each.ask[0].partition("=")[0]], most=500)) if each.ask else ""
        for each in explanations
    ]
    printing.say_result((messages_json if as_json else messages_text)(explanations, judged))
    return 0


def _end_of_input() -> str:
    """The last megabytes of standard input, however much there is."""
    end = b""
    while part := sys.stdin.buffer.read(1 << 20):
        end = (end + part)[-(2 << 20) :]
    return end.decode("utf-8", "replace")


@cuda.command("facts", short_help="Take newer facts on GPUs, wheels and messages, or show which are used.")
@click.option(
    "--update",
    "source",
    metavar="FILE|CHANNEL",
    help="Take wheels.yaml, gpus.yaml, …: a file, an address over TLS, or all at one that ends with /.",
)
@click.option("--sha256", metavar="HASH", help="SHA-256 (of FILE; required unless it is an address).")
@click.option("--reset", is_flag=True, help="Use the facts of this release again.")
@options.as_json
def facts(source: str | None, sha256: str | None, reset: bool, as_json: bool) -> None:
    """Take newer facts than those of this release, for all later answers of this user, or show which are used.

    An update is checked as ours are, kept in the cache, and named with source and date beside every answer. The next
    release of this program reads its own facts again.
    """
    from feedstock_tools.facts import updates
    from feedstock_tools.facts.cuda import load_cuda
    from feedstock_tools.wording import counted

    if reset and source:
        raise InputError("--update and --reset exclude each other")
    if reset:
        updates.reset()
    if source:
        for taken in updates.take(source, sha256):
            printing.say_note(f"{taken.update.name}: {counted(taken.came, 'line')} came, {taken.went} went")
    used = updates.updates()
    if as_json:
        printing.say_result([{"name": each.name, "source": each.source, "date": each.date} for each in used])
    else:
        lines = [f"{each.name} of {each.source}, taken on {each.date}" for each in used]
        printing.say("\n".join(lines) or f"The facts of this release, of {load_cuda().newest_date}; none were updated.")


@cuda.command("fetch", short_help="Fetch CUDA compilers for builds on the stand-in channel.")
@click.argument("versions", nargs=-1, metavar="[VERSION]...", shell_complete=completion.cuda_versions)
@options.as_json
def fetch(versions: tuple[str, ...], as_json: bool) -> int:
    """Fetch CUDA compilers from NVIDIA's wheels with pip, for builds on the stand-in channel.

    VERSION is 11.8, 12.9, 13.0 …; without one, list the fetched ones. A toolkit is a download of 44 to 134 MB.
    CUDA 13 includes nvcc, which needs a g++ of this machine; 11.8 and 12.x have NVRTC and ptxas, which compile
    device code only: CMake's CUDA language and PyTorch need CUDA 13.
    """
    from feedstock_tools.builds.stand_in import fetch_toolkit, fetched_toolkits
    from feedstock_tools.report.observers import fetching_in_lines

    tidy()
    watch = fetching_in_lines(printing.say_note)
    fetched = []
    for version in versions:
        stage(f"fetching the compiler of CUDA {version}")
        fetched.append(fetch_toolkit(version, os.environ, watch))
    toolkits = fetched if versions else fetched_toolkits(os.environ)
    if as_json:
        printing.say_result(
            [
                {"version": each.version, "made_of": each.made_of, "folder": each.folder, "whole": each.whole}
                for each in toolkits
            ]
        )
    else:
        lines = [
            f"CUDA {toolkit.version}: {', '.join(toolkit.made_of)} in {toolkit.folder}\n  note: {toolkit.limit}"
            for toolkit in toolkits
        ]
        nothing = "No CUDA compiler has been fetched yet. Fetch one with `feedstock-tools cuda fetch 12.9`."
        printing.say("\n".join(lines) or nothing)
    return 0


#: How the names of GPUs begin, known or not, which are no packages.
_LIKE_A_GPU = re.compile(r"(?:nvidia|geforce|rtx|gtx|tesla|quadro|titan|jetson)[ -]?\w*\d", re.IGNORECASE)


@cuda.command("gpu", short_help="Show which CUDA builds run on a GPU: natively, through PTX, or not at all.")
@click.argument("packages", nargs=-1, metavar="[PACKAGE]...", shell_complete=completion.packages)
@click.option(
    "--model",
    metavar="NAME",
    help='A GPU by its name, such as "RTX 3080" (default: those of this machine).',
    shell_complete=completion.gpus,
)
@click.option("--capability", metavar="VERSION", help="A GPU by its compute capability, such as 8.6.")
@click.option("--driver", metavar="VERSION", help="Driver of the machine with that GPU, such as 535.129.03.")
@options.cuda
@options.preset("all that a toolkit knows")
@options.channels("conda-forge")
@options.platform("that of this machine")
@options.as_json
@suggesting_stand_in()
def gpu(
    packages: tuple[str, ...],
    model: str | None,
    capability: str | None,
    driver: str | None,
    cuda: str | None,
    preset: str | None,
    channels: tuple[str, ...],
    platform: str | None,
    as_json: bool,
) -> int:
    """Show how a GPU runs what each CUDA toolkit builds, wheels of frameworks, or builds of PACKAGEs.

    Natively, through PTX, or not at all. A GPU may be named without --model: gpu "RTX 3080". Without a GPU the command
    asks the driver of this machine. --verbose prints each version on a line of its own.
    """
    from feedstock_tools.facts.gpus import is_gpu
    from feedstock_tools.pins.judge import Question, report
    from feedstock_tools.report.pins.gpu import gpu_json, gpu_text

    is_named = packages and model is None and capability is None
    if is_named and (_LIKE_A_GPU.match(packages[0]) or is_gpu(packages[0])):
        model, packages = packages[0], packages[1:]
    where = Platform.parse(platform) if platform else Platform.here()
    listed = readable(channels or ("conda-forge",), [where]) if packages else ()
    judged = report(Question(model, capability, driver, cuda, preset, packages, listed, where))
    single = cuda is not None and not packages
    every = printing.loudness() == "verbose"
    printing.say_result(gpu_json(judged) if as_json else gpu_text(judged, single=single, every=every))
    return 0


@cuda.command("search", short_help="List a package's builds in a channel, with the CUDA version of each.")
@click.argument("spec", shell_complete=completion.packages)
@options.channels("conda-forge")
@options.platform("that of this machine")
@options.cuda
@options.as_json
@suggesting_stand_in()
def search(spec: str, channels: tuple[str, ...], platform: str | None, cuda: str | None, as_json: bool) -> int:
    """List the builds of a package as `conda search` does, with the CUDA toolkit of each.

    SPEC is a name or a match specification: cudnn, 'cudnn >=8', 'cuda*'. Exits with 1 if there are no such builds.
    """
    from feedstock_tools.pins.channels import of_toolkit, search
    from feedstock_tools.report.pins.channel import found_json, found_table

    where = Platform.parse(platform) if platform else Platform.here()
    builds = search(spec, readable(channels or ("conda-forge",), [where]), where)
    if cuda:
        builds = of_toolkit(builds, cuda)
    printing.say_result((found_json if as_json else found_table)(builds))
    return 0


@dataclass(frozen=True, slots=True)
class _Wish:
    """The packages, and the machine that they are for."""

    packages: tuple[str, ...]
    gpu: bool | None
    cuda: str | None
    platform: str | None
    channels: tuple[str, ...]
    python: str | None
    virtual: tuple[str, ...]
    unsolved: bool


@dataclass(frozen=True, slots=True)
class _Form:
    """How the environment is written."""

    name: str | None
    prefix: Path | None
    exact: bool
    output: Path | None
    as_json: bool

    def text_of(self, environment: Environment) -> str:
        from feedstock_tools.report.pins.environment import as_json, as_yaml

        request = environment.request
        name = self.name or f"{request.packages[0].split('=')[0].split(' ')[0]}-{request.target.accelerator}"
        prefix = self.prefix.absolute() if self.prefix else None
        file = self.output.name if self.output else "environment.yml"
        form = as_json if self.as_json else as_yaml
        return form(environment, name=name, prefix=prefix, exact=self.exact, file=file).rstrip("\n")


@cuda.command("env", short_help="Write an environment.yml that gets the GPU or CPU build of a framework.")
@click.argument("packages", nargs=-1, required=True, metavar="PACKAGE...", shell_complete=completion.packages)
@options.gpu("GPU with --cuda, or if this machine has one", default=None)
@options.cuda
@options.platform("that of this machine")
@options.channels("conda-forge")
@click.option("--python", metavar="VERSION", help="Version of Python, such as 3.11.")
@click.option(
    "--virtual",
    multiple=True,
    metavar="NAME=VERSION",
    help="Virtual package of the machine: __cuda=12.4, __glibc=2.17 (repeatable).",
)
@click.option("--name", metavar="NAME", help="Name of the environment (default: made from the PACKAGEs).")
@click.option(
    "--prefix", type=click.Path(path_type=Path), metavar="DIR", help="Folder that the environment will be in."
)
@click.option("--exact", is_flag=True, help="List every package of the solution, with its build.")
@click.option("--unsolved", is_flag=True, help="Do not use the network; the environment is not solved.")
@options.output("the terminal", kind="file")
@options.as_json
@options.gathered("wish", _Wish)
@options.gathered("form", _Form)
def env(wish: _Wish, form: _Form) -> int:
    """Write an environment.yml that installs PACKAGEs, with the GPU or the CPU build of the frameworks among them.

    It is solved for the given platform and machine; its comments explain how to create the environment and how to check
    that it sees the GPU. Exits with 1, and the reason, if there is no such environment.
    """
    from feedstock_tools.facts.cuda import load_cuda
    from feedstock_tools.facts.frameworks import load_frameworks
    from feedstock_tools.pins.environments import Request, environment, target_of

    facts = load_cuda()
    target = target_of(wish.gpu, wish.cuda, wish.platform, facts)
    channels = readable(wish.channels, [target.platform]) or ("conda-forge",)
    request = Request(wish.packages, target, channels, wish.python, wish.virtual, solved=not wish.unsolved)
    text = form.text_of(environment(request, facts, load_frameworks()))
    printing.say_or_write(text, form.output)
    return 0
