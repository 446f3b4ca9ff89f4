"""`feedstock-tools cuda`: which CUDA, libraries, compilers, drivers and architectures go together."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from feedstock_tools.cli import completion, options
from feedstock_tools.cli.commands import Group
from feedstock_tools.cli.opening import readable, suggesting_stand_in
from feedstock_tools.cli.printing import is_quiet, say, say_error, say_json
from feedstock_tools.stages import stage

_CHANNELS = options.channels("none: what the facts say of conda-forge")
_PLATFORM = options.platform("linux-64")
_NO_FACTS = click.option("--no-facts", is_flag=True, help="With --channel: use its metadata alone, and no facts.")


@click.group("cuda", cls=Group)
def command() -> None:
    """Ask which CUDA, cuDNN, NCCL, compiler, driver and GPU go together."""


@command.command("resolve", short_help="Find releases that go together, or explain why none do.")
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

    DEMAND is cuda=11.2, 'gcc<=10', cudnn (any), python=3.9, platform=win-64, driver=470, 'gpu=RTX 3080', or, with
    --channel, any package: pytorch=2.1. Exits with 1 if nothing goes together.
    """
    from feedstock_tools.pins.graph import answers
    from feedstock_tools.platforms import Platform
    from feedstock_tools.report.pins.answer import answer_config, answer_json, answer_text

    demanded = [text.partition("=")[2] for text in demands if text.startswith("platform=")]
    readable_channels = readable(channels, [Platform.parse(platform or (*demanded, "linux-64")[0])])
    answer = answers.resolve(
        demands, channels=readable_channels, platform=platform, facts=not no_facts, kinds=kinds, most=limit
    )
    form = answer_json if as_json else answer_config if as_config else answer_text
    say(form(answer))
    return 0 if answer.sets else 1


@command.command("archs", short_help="Print the list of GPU architectures in a build system's form.")
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
    from feedstock_tools.facts import load_cuda
    from feedstock_tools.pins import architectures
    from feedstock_tools.report.pins.gpu import architectures_json, architectures_text

    chosen = architectures.architecture_list(load_cuda(), cuda, preset)
    if is_quiet():
        say(chosen.written(form))
    else:
        say(architectures_json(chosen, form) if as_json else architectures_text(chosen, form))
    return 0


@command.command("show", short_help="Show the table of CUDA versions and the graph of what goes with them.")
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
    from feedstock_tools.files.changes import write_whole
    from feedstock_tools.platforms import Platform
    from feedstock_tools.report.pins import show as pin_show

    form = "json" if as_json else "markdown" if markdown else form
    readable_channels = readable(channels, [Platform.parse(platform or "linux-64")])
    text = pin_show.show(versions, readable_channels, platform, facts=not no_facts, form=form)
    if output is None:
        say(text)
    else:
        write_whole(output, f"{text}\n")
    return 0


@command.command("graph", short_help="Write the graph of releases and bounds for other tools.")
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
    from feedstock_tools.files.changes import write_whole
    from feedstock_tools.platforms import Platform
    from feedstock_tools.report.pins.show import exported

    readable_channels = readable(channels, [Platform.parse(platform or "linux-64")])
    text = exported(readable_channels, platform, facts=not no_facts, form="json" if as_json else form)
    if output is None:
        say(text)
    else:
        write_whole(output, f"{text}\n")
    return 0


@command.command("audit", short_help="Compare the facts with what a channel has.")
@options.channels("conda-forge")
@options.platform("all that have CUDA", repeatable=True)
@options.as_json
def audit(channels: tuple[str, ...], platforms: tuple[str, ...], as_json: bool) -> int:
    """Compare the facts with the packages of a channel, and list every disagreement.

    Exits with 1 if there is any.
    """
    from feedstock_tools.facts import load_cuda
    from feedstock_tools.pins.channels import channel_title
    from feedstock_tools.pins.graph import audit
    from feedstock_tools.pins.graph.answers import records_of
    from feedstock_tools.platforms import Platform
    from feedstock_tools.report.pins.channel import audit_json, audit_text

    subdirs = platforms or audit.PLATFORMS
    readable_channels = readable(channels or ("conda-forge",), map(Platform.parse, subdirs))
    origin = " and ".join(channel_title(channel) for channel in readable_channels)
    disagreements = audit.audit(load_cuda(), records_of(readable_channels, *subdirs), origin, subdirs)
    say(audit_json(disagreements) if as_json else audit_text(disagreements, origin))
    return 1 if disagreements else 0


@command.command("check", short_help="Check the configurations of a feedstock against the facts.")
@options.pinning
@options.as_json
@options.configurations
def check(names: tuple[str, ...], feedstock: Path | None, pinning: str | None, as_json: bool) -> int:
    """Check configurations in .ci_support against the facts.

    Without a NAME: all configurations. The command reports host compilers that nvcc refuses, libraries that were never
    built for a CUDA version, images for another CUDA or platform, a glibc that is too old, CUDA versions that the
    pinning dropped or that never existed, guards that are missing or do not fit, zipped keys out of step, and, in
    configurations, scripts, recipe and spec, architectures that nvcc does not know and lists that leave GPUs out.
    Exits with 1 if it finds a mistake; remarks do not count.
    """
    from feedstock_tools.channel.kept import find_pinning as fetched_pinning
    from feedstock_tools.channel.kept import pinning_cache
    from feedstock_tools.check.against_facts import check_feedstock
    from feedstock_tools.feedstock.configurations import configurations_of
    from feedstock_tools.report.checks.linting import findings_json, findings_text

    folder = feedstock or Path()  # with .ci_support; a recipe is not needed
    configurations = configurations_of(folder, names)
    path = fetched_pinning(pinning, pinning_cache(os.environ)).path if pinning else None
    findings = check_feedstock(folder, configurations, pinning=path)
    say(findings_json(findings) if as_json else findings_text(findings, len(configurations)))
    return 1 if any(finding.weight == "mistake" for finding in findings) else 0


@command.command("binary", short_help="List the GPU architectures that a package or library was compiled for.")
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
    from feedstock_tools.report.gpu_code import gpu_code_json, gpu_code_text

    promised = parse_architectures(required.replace(";", ",").split(",")) if required else ()
    found = contents(path)
    say(gpu_code_json(found) if as_json else gpu_code_text(found))
    missing = lacking(promised, with_code(found))
    if missing:
        say_error(f"Missing: {' '.join(map(str, missing))}")
    return 1 if missing else 0


@command.command("explain", short_help="Explain an error message about CUDA.")
@click.argument("message", nargs=-1, metavar="MESSAGE...")
@options.as_json
def explain(message: tuple[str, ...], as_json: bool) -> int:
    """Explain an error message of a compiler, driver, framework or solver: what it means, what to check, what to run.

    MESSAGE is the message itself, or - for standard input, such as a log. Exits with 1 if nothing is known about it.
    """
    from feedstock_tools.errors import InputError
    from feedstock_tools.facts.messages import explain_message
    from feedstock_tools.report.pins.messages import messages_json, messages_text

    text = _end_of_input() if message == ("-",) else " ".join(message)
    if not text.strip():
        raise InputError("the message is empty", hint="Paste it in quotes, or give - and pipe the log in.")
    explanations = explain_message(text)
    say(messages_json(explanations) if as_json else messages_text(explanations))
    return 0


def _end_of_input() -> str:
    """The last megabytes of standard input, however much there is."""
    end = b""
    while part := sys.stdin.buffer.read(1 << 20):
        end = (end + part)[-(2 << 20) :]
    return end.decode("utf-8", "replace")


@command.command("fetch", short_help="Fetch CUDA compilers for builds on the stand-in channel.")
@click.argument("versions", nargs=-1, metavar="[VERSION]...", shell_complete=completion.cuda_versions)
@options.as_json
def fetch(versions: tuple[str, ...], as_json: bool) -> int:
    """Fetch CUDA compilers from NVIDIA's wheels with pip, for builds on the stand-in channel.

    VERSION is 11.8, 12.9, 13.0 …; without one, list the fetched ones. A toolkit is a download of 40 to 200 MB.
    CUDA 13 includes nvcc; 11.8 and 12.x have NVRTC and ptxas, which compile device code only.
    """

    from feedstock_tools.builds.stand_in import fetch_toolkit, fetched_toolkits
    from feedstock_tools.cli.opening import note_on_stderr, tidy
    from feedstock_tools.report.run.plain import fetching_in_lines

    tidy()
    watch = fetching_in_lines(note_on_stderr)
    fetched = []
    for version in versions:
        stage(f"fetching the compiler of CUDA {version}")
        fetched.append(fetch_toolkit(version, os.environ, watch))
    toolkits = fetched if versions else fetched_toolkits(os.environ)
    if as_json:
        entries = [
            {"version": toolkit.version, "made_of": toolkit.made_of, "folder": str(toolkit.folder)}
            for toolkit in toolkits
        ]
        say_json(entries)
    else:
        lines = [f"CUDA {toolkit.version}: {', '.join(toolkit.made_of)} in {toolkit.folder}" for toolkit in toolkits]
        say(
            "\n".join(lines)
            or "No CUDA compiler has been fetched yet. Fetch one with `feedstock-tools cuda fetch 12.9`."
        )
    return 0
