"""What py-rattler-build and the scripts that it runs print: its log, and their output past the engine.

py-rattler-build 0.73 reads what scripts print line by line and stops at the first byte that is not UTF-8, after which a
script waits forever once the pipe is full. It finds `bash` on the search path, so a `bash` of ours is first there: it
hands our descriptors to the scripts that the engine itself starts, and takes itself off their search path. The engine
would wait forever for a FIFO that a script leaves in its prefix, so such a script fails.
"""

from __future__ import annotations

import fcntl
import os
import re
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

from feedstock_tools.builds.engines.comparable import DEFAULT_EPOCH

#: The lowest number of a descriptor that scripts do not use for themselves.
_FREE = 60
#: `$PPID` tells a script of the engine from the programs that the script starts.
_WRAPPER = """\
#!{shell}
if [ "$PPID" = {engine} ]; then
  {announce}
  here={folder}:
  PATH="${{PATH//"$here"/}}"
  settings="${{1%/*}}/build_env.sh"
  if [ -f "$settings" ]; then
    text="$(<"$settings")"
    printf '%s\\n' "${{text//"$here"/}}" "export SOURCE_DATE_EPOCH={epoch}" "$(<{more})" > "$settings"
  fi
  links() {{ find "$PREFIX" -type l -lname {linked} | sort; }}
  if [ "$CONDA_BUILD_STATE" = BUILD ]; then before="$({links})"; fi
  {bash} "$@" >&{output} 2>&{output} {closing}
  status=$?
  if [ "$status" -gt 128 ]; then
    kill -"$((status - 128))" "$$"
  fi
  if [ "$status" = 0 ] && [ "$CONDA_BUILD_STATE" = BUILD ]; then
    odd="$(find "$PREFIX" ! -type f ! -type d ! -type l 2>&1 | head -n 1)"
    if [ -n "$odd" ]; then
      echo "error: the build script left $odd, which is no file, folder or link and cannot be packaged" >&{output}
      exit 1
    fi
    comm -13 <(echo "$before") <({links}) | while IFS= read -r link; do
      cp -L "$link" "$link.file" && mv "$link.file" "$link" || exit 1
    done || exit 1
  fi
  exit "$status"
fi
exec {bash} "$@"
"""
_ANNOUNCE = """\
if [ "$CONDA_BUILD_STATE" = TEST ]; then stage=tests; else stage=script; fi
  printf '["script","%s"]\\n' "$stage" >&{events}"""


class EngineLog:
    """The progress callback of rattler-build: gives each message of its log, with its step and level, to `say`."""

    def say(self, message: str, step: str, level: str = "info") -> None:
        """One message; by default a line on standard output."""
        sys.stdout.write(f"{message}\n")
        sys.stdout.flush()

    def on_log(self, event: Any) -> None:
        self.say(event.message, event.span or "", event.level)

    def on_build_step(self, event: Any) -> None:
        self.say(event.message, event.step_name)

    def on_download_start(self, event: Any) -> None:
        self.say(f"Downloading {event.url}", "download")

    def on_download_progress(self, event: Any) -> None:
        """Called while it fetches: progress is for a bar, not for a log."""

    def on_download_complete(self, event: Any) -> None:
        """Called when it has fetched something."""


def print_past_engine(
    folder: Path, output: int, events: int | None = None, epoch: int = DEFAULT_EPOCH, linked: Path | None = None
) -> None:
    """Let the scripts that the engine starts in this process from now on print to a descriptor.

    They get the settings that `folder/settings.sh` has then, too.

    Without a bash on the search path it does nothing, and the engine reads what they print.

    Args:
        folder: a private folder for the program that comes before `bash` on the search path.
        output: the descriptor.
        epoch: the time that scripts put into what they make, in place of the engine's, which is that of the build.
        events: a descriptor that gets a line `["script", STAGE]` before each script.
        linked: a folder that files of the prefix link to: where a build script copies such a link, it is packed as the
            file.
    """
    search = os.environ.get("PATH", os.defpath)
    bash = shutil.which("bash", path=search)
    shell = _real_shell(search)
    if bash is None or shell is None:
        return
    place = first_on_path(folder)
    place.mkdir(parents=True, exist_ok=True)
    descriptors = [
        fcntl.fcntl(descriptor, fcntl.F_DUPFD, _FREE) for descriptor in (output, events) if descriptor is not None
    ]
    text = _WRAPPER.format(
        shell=shell,
        engine=os.getpid(),
        announce=_ANNOUNCE.format(events=descriptors[1]) if events is not None else ":",
        folder=shlex.quote(str(place)),
        bash=shlex.quote(bash),
        output=descriptors[0],
        epoch=epoch,
        linked=shlex.quote(re.sub(r"([][*?\\])", r"\\\1", str(linked)) + "/*"),
        links="links" if linked else ":",
        more=shlex.quote(str(settings_of(folder))),
        closing=" ".join(f"{descriptor}>&-" for descriptor in descriptors),
    )
    settings_of(folder).touch()
    program = place / "bash"
    program.write_text(text, encoding="utf-8", errors="surrogateescape")
    program.chmod(0o755)
    os.environ["PATH"] = f"{place}{os.pathsep}{search}"


def first_on_path(folder: Path) -> Path:
    """The folder of programs for the engine in a private folder, which scripts do not see."""
    return folder / "first-on-path"


def settings_of(folder: Path) -> Path:
    """The file with more settings for the scripts of a build in a private folder."""
    return folder / "settings.sh"


def _real_shell(search: str) -> str | None:
    """A bash that can be the interpreter of a script: not a script itself, and without blanks in its path."""
    for folder in search.split(os.pathsep):
        program = shutil.which("bash", path=folder) if folder else None
        if program and not any(character.isspace() for character in program):
            with open(program, "rb") as stream:  # noqa: PTH123
                if stream.read(2) != b"#!":
                    return program
    return None
