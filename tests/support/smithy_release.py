"""A small release of conda-smithy of our own writing: its layout, with templates that print their inputs."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

from feedstock_tools.channel.metadata import PackageFile, PackageMetadata
from feedstock_tools.channel.packages.archive import write_package

_CODE = '''
"""Stands for the code of conda-smithy, which is read and never run."""

CONDA_FORGE_PIXI_VERSION = "9.9.9"
CONDA_FORGE_SHELLCHECK_PLATFORMS = ["linux-64", "osx-64"]
FANCY_PLATFORM_NAMES = {
    "linux_64": "Penguin",
    "win_64": "Window",
}
raise RuntimeError("a release is data")


def _get_build_setup_line(forge_dir, platform, forge_config):
    own_linux = textwrap.dedent("""\\
        # own setup of the recipe
        source run_conda_forge_build_setup_linux
    """)
    own_win = textwrap.dedent("""\\
        :: own setup
        CALL {recipe_dir}\\\\run_conda_forge_build_setup_win
    """.format(recipe_dir=forge_config["recipe_dir"]))
    for_windows = textwrap.dedent("""\\
        CALL run_conda_forge_build_setup
    """)
    for_others = textwrap.dedent("""\\
        source run_conda_forge_build_setup
    """)
    return own_linux, own_win, for_windows, for_others


def generate_yum_requirements(forge_config, forge_dir):
    return textwrap.dedent("""\\
        # packages of the system
        fetch {}""".format(" ".join(requirements)))
'''
_DEFAULTS = """
azure:
  build_id: null
  force: false
  max_parallel: 50
  project_name: builds
  settings_linux: {pool: {vmImage: penguin}, timeoutInMinutes: 360}
  settings_osx: {pool: {vmImage: $(VMIMAGE)}, timeoutInMinutes: 360}
  settings_win: {pool: {vmImage: window}, timeoutInMinutes: 360, variables: {}}
  store_build_artifacts: false
  timeout_minutes: null
appveyor: {}
circle: {}
drone: {}
travis: {}
woodpecker: {}
build_platform: {linux_64: linux_64, osx_64: osx_64, win_64: win_64}
clone_depth: null
conda_build_tool: conda-build
conda_forge_output_validation: false
conda_install_tool: micromamba
conda_solver: libmamba
docker: {executable: docker, fallback_image: fallback, run_args: ''}
github: {branch_name: main, repo_name: '', tooling_branch_name: main, user_or_org: conda-forge}
github_actions: {self_hosted: false, store_build_artifacts: false, triggers: []}
noarch_platforms: [linux_64]
os_version: {linux_64: null}
provider: {linux_64: github_actions, osx_64: azure, win_64: github_actions}
recipe_dir: recipe
remote_ci_setup: [conda-forge-ci-setup=4, 'conda-build>=26.3']
secrets: []
skip_render: []
test: null
test_on_native_only: false
workflow_settings:
  build_workspace_dir: []
  free_disk_space: []
  pagefile_size: []
  resize_partitions: []
  store_build_artifacts: []
  tools_install_dir: []
"""
_TEMPLATES = {
    "README.md.tmpl": """About {{ package_name }}
{%- for name, about in package_about %}
## {{ name }}: {{ about.summary }}
{%- endfor %}
outputs {{ outputs | join(", ") }}
for {{ variants | join(" ") }}
https://dev.azure.com/?definitionId={{ azure.build_id }}
conda config --add channels {{ channel_targets[0].split(" ")[0] }}
{% for name, page in maintainers %}{{ name }} at {{ page }} {% endfor %}
""",
    "azure-pipelines.yml.tmpl": "azure {% for one in configs %}{{ one.config_name }} {% endfor %}\n",
    "azure-pipelines-linux.yml.tmpl": "linux\n  {{ azure_yaml | indent(2) }}\n",
    "azure-pipelines-osx.yml.tmpl": "osx\n  {{ azure_yaml | indent(2) }}\n",
    "azure-pipelines-win.yml.tmpl": "win\n  {{ azure_yaml | indent(2) }}\n",
    "github-actions.yml.tmpl": """jobs of {{ github_actions.platforms }} on {{ github_actions.triggers }}
{% for one in configs %}- {{ one.config_name }} on {{ one.gha_os }} {{ one.gha_runs_on }} upload {{ one.upload }}
{% endfor %}""",
    "circle.yml.tmpl": "nothing\n",
    "travis.yml.tmpl": "travis\n",
    "appveyor.yml.tmpl": "appveyor\n{{ build_setup }}\n",
    "drone.yml.tmpl": "drone\n",
    "woodpecker.yml.tmpl": "woodpecker\n",
    "run_docker_build.sh.tmpl": "{{ docker.executable }} with {{ secrets | join(' ') }}",
    "build_steps.sh.tmpl": """{{ build_setup }}{{ yum_build_setup }}
{{ conda_build_tool_deps }} {{ remote_ci_setup }}

""",
    "run_osx_build.sh.tmpl": "{{ build_setup }}",
    "run_win_build.bat.tmpl": "{{ build_setup }}",
    "pixi.toml.tmpl": """pixi {{ pixi_version }} by {{ smithy_version }} on {{ platforms }}
{{ build_tool_deps_dict }}


""",
    "create_pagefile.sh.tmpl": "a page file",
}
_COPIED = {
    "build-locally.py": "print('their script')\n",
    "README": "about the copied files\n",
    ".gitignore": "*.pyc\n",
    "LICENSE.txt": "a license\r\n",
    ".ci_support/README": "written by a program\n",
    ".circleci/checkout_merge_commit.sh": "checkout\n",
    ".github/workflows/conda-build.yml": "name: nothing to do\n",
    ".scripts/logging_utils.sh": "say() { echo; }\n",
}


def release_files() -> dict[str, bytes]:
    """Its files by their paths in the package `conda_smithy`."""
    files = {
        "configure_feedstock.py": _CODE,
        "data/conda-forge.yml": _DEFAULTS,
        **{f"templates/{name}": text for name, text in _TEMPLATES.items()},
        **{f"feedstock_content/{name}": text for name, text in _COPIED.items()},
    }
    return {name: text.encode() for name, text in files.items()}


def write_release(folder: Path) -> Path:
    """Write it as a source tree below a folder, and return the folder."""
    for name, content in release_files().items():
        path = folder / "conda_smithy" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def write_package_of_release(channel: Path, version: str, *, old_format: bool = False, left_out: str = "") -> None:
    """Write it as a conda package into the folder of a channel, beside files that a rerender does not need.

    `left_out`: a file of the package `conda_smithy` that is missing.
    """
    contents = {name: content for name, content in release_files().items() if name != left_out}
    files = {f"site-packages/conda_smithy/{name}": content for name, content in contents.items()}
    files |= {"site-packages/conda_smithy/cli.py": b"raise RuntimeError\n", "python-scripts/conda-smithy": b"#!\n"}
    metadata = PackageMetadata("conda-smithy", version, "pyhd8ed1ab_0", 0, "noarch", noarch="python")
    if not old_format:
        write_package(channel, metadata, [PackageFile(name, content) for name, content in files.items()])
        return
    index = json.dumps(metadata.index_json()).encode()
    path = channel / "noarch" / f"conda-smithy-{version}-pyhd8ed1ab_0.tar.bz2"
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:bz2") as archive:
        for name, content in {"info/index.json": index, "info/licenses/LICENSE.txt": b"a license\n", **files}.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
