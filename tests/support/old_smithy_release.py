"""A small release of conda-smithy of our own writing in the layout that releases had until 3.7.4."""

from __future__ import annotations

from pathlib import Path

from tests.support.whole_tree import write_files

_DEFAULTS = """

def _load_forge_config(forge_dir, exclusive_config_file):
    config = {
        "appveyor": {},
        "azure": {"force": False, "timeout_minutes": None},
        "bot": {"automerge": False},
        "channels": {"targets": [["conda-forge", "main"]]},
        "circle": {},
        "docker": {"executable": "docker", "interactive": True},
        "drone": {},
        "github": {"branch_name": "master", "repo_name": "", "user_or_org": "conda-forge"},
        "linux": {"enabled": False},
        "linux_aarch64": {"enabled": False},
        "osx": {"enabled": False},
        "provider": {"linux": "circle", "linux_aarch64": None, "osx": "travis", "win": "appveyor"},
        "recipe_dir": "recipe",
        "skip_render": [],
        "travis": {},
        "win": {"enabled": False},
    }
"""
_SHARED = '''

def _get_build_setup_line(forge_dir, platform, forge_config):
    own = textwrap.dedent("""\\
        # the recipe's
        source run_conda_forge_build_setup_osx
    """)
    windows = textwrap.dedent("""\\
        prepare
    """)
    return own, windows, textwrap.dedent("""\\
        source prepare
    """)


def generate_yum_requirements(forge_dir):
    return textwrap.dedent("""\\
        fetch {}
    """)
'''
_APART = '''

def _circle_specific_setup(jinja_env, forge_config, forge_dir, platform):
    setup = textwrap.dedent("""\\
        source prepare circle
    """)
    return setup, textwrap.dedent("""\\
        yum fetch {}
    """)


def _travis_specific_setup(jinja_env, forge_config, forge_dir, platform):
    return textwrap.dedent("""\\
        source prepare travis
        again
    """)


def _appveyor_specific_setup(jinja_env, forge_config, forge_dir, platform):
    return textwrap.dedent("""\\

        prepare
    """)


def _azure_specific_setup(jinja_env, forge_config, forge_dir, platform):
    forge_config["build_setup"] = "run_conda_forge_build_setup\\n"
'''
_REST = '''

def _get_fast_finish_script(provider_name, forge_config, forge_dir, fast_finish_text):
    tooling_branch = "master"
    return "curl finish/{branch}", tooling_branch


def render_travis(jinja_env, forge_config, forge_dir):
    return textwrap.dedent("""\\
        ({get_fast_finish_script}) on ${{TRAVIS}}
    """)


def clear_scripts(forge_dir):
    for folder in [".azure-pipelines", ".circleci", ".drone", ".travis"]:
        for old_file in ["run_docker_build.sh", "build_steps.sh"]:
            remove_file(folder, old_file)
'''
_TEMPLATES = {
    "README.md.tmpl": "Linux {{ linux.enabled }}, {{ circle.platforms }} at CircleCI, by {{ maintainers }}\n",
    "appveyor.yml.tmpl": "commands:\n    {{ build_setup }}\n",
    "azure-pipelines.yml.tmpl": "{% for one in configs %}{{ one }}\n{% endfor %}",
    "azure-pipelines-linux.yml.tmpl": "azure {{ docker.interactive }} {{ build_setup }}",
    "azure-pipelines-osx.yml.tmpl": "azure {{ docker.interactive }}\n",
    "azure-pipelines-win.yml.tmpl": "azure {{ docker.interactive }}\n",
    "build_steps.sh.tmpl": "{{ build_setup }}{{ yum_build_setup }}",
    "circle.yml.tmpl": "circle {{ configs }}\n",
    "drone.yml.tmpl": "drone\n",
    "fast_finish_ci_pr_build.sh.tmpl": "{{ fast_finish }}\n",
    "run_docker_build.sh.tmpl": "docker\n",
    "run_osx_build.sh.tmpl": "{{ build_setup }}",
    "travis.yml.tmpl": "travis\n  {{ fast_finish }}\n  {{ build_setup }}\n",
}


def write_old_release(folder: Path, *, shared_setup: bool = True) -> Path:
    """Write it as a source tree below a folder, and return the folder.

    `shared_setup`: one function has the lines that prepare a machine (from 3.3.5), else that of each service.
    """
    code = f"{_DEFAULTS}{_SHARED if shared_setup else _APART}{_REST}"
    files = {f"conda_smithy/templates/{name}": text for name, text in _TEMPLATES.items()}
    copied = {".circleci/checkout_merge_commit.sh": "checkout\n", ".github/workflows/main.yml": "merge\n"}
    files |= {f"conda_smithy/feedstock_content/{name}": text for name, text in copied.items()}
    return write_files(folder, {"conda_smithy/configure_feedstock.py": code, **files})
