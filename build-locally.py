#!/usr/bin/env python3
"""Build configurations of a feedstock: `python build-locally.py linux_64_cuda11.2`, or `--help`.

In the repository of feedstock-tools it makes an environment of its own on a first run. Copied into a feedstock it runs
the feedstock-tools that is installed for this Python, else the one on PATH. Old Pythons can read this file, which
then names the Python that it needs.
"""

import os
import signal
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
MISSING = """\
error: {what}
  Python: {python} ({version}); feedstock-tools needs 3.11 or later.
  Install it with `pip install PATH`, where PATH is a clone or a wheel of feedstock-tools, and run this again.
"""


def main(arguments):
    if os.path.isfile(os.path.join(HERE, "feedstock_tools", "bootstrap.py")) and sys.version_info >= (3, 7):
        hold_ctrl_c_back()
        sys.path.insert(0, HERE)
        from feedstock_tools.bootstrap import run_in_environment

        fleet = any(each == "--fleet" or each.startswith("--fleet=") for each in arguments)
        extra = "fleet" if fleet else "build"
        return run_in_environment(extra, "python", ["-P", "-m", "feedstock_tools.cli.build_locally"] + arguments)
    # The modules of Python and of feedstock-tools count, and no file of the feedstock that has the name of one.
    sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder) != HERE]
    if sys.version_info >= (3, 11) and is_installed():
        return run_installed()
    program = on_path("feedstock-tools")
    if program:
        import subprocess

        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, lambda *_: None)  # the program below handles it and decides on the status
        try:
            return subprocess.call([program, "build"] + arguments)
        except OSError as error:
            return missing("%s does not start: %s" % (program, error.strerror or error))
    return missing("feedstock-tools is not installed for this Python, and it is not on PATH.")


def hold_ctrl_c_back():
    """Until feedstock_tools.cli.build_locally can handle it, in this process or the one that replaces it."""
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])


def is_installed():
    import importlib.util

    return importlib.util.find_spec("feedstock_tools") is not None


def run_installed():
    import runpy

    hold_ctrl_c_back()
    try:
        runpy.run_module("feedstock_tools.cli.build_locally", run_name="__main__", alter_sys=True)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("feedstock_tools"):
            raise
        return missing("feedstock-tools is installed without %s, which it needs." % error.name)
    return 0


def on_path(name):
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        for ending in ("", ".exe"):
            program = os.path.join(folder, name + ending)
            if os.path.isfile(program) and os.access(program, os.X_OK):
                return program
    return None


def missing(what):
    version = "%d.%d.%d" % sys.version_info[:3]
    sys.stderr.write(MISSING.format(what=what, python=sys.executable, version=version))
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
