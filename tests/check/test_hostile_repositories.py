"""Repositories that strangers made: none of the ways in which git starts a program does so in a command that reads,
and a commit has the files, the name and the history that its objects have.

Each trap is sprung by plain git first, so that these tests cannot pass because a trap is broken.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from feedstock_tools.errors import FeedstockError, InputError, WorkError
from feedstock_tools.feedstock import git as module
from feedstock_tools.feedstock.git import (
    branch_base,
    checked_out,
    commit_of,
    epoch_of,
    find_repository,
    left_out,
    project_at,
)
from feedstock_tools.files.changes import Changes
from tests.support import command
from tests.support.git import committed, git
from tests.support.paths import ROOT

RECIPE = "package: {name: demo, version: '1'}\n"
#: What plain git is called with to spring a trap.
STATUS = ("status",)
MISSING = ("cat-file", "blob", "HEAD:recipe/meta.yaml")

Trap = Callable[[Path, str], tuple[str, ...]]


@pytest.fixture
def feedstock(tmp_path: Path) -> Path:
    """A feedstock in a repository whose branch `mine` has a commit more than `main`."""
    folder = tmp_path / "demo-feedstock"
    (folder / "recipe").mkdir(parents=True)
    (folder / "recipe/meta.yaml").write_text(RECIPE)
    (folder / "conda-forge.yml").write_text("{}\n")
    committed(folder)
    git(folder, "checkout", "-qb", "mine")
    (folder / "recipe/meta.yaml").write_text(RECIPE.replace("1", "2"))
    committed(folder, "second")
    return folder


@pytest.fixture
def trap(tmp_path: Path) -> str:
    """A program that notes that it ran."""
    path = tmp_path / "trap"
    path.write_text(f"#!/bin/sh\necho ran >> {tmp_path}/ran\n")
    path.chmod(0o755)
    return str(path)


def read(folder: Path) -> None:
    """All that is asked of git for commands that read."""
    commit_of(folder)
    epoch_of(folder, {})
    left_out(folder, [folder / "recipe/meta.yaml"])
    for ask in (lambda: branch_base(folder), lambda: _open(folder, "main"), lambda: _open(folder, "HEAD")):
        try:
            ask()
        except FeedstockError:  # as for a clone that lacks objects
            continue
    try:
        with project_at(folder.as_uri()):
            pass
    except FeedstockError:
        pass


def _open(folder: Path, revision: str) -> None:
    with checked_out(folder, revision):
        pass


def attributes(folder: Path, text: str) -> None:
    (folder / ".gitattributes").write_text(text)
    committed(folder, "attributes")


def touched(folder: Path) -> None:
    """As after a checkout: git looks at the contents again."""
    os.utime(folder / "recipe/meta.yaml", (time.time() + 60,) * 2)


def hook(folder: Path, name: str, trap: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).symlink_to(trap)


def promisor(folder: Path, **settings: str) -> tuple[str, ...]:
    """The repository lacks a recipe, which a remote promises."""
    for key, value in {"remote.p.promisor": "true", "extensions.partialClone": "p", **settings}.items():
        git(folder, "config", key.replace("__", "."), value)
    git(folder, "config", "core.repositoryFormatVersion", "1")
    digest = git(folder, "rev-parse", "HEAD:recipe/meta.yaml").strip()
    (folder / ".git/objects" / digest[:2] / digest[2:]).unlink()
    return MISSING


def a_filter_on_the_way_out(folder: Path, trap: str) -> tuple[str, ...]:
    attributes(folder, "* filter=x\n")
    git(folder, "config", "filter.x.smudge", trap)
    return ("archive", "HEAD")


def a_filter_on_the_way_in(folder: Path, trap: str) -> tuple[str, ...]:
    attributes(folder, "* filter=x\n")
    git(folder, "config", "filter.x.clean", trap)
    touched(folder)
    return STATUS


def a_filter_that_is_a_process(folder: Path, trap: str) -> tuple[str, ...]:
    attributes(folder, "* filter=x\n")
    git(folder, "config", "filter.x.process", trap)
    touched(folder)
    return STATUS


def a_filter_by_attributes_of_the_repository(folder: Path, trap: str) -> tuple[str, ...]:
    (folder / ".git/info").mkdir(exist_ok=True)
    (folder / ".git/info/attributes").write_text("* filter=x\n")
    git(folder, "config", "filter.x.smudge", trap)
    return ("archive", "HEAD")


def a_monitor(folder: Path, trap: str) -> tuple[str, ...]:
    git(folder, "config", "core.fsmonitor", trap)
    return STATUS


def a_monitor_in_an_included_file(folder: Path, trap: str) -> tuple[str, ...]:
    (folder / "settings").write_text(f"[core]\n\tfsmonitor = {trap}\n")
    git(folder, "config", "include.path", "../settings")
    return STATUS


def a_monitor_of_the_work_tree(folder: Path, trap: str) -> tuple[str, ...]:
    git(folder, "config", "extensions.worktreeConfig", "true")
    (folder / ".git/config.worktree").write_text(f"[core]\n\tfsmonitor = {trap}\n")
    return STATUS


def a_monitor_of_a_submodule(folder: Path, trap: str) -> tuple[str, ...]:
    (folder / "sub").mkdir()
    (folder / "sub/file").write_text("")
    committed(folder / "sub")
    git(folder, "submodule", "--quiet", "add", "./sub", "sub")
    committed(folder, "submodule")
    git(folder / "sub", "config", "core.fsmonitor", trap)
    return STATUS


def a_hook_for_the_index(folder: Path, trap: str) -> tuple[str, ...]:
    hook(folder / ".git/hooks", "post-index-change", trap)
    touched(folder)
    return STATUS


def a_hook_in_a_folder_of_the_feedstock(folder: Path, trap: str) -> tuple[str, ...]:
    hook(folder / "hooks", "post-index-change", trap)
    git(folder, "config", "core.hooksPath", "hooks")
    touched(folder)
    return STATUS


def signed(folder: Path, kind: str) -> None:
    """The last commit is signed, and signatures are shown."""
    body = git(folder, "cat-file", "commit", "HEAD").replace(
        "\n\n", f"\ngpgsig -----BEGIN {kind} SIGNATURE-----\n \n x\n -----END {kind} SIGNATURE-----\n\n", 1
    )
    written = ["git", "-C", str(folder), "hash-object", "-t", "commit", "-w", "--stdin"]
    commit = subprocess.run(written, input=body, text=True, capture_output=True, check=True).stdout.strip()
    git(folder, "reset", "--quiet", "--soft", commit)
    git(folder, "config", "log.showSignature", "true")


def a_program_for_signatures(folder: Path, trap: str) -> tuple[str, ...]:
    signed(folder, "PGP")
    git(folder, "config", "gpg.program", trap)
    return ("show", "--no-patch", "--format=%ct", "HEAD")


def a_program_for_signatures_of_ssh(folder: Path, trap: str) -> tuple[str, ...]:
    signed(folder, "SSH")
    git(folder, "config", "gpg.ssh.program", trap)
    git(folder, "config", "gpg.ssh.allowedSignersFile", "conda-forge.yml")
    return ("show", "--no-patch", "--format=%ct", "HEAD")


def a_program_that_makes_texts(folder: Path, trap: str) -> tuple[str, ...]:
    attributes(folder, "*.yaml diff=x\n")
    git(folder, "config", "diff.x.textconv", trap)
    return ("show", "HEAD~1")


def a_program_that_compares(folder: Path, trap: str) -> tuple[str, ...]:
    git(folder, "config", "diff.external", trap)
    return ("diff", "HEAD~1")


def a_program_that_compares_one_kind(folder: Path, trap: str) -> tuple[str, ...]:
    attributes(folder, "*.yaml diff=x\n")
    git(folder, "config", "diff.x.command", trap)
    return ("diff", "main")


def missing_objects_by_a_command(folder: Path, trap: str) -> tuple[str, ...]:
    return promisor(folder, remote__p__url=f"ext::{trap}", protocol__ext__allow="always")


def missing_objects_by_ssh(folder: Path, trap: str) -> tuple[str, ...]:
    return promisor(folder, remote__p__url="ssh://nowhere/x", core__sshCommand=trap)


def missing_objects_by_a_program_of_the_server(folder: Path, trap: str) -> tuple[str, ...]:
    return promisor(folder, remote__p__url=str(folder), remote__p__uploadpack=trap)


def missing_objects_by_a_proxy(folder: Path, trap: str) -> tuple[str, ...]:
    return promisor(folder, remote__p__url="git://nowhere.invalid/x", core__gitProxy=trap)


def missing_objects_by_another_address(folder: Path, trap: str) -> tuple[str, ...]:
    settings = {"remote__p__url": "https://nowhere.invalid/x", "protocol__ext__allow": "always"}
    git(folder, "config", f"url.ext::{trap} .insteadOf", "https:")
    return promisor(folder, **settings)


TRAPS: list[Trap] = [
    a_filter_on_the_way_out,
    a_filter_on_the_way_in,
    a_filter_that_is_a_process,
    a_filter_by_attributes_of_the_repository,
    a_monitor,
    a_monitor_in_an_included_file,
    a_monitor_of_the_work_tree,
    a_monitor_of_a_submodule,
    a_hook_for_the_index,
    a_hook_in_a_folder_of_the_feedstock,
    a_program_for_signatures,
    a_program_for_signatures_of_ssh,
    a_program_that_makes_texts,
    a_program_that_compares,
    a_program_that_compares_one_kind,
    missing_objects_by_a_command,
    missing_objects_by_ssh,
    missing_objects_by_a_program_of_the_server,
    missing_objects_by_a_proxy,
    missing_objects_by_another_address,
]


@pytest.mark.parametrize("lay", TRAPS, ids=lambda lay: lay.__name__)
def test_nothing_of_a_repository_runs_in_what_reads(lay: Trap, feedstock: Path, trap: str, tmp_path: Path) -> None:
    words = lay(feedstock, trap)
    ran = tmp_path / "ran"
    read(feedstock)
    assert not ran.exists()
    subprocess.run(["git", "-C", str(feedstock), *words], capture_output=True, timeout=20, check=False)
    assert ran.exists(), "the trap is broken"


#: More settings that name a program, the commands that spring them, and what these are given: `T` is the trap.
#: Where `pty` comes first, git prints to a terminal.
PROGRAMS: dict[str, tuple[dict[str, str], str, str]] = {
    "core.askPass": ({"core.askPass": "T"}, "credential fill", "protocol=https\nhost=x\n"),
    "credential.helper": ({"credential.helper": "!T"}, "credential fill", "protocol=https\nhost=x\n"),
    "credential.URL.helper": ({"credential.https://x.helper": "!T"}, "credential fill", "protocol=https\nhost=x\n"),
    "core.editor": ({"core.editor": "T"}, "commit --allow-empty", ""),
    "sequence.editor": ({"sequence.editor": "T"}, "rebase -i HEAD~1", ""),
    "core.pager": ({"core.pager": "T"}, "pty log", ""),
    "pager.ls-tree": ({"pager.ls-tree": "T"}, "pty ls-tree HEAD", ""),
    "pager.for-each-ref": ({"pager.for-each-ref": "T"}, "pty for-each-ref", ""),
    "alias": ({"alias.mine": "!T", "alias.ls-tree": "!T", "alias.rev-parse": "!T"}, "mine", ""),
    "commit.gpgSign": ({"commit.gpgSign": "true", "gpg.program": "T"}, "commit --allow-empty -m x", ""),
    "gpg.x509.program": (
        {"commit.gpgSign": "true", "gpg.format": "x509", "gpg.x509.program": "T"},
        "commit --allow-empty -m x",
        "",
    ),
    "gpg.ssh.defaultKeyCommand": (
        {"commit.gpgSign": "true", "gpg.format": "ssh", "gpg.ssh.defaultKeyCommand": "T"},
        "commit --allow-empty -m x",
        "",
    ),
    "trailer.command": ({"trailer.x.command": "T", "trailer.x.ifMissing": "add"}, "interpret-trailers", "a\n\nb\n"),
    "trailer.cmd": ({"trailer.x.cmd": "T"}, "interpret-trailers --trailer x=1", "a\n\nb\n"),
    "tar.command": ({"tar.x.command": "T"}, "archive --format=x HEAD", ""),
    "diff.wordRegex and textconv": ({"diff.x.textconv": "T", "diff.x.cachetextconv": "true"}, "show HEAD", ""),
    "difftool.cmd": ({"difftool.x.cmd": "T", "diff.tool": "x"}, "difftool --no-prompt HEAD~1", ""),
    "merge.driver": ({"merge.x.driver": "T"}, "merge -m x other", ""),
    "rebase by a driver": ({"merge.x.driver": "T"}, "cherry-pick other", ""),
    "submodule.update": (
        {"submodule.sub.update": "!T", "submodule.sub.url": "./sub"},
        "submodule update --init --force",
        "",
    ),
    "core.alternateRefsCommand": ({"core.alternateRefsCommand": "T"}, "rev-list --alternate-refs", ""),
    "remote.vcs": ({"remote.p.vcs": "trap", "remote.p.url": "x"}, "ls-remote p", ""),
    "remote.uploadpack": ({"remote.p.uploadpack": "T", "remote.p.url": "."}, "ls-remote p", ""),
    "remote.receivepack": ({"remote.p.receivepack": "T", "remote.p.url": "."}, "push p HEAD:x", ""),
    "url.insteadOf": ({"url.ext::T .insteadOf": "x:", "protocol.ext.allow": "always"}, "ls-remote x:y", ""),
    "protocol.allow": ({"protocol.allow": "always", "remote.p.url": "ext::T"}, "fetch p", ""),
    "fetch.recurseSubmodules": (
        {"fetch.recurseSubmodules": "true", "protocol.ext.allow": "always", "remote.p.url": "ext::T"},
        "fetch p",
        "",
    ),
    "core.attributesFile": (
        {"core.attributesFile": ".hidden", "filter.y.smudge": "T", "filter.y.clean": "T"},
        "archive HEAD",
        "",
    ),
    "core.hooksPath": ({"core.hooksPath": "hooks"}, "commit --allow-empty -m x", ""),
    "web.browser": ({"web.browser": "x", "browser.x.cmd": "T"}, "web--browse README", ""),
    "includeIf.gitdir": ({"includeIf.gitdir:**.path": "../.settings"}, "status", ""),
    "core.fsmonitor of a version": ({"core.fsmonitor": "T", "core.fsmonitorHookVersion": "1"}, "status", ""),
}


@pytest.fixture
def with_programs(feedstock: Path, trap: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A feedstock in which settings can name programs: attributes, a submodule, another branch, hooks, an alternate."""
    monkeypatch.setenv("PATH", f"{Path(trap).parent / 'bin'}:{os.environ['PATH']}")
    for name in ("ASKPASS", "EDITOR", "SEQUENCE_EDITOR", "PAGER"):
        monkeypatch.delenv(f"GIT_{name}", raising=False)
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("SSH_ASKPASS", raising=False)
    hook(Path(trap).parent / "bin", "git-remote-trap", trap)
    hook(feedstock / "hooks", "pre-commit", trap)
    (feedstock / "sub").mkdir()
    (feedstock / "sub/file").write_text("")
    committed(feedstock / "sub")
    git(feedstock, "submodule", "--quiet", "add", "./sub", "sub")
    (feedstock / "README").write_text("")
    (feedstock / ".hidden").write_text("* filter=y\n")
    (feedstock / ".settings").write_text(f"[core]\n\tfsmonitor = {trap}\n")
    attributes(feedstock, "*.yaml diff=x merge=x\n")
    git(feedstock, "checkout", "-q", "-b", "other", "main")
    (feedstock / "recipe/meta.yaml").write_text(RECIPE.replace("1", "7"))
    attributes(feedstock, "*.yaml diff=x merge=x\n")
    git(feedstock, "checkout", "-q", "mine")
    shutil.copytree(feedstock / ".git", Path(trap).parent / "lent")
    (feedstock / ".git/objects/info/alternates").write_text(f"{Path(trap).parent}/lent/objects\n")
    (feedstock / "recipe/meta.yaml").write_text(RECIPE.replace("1", "2") + "\n")
    committed(feedstock, "third")
    return feedstock


def sprung(folder: Path, words: str, stdin: str) -> None:
    """Plain git runs the words; it may fail."""
    import pty

    terminal, stdout = pty.openpty() if words.startswith("pty ") else (0, subprocess.DEVNULL)
    command = [
        "git",
        *(word for pair in author_settings() for word in ("-c", pair)),
        *words.removeprefix("pty ").split(),
    ]
    quiet = {**os.environ, "GIT_TERMINAL_PROMPT": "0", "GIT_CONFIG_GLOBAL": os.devnull}
    run = subprocess.run
    run(command, cwd=folder, env=quiet, input=stdin, text=True, stdout=stdout, stderr=stdout, timeout=20, check=False)
    if terminal:
        os.close(terminal)
        os.close(stdout)


def author_settings() -> tuple[str, ...]:
    return ("user.name=a", "user.email=a@x", "protocol.file.allow=always")


def program_set(folder: Path, settings: dict[str, str], trap: str) -> None:
    for key, value in settings.items():
        git(folder, "config", key.replace("T", trap) if "T" in key else key, re.sub(r"\bT\b", trap, value))


@pytest.mark.parametrize("row", PROGRAMS)
def test_no_program_of_a_setting_runs_in_what_reads(row: str, with_programs: Path, trap: str, tmp_path: Path) -> None:
    settings, words, stdin = PROGRAMS[row]
    program_set(with_programs, settings, trap)
    read(with_programs)
    assert not (tmp_path / "ran").exists()
    sprung(with_programs, words, stdin)
    assert (tmp_path / "ran").exists(), "the trap is broken"


def test_no_program_of_any_setting_runs_in_a_command_that_reads(
    with_programs: Path, trap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of them at once, in every command that asks git."""
    for settings, _, _ in PROGRAMS.values():
        program_set(with_programs, settings, trap)
    monkeypatch.setenv("HOME", str(tmp_path))
    none = ("--pinning", "none", "--smithy", "none")
    for words in (
        ("diff", "main"),
        ("diff", "main", "mine"),
        ("review", "main", "--no-rehearse", *none),
        ("review", "--no-rehearse", *none),
        ("lint", "--pinning", "none"),
        ("rerender", *none, "--check"),
        ("outputs",),
        ("plan",),
        ("status",),
        ("build", "--list"),
        ("build", "--all"),
        ("import",),
        ("init", with_programs.as_uri(), "--output", str(tmp_path / "new")),
        ("many", "index", str(tmp_path)),
    ):
        ran = command.here(*words, folder=with_programs)
        assert "No such option" not in ran.stderr, ran.stderr
        assert not (tmp_path / "ran").exists(), words


def test_a_folder_that_looks_like_a_repository_is_none(feedstock: Path, trap: str, tmp_path: Path) -> None:
    """A clone can hold a repository without a work tree, whose filters `git archive` would run in that folder."""
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "file").write_text("")
    (inner / ".gitattributes").write_text("* filter=x\n")
    committed(inner)
    git(inner, "clone", "-q", "--bare", ".", str(feedstock / "sub"))
    git(feedstock / "sub", "config", "filter.x.smudge", trap)
    committed(feedstock, "with a folder")
    with checked_out(feedstock / "sub", "HEAD") as folder:
        assert (folder / "HEAD").is_file(), "these are the files of the clone"
    assert commit_of(feedstock / "sub") == git(feedstock, "rev-parse", "HEAD").strip()
    (feedstock / ".git").rename(tmp_path / "moved")
    assert commit_of(feedstock / "sub") == ""
    assert not (tmp_path / "ran").exists()
    subprocess.run(["git", "-C", str(feedstock / "sub"), "archive", "HEAD"], capture_output=True, check=False)
    assert (tmp_path / "ran").exists(), "the trap is broken"


def test_a_program_of_the_feedstock_is_not_git(
    feedstock: Path, trap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (feedstock / "git").symlink_to(trap)
    monkeypatch.chdir(feedstock)
    monkeypatch.setenv("PATH", f".:{os.environ['PATH']}")
    read(feedstock)
    assert not (tmp_path / "ran").exists()


def test_variables_lead_to_no_other_repository(
    feedstock: Path, trap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = commit_of(feedstock)
    (tmp_path / "other").mkdir()
    (tmp_path / "other/file").write_text("")
    committed(tmp_path / "other")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other/.git"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", trap)
    assert commit_of(feedstock) == expected
    assert not (tmp_path / "ran").exists()


def test_a_project_is_read_without_the_filters_that_the_user_has(
    feedstock: Path, trap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attributes(feedstock, "* filter=x\n")
    (tmp_path / "settings").write_text(f'[filter "x"]\n\tsmudge = {trap}\n')
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "settings"))
    with project_at(feedstock.as_uri()) as (folder, _, _):
        assert (folder / "conda-forge.yml").read_text() == "{}\n"
    assert not (tmp_path / "ran").exists()
    subprocess.run(["git", "clone", "-q", str(feedstock), str(tmp_path / "clone")], capture_output=True, check=False)
    assert (tmp_path / "ran").exists(), "the trap is broken"


def test_an_address_of_a_program_is_not_cloned(trap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_ALLOW_PROTOCOL", "ext")
    with pytest.raises(FeedstockError, match="cannot be cloned"), project_at(f"ext::{trap} git@x"):
        pass
    assert not (tmp_path / "ran").exists()


# What a commit is.


def files_of(folder: Path, revision: str) -> dict[str, bytes]:
    with checked_out(folder, revision) as found:
        return {
            path.relative_to(found).as_posix(): path.read_bytes() for path in sorted(found.rglob("*")) if path.is_file()
        }


@pytest.mark.parametrize(
    "line", ["export-ignore", "export-subst", "ident", "eol=crlf", "working-tree-encoding=UTF-16", "-diff -text binary"]
)
def test_attributes_hide_and_change_nothing(line: str, feedstock: Path) -> None:
    (feedstock / ".gitattributes").write_text(f"* {line}\n")
    (feedstock / "recipe/new.yaml").write_bytes(b"$Format:%H$ $Id$\n")
    for name in (".gitattributes", "recipe/new.yaml"):
        digest = git(feedstock, "hash-object", "-w", "--no-filters", name).strip()
        git(feedstock, "update-index", "--add", "--cacheinfo", f"100644,{digest},{name}")
    commit = git(feedstock, "commit-tree", "-m", "attributes", git(feedstock, "write-tree").strip()).strip()
    assert files_of(feedstock, commit) == {
        ".gitattributes": f"* {line}\n".encode(),
        "conda-forge.yml": b"{}\n",
        "recipe/meta.yaml": RECIPE.replace("1", "2").encode(),
        "recipe/new.yaml": b"$Format:%H$ $Id$\n",
    }


def test_a_replaced_commit_is_as_it_was_written(feedstock: Path) -> None:
    git(feedstock, "replace", "main", "HEAD")
    assert files_of(feedstock, "main")["recipe/meta.yaml"] == RECIPE.encode()


def test_a_grafted_history_is_as_it_was_written(feedstock: Path) -> None:
    base = git(feedstock, "rev-parse", "--short=12", "main").strip()
    (feedstock / ".git/info").mkdir(exist_ok=True)
    (feedstock / ".git/info/grafts").write_text(git(feedstock, "rev-parse", "HEAD"))
    assert branch_base(feedstock) == base


def test_a_work_tree_elsewhere_is_not_looked_at(feedstock: Path, tmp_path: Path) -> None:
    git(feedstock, "config", "core.worktree", str(tmp_path))
    assert commit_of(feedstock) == git(feedstock, "rev-parse", "HEAD").strip()


def test_a_content_of_another_hash_is_refused(feedstock: Path) -> None:
    digest = git(feedstock, "rev-parse", "HEAD:recipe/meta.yaml").strip()
    path = feedstock / ".git/objects" / digest[:2] / digest[2:]
    path.chmod(0o644)
    path.write_bytes(zlib.compress(b"blob %d\0" % len(RECIPE) + RECIPE.replace("1", "9").encode()))
    with pytest.raises(FeedstockError, match=r"git does not have the content of recipe/meta\.yaml"):
        files_of(feedstock, "HEAD")


def test_a_folder_of_another_hash_is_refused(feedstock: Path) -> None:
    """Git checks the hash of a commit's first tree, and of none below it."""
    digest, other = (git(feedstock, "rev-parse", f"{revision}:recipe").strip() for revision in ("main", "HEAD"))
    command = ["git", "-C", str(feedstock), "cat-file", "tree", other]
    content = subprocess.run(command, capture_output=True, check=True).stdout
    path = feedstock / ".git/objects" / digest[:2] / digest[2:]
    path.chmod(0o644)
    path.write_bytes(zlib.compress(b"tree %d\0" % len(content) + content))
    assert git(feedstock, "show", "main:recipe/meta.yaml") == RECIPE.replace("1", "2"), "the trap is broken"
    with pytest.raises(FeedstockError, match="git does not have the content of recipe"):
        files_of(feedstock, "main")


def test_sizes_are_known_before_anything_is_written(feedstock: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """60 names of one content take the repository no more than one."""
    for number in range(60):
        (feedstock / f"{number}.bin").write_bytes(b"\0" * 100_000)
    committed(feedstock, "many")
    monkeypatch.setattr(module, "_LARGEST", 5_000_000)
    no_blob_is_read(monkeypatch)
    with pytest.raises(InputError, match="its files have more than"):
        files_of(feedstock, "HEAD")


def test_a_commit_of_too_many_files_or_folders_is_refused_before_it_is_read(
    feedstock: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_blob_is_read(monkeypatch)
    digest = git(feedstock, "rev-parse", "HEAD:conda-forge.yml").strip()
    many = tree_of(feedstock, *(("100644", f"{number:05}", digest) for number in range(20_001)))
    with pytest.raises(InputError, match="it has more than 20000 files"):
        files_of(feedstock, many)
    deep = tree_of(feedstock, ("100644", "d/" * 1500 + "x", digest))
    with pytest.raises(InputError, match="is in more than 100 folders"):
        files_of(feedstock, deep)


def no_blob_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    contents = module._contents
    trees = lambda place, kind, of: contents(place, kind, of) if kind == "tree" else pytest.fail("read")  # noqa: E731
    monkeypatch.setattr(module, "_contents", trees)


def tree_of(folder: Path, *entries: tuple[str, str, str]) -> str:
    """A commit of a tree with entries that git would not write: mode, name, digest."""
    content = b"".join(f"{mode} {name}".encode() + b"\0" + bytes.fromhex(digest) for mode, name, digest in entries)
    words = ["git", "-C", str(folder), "hash-object", "--literally", "-t", "tree", "-w", "--stdin"]
    tree = subprocess.run(words, input=content, capture_output=True, check=True).stdout.decode().strip()
    return git(folder, "commit-tree", "-m", "hostile", tree).strip()


@pytest.mark.parametrize(
    "names",
    [
        [("100644", "..")],
        [("100644", "../x")],
        [("100644", "a/../../x")],
        [("100644", "/tmp/x")],
        [("100644", ".")],
        [("100644", ".git")],
        [("100644", ".GIT/config")],
        [("100644", ".git /config")],
        [("100644", "recipe/.git. .")],
        [("100644", "GIT~1/config")],
        [("100644", ".g\u200cit/config")],
        [("160000", ".git\ufeff")],
        [("100644", ".git::$INDEX_ALLOCATION/config")],
        [("100644", ".git\\config")],
        [("100644", "a"), ("100644", "a")],
        [("100644", "a"), ("100644", "a/b")],
        [("120000", "a"), ("100644", "a/b")],
        [("120000", "a"), ("100644", "a")],
        [("160000", "a"), ("100644", "a")],
        [("100644", "x" * 300)],
    ],
    ids=str,
)
def test_names_that_lead_elsewhere_or_mean_two_files_are_refused(names: list[tuple[str, str]], feedstock: Path) -> None:
    digest = git(feedstock, "rev-parse", "HEAD:conda-forge.yml").strip()
    commit = tree_of(feedstock, *((mode, name, digest) for mode, name in names))
    with pytest.raises(InputError, match=f"commit '{commit}' is refused: "):
        files_of(feedstock, commit)


@pytest.mark.parametrize("ref", ["refs/tags/origin/main", "refs/heads/origin/main", "refs/origin/main"])
def test_a_name_of_two_commits_is_refused(ref: str, feedstock: Path) -> None:
    git(feedstock, "update-ref", "refs/remotes/origin/main", "main")
    assert files_of(feedstock, "origin/main")["recipe/meta.yaml"] == RECIPE.encode()
    git(feedstock, "update-ref", ref, "HEAD")
    for revision in ("origin/main", "origin/main^0", "origin/main@{0}"):
        with pytest.raises(InputError, match=f"means more than one commit: .*{ref}"):
            files_of(feedstock, revision)
    assert files_of(feedstock, "refs/remotes/origin/main")["recipe/meta.yaml"] == RECIPE.encode()
    assert branch_base(feedstock) == git(feedstock, "rev-parse", "--short=12", "main").strip()


@pytest.mark.parametrize("kind", ["tags", "heads"])
def test_a_full_name_is_that_of_one_branch(kind: str, feedstock: Path) -> None:
    """A clone brings the tags of a stranger, and git takes this one for the maintainers' branch that is missing."""
    base = git(feedstock, "rev-parse", "--short=12", "main").strip()
    git(feedstock, "update-ref", f"refs/{kind}/refs/remotes/upstream/main", "HEAD")
    assert git(feedstock, "rev-parse", "refs/remotes/upstream/main") == git(feedstock, "rev-parse", "HEAD")
    assert branch_base(feedstock) == base
    with pytest.raises(InputError, match="is not a commit"):
        files_of(feedstock, "refs/remotes/upstream/main")


def test_a_file_named_like_a_branch_is_not_taken_for_it(feedstock: Path) -> None:
    (feedstock / ".git/main").write_text(git(feedstock, "rev-parse", "HEAD"))
    assert files_of(feedstock, "main")["recipe/meta.yaml"] == RECIPE.encode()
    assert (
        files_of(feedstock, "main@{0}")
        == files_of(feedstock, "refs/heads/main^{commit}")
        == files_of(feedstock, "main")
    )
    assert files_of(feedstock, "mine~1") == files_of(feedstock, "HEAD^") == files_of(feedstock, "main")


def test_an_ignored_file_of_the_recipe_is_a_difference(feedstock: Path) -> None:
    (feedstock / ".git/info").mkdir(exist_ok=True)
    (feedstock / ".git/info/exclude").write_text("*.sh\n")
    (feedstock / "other.sh").write_text("")
    assert not commit_of(feedstock).endswith("+")
    (feedstock / "recipe/build.sh").write_text("")
    assert commit_of(feedstock).endswith("+")


def test_a_file_that_git_never_lists_is_a_difference(feedstock: Path) -> None:
    (feedstock / "recipe/.git").write_text("echo what a build script runs\n")
    assert git(feedstock, "status", "--porcelain", "--ignored") == "", "the trap is broken"
    assert commit_of(feedstock).endswith("+")


#: Forms of an index that let git pass over files, by what git is called with to make one.
INDEXES = {
    "fsmonitor": (("config", "core.fsmonitor", "TRAP"), ("update-index", "--fsmonitor"), ("status",)),
    "untracked cache": (("update-index", "--force-untracked-cache"), ("status",)),
    "split": (("update-index", "--split-index"),),
    "sparse": (("sparse-checkout", "set", "--cone", "--sparse-index", "other"),),
    "assume unchanged": (("update-index", "--assume-unchanged", "recipe/meta.yaml"),),
    "skip work tree": (("update-index", "--skip-worktree", "recipe/meta.yaml"),),
}


@pytest.mark.parametrize("form", INDEXES)
def test_no_form_of_an_index_hides_a_file_or_runs_a_program(
    form: str, feedstock: Path, trap: str, tmp_path: Path
) -> None:
    recipe = feedstock / "recipe/meta.yaml"
    text, at = recipe.read_text(), recipe.stat()
    for words in INDEXES[form]:
        git(feedstock, *(trap if word == "TRAP" else word for word in words))
    assert (tmp_path / "ran").exists() is (form == "fsmonitor"), "the trap is broken"
    (tmp_path / "ran").unlink(missing_ok=True)
    recipe.parent.mkdir(exist_ok=True)
    recipe.write_text(text)
    assert commit_of(feedstock) == git(feedstock, "rev-parse", "HEAD").strip()
    assert files_of(feedstock, "HEAD").keys() == {"conda-forge.yml", "recipe/meta.yaml"}
    recipe.write_text(text.replace("2", "9"))
    os.utime(recipe, ns=(at.st_atime_ns, at.st_mtime_ns))
    assert commit_of(feedstock).endswith("+")
    recipe.write_text(text)
    for name in ("recipe/build.sh", "new", "other/new"):
        (feedstock / name).parent.mkdir(exist_ok=True)
        (feedstock / name).write_text("")
        assert commit_of(feedstock).endswith("+"), name
        (feedstock / name).unlink()
    assert changed(feedstock)
    assert files_of(feedstock, "HEAD")["recipe/meta.yaml"] == RECIPE.replace("1", "3").encode()
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "name",
    [
        *(".git", ".git/HEAD", ".git/config", ".git/index", ".git/packed-refs", ".git/shallow", ".git/commondir"),
        *(".git/info/exclude", ".git/objects/info/alternates", ".gitignore", "recipe/.gitignore", "a/.gitignore"),
        *(".git/refs/heads/main", ".git/refs/tags/a/b", ".git/logs/HEAD", ".git/logs/refs/heads/main"),
        *(".git/objects/pack/pack-1.idx", ".git/objects/00/11", ".git/objects/info/commit-graph", ".git/FETCH_HEAD"),
        ".git/sharedindex.0123",
    ],
)
def test_git_waits_for_no_fifo(name: str, feedstock: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = feedstock / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        path.rename(feedstock.parent / "moved")
    os.mkfifo(path)
    monkeypatch.setattr(module, "_program", lambda _: pytest.fail("git was run"))
    assert commit_of(feedstock) == ""


#: Settings with the name of a file that git reads, which is a FIFO or without end.
FILES = ("core.excludesFile", "core.attributesFile", "include.path", "includeIf.onbranch:mine.path", "mailmap.file")


@pytest.mark.parametrize("setting", [*FILES, "core.worktree", "commit.template", "blame.ignoreRevsFile"])
@pytest.mark.parametrize("kind", ["fifo", "zero"])
def test_a_setting_names_no_file_at_which_git_waits(
    setting: str, kind: str, feedstock: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commands that read take no setting of a repository, so git has its answers before the limit of this test."""
    expected = commit_of(feedstock)
    os.mkfifo(tmp_path / "fifo")
    section, _, key = setting.rpartition(".")
    name, _, rest = section.partition(".")
    with (feedstock / ".git/config").open("a") as config:
        head = f'{name} "{rest}"' if rest else name
        config.write(f"[{head}]\n\t{key} = {tmp_path / 'fifo' if kind == 'fifo' else '/dev/zero'}\n")
    monkeypatch.setattr(module, "_SECONDS", 20.0)
    assert commit_of(feedstock) == expected
    assert left_out(feedstock, [feedstock / "recipe/meta.yaml"]) == ()
    assert files_of(feedstock, "main")["recipe/meta.yaml"] == RECIPE.encode()
    assert epoch_of(feedstock, {}) is not None


def test_folders_that_lend_objects_are_looked_through(feedstock: Path, tmp_path: Path) -> None:
    """Each names others: a FIFO among those, a circle, and more than any clone has."""
    lent = feedstock / ".git/objects/info/alternates"
    lent.parent.mkdir(exist_ok=True)
    lent.write_text("# a comment\n../objects\n../../../objects\n")
    (tmp_path / "objects/info").mkdir(parents=True)
    assert commit_of(feedstock)
    os.mkfifo(tmp_path / "objects/info/alternates")
    with pytest.raises(FeedstockError, match="is not a file"):
        files_of(feedstock, "main")
    lent.write_text("".join(f"{tmp_path}/{number}\n" for number in range(101)))
    with pytest.raises(WorkError, match="takes objects from more than 100 folders"):
        files_of(feedstock, "main")


def test_files_of_any_size_are_not_read(feedstock: Path) -> None:
    for name in ("config", "packed-refs", "index"):
        kept = (feedstock / ".git" / name).read_bytes() if (feedstock / ".git" / name).exists() else b""
        with (feedstock / ".git" / name).open("ab") as file:
            file.truncate(1 << 30)
        with pytest.raises(FeedstockError, match="is larger than"):
            files_of(feedstock, "main")
        (feedstock / ".git" / name).write_bytes(kept)
    assert files_of(feedstock, "main")


def test_a_branch_that_is_named_like_a_commit_is_refused(feedstock: Path) -> None:
    digits = git(feedstock, "rev-parse", "main").strip()[:12]
    git(feedstock, "update-ref", f"refs/heads/{digits}", "HEAD")
    with pytest.raises(InputError, match="means more than one commit"):
        files_of(feedstock, digits)


def test_a_folder_named_like_a_branch_is_not_taken_for_it(feedstock: Path) -> None:
    git(feedstock, "update-ref", "refs/remotes/origin/main", "main")
    (feedstock / ".ci_support").mkdir()
    (feedstock / ".ci_support/linux_64_.yaml").write_text("target_platform: [linux-64]\n")
    for name in ("recipe", ".ci_support"):
        shutil.copytree(feedstock / name, feedstock / "origin/main" / name)
    against = ("diff", "origin/main"), ("diff", "--folders", "origin/main"), ("review", "origin/main", "--no-rehearse")
    shown = [command.run(command.tool(*words), feedstock).stdout for words in against]
    assert ["linux_64_" in each for each in shown] == [True, False, True]
    assert "This changes no package" in shown[1]


# What `--commit` runs: the hooks and filters of the user's clone, and nothing else.


@pytest.mark.parametrize(
    "lay",
    [
        *(a_monitor, a_monitor_in_an_included_file, a_monitor_of_a_submodule),
        *(a_program_that_compares, a_program_that_makes_texts),
    ],
)
def test_a_commit_runs_no_program_but_hooks_and_filters(
    lay: Trap, feedstock: Path, trap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay(feedstock, trap)
    git(feedstock, "config", "commit.verbose", "true")
    for name, value in author().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("GIT_EDITOR", "true")
    assert changed(feedstock, edit=True)
    assert not (tmp_path / "ran").exists()
    assert git(feedstock, "log", "-1", "--format=%s").strip() == "changed"


#: Those that `git commit` runs too.
COMMITTING = {
    "commit.gpgSign",
    "gpg.x509.program",
    "gpg.ssh.defaultKeyCommand",
    "core.hooksPath",
    "core.attributesFile",
}


@pytest.mark.parametrize("row", [row for row in PROGRAMS if row not in COMMITTING])
def test_no_program_of_another_setting_runs_in_a_commit(
    row: str, with_programs: Path, trap: str, tmp_path: Path
) -> None:
    program_set(with_programs, PROGRAMS[row][0], trap)
    assert changed(with_programs)
    assert not (tmp_path / "ran").exists()
    assert git(with_programs, "log", "-1", "--format=%s").strip() == "changed"


def test_a_commit_runs_the_hooks_and_filters_of_the_clone(feedstock: Path, trap: str, tmp_path: Path) -> None:
    attributes(feedstock, "recipe/* filter=x\n")
    git(feedstock, "config", "filter.x.clean", f"{trap}; cat")
    hook(feedstock / ".git/hooks", "pre-commit", trap)
    assert changed(feedstock)
    assert (tmp_path / "ran").read_text().count("ran") >= 2


def test_a_commit_is_made_in_no_other_repository(feedstock: Path, tmp_path: Path) -> None:
    inner = feedstock / "inner"
    (inner / "recipe").mkdir(parents=True)
    (inner / ".git").mkdir()
    with pytest.raises(WorkError, match="not a git repository"):
        changed(inner)
    assert git(feedstock, "log", "-1", "--format=%s").strip() == "second"


def test_one_module_runs_git() -> None:
    starts = re.compile(r"""[\[(]\s*["']git["'],|which\(["']git["']""")
    modules = {path.relative_to(ROOT).as_posix() for path in (ROOT / "feedstock_tools").rglob("*.py")}
    found = {name for name in modules if starts.search((ROOT / name).read_text(encoding="utf-8"))}
    assert found == {"feedstock_tools/feedstock/git.py"}


def author() -> dict[str, str]:
    return {f"GIT_{who}_{what}": "a@x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def changed(folder: Path, *, edit: bool = False) -> bool:
    """Whether a change of the recipe was committed."""
    repository = find_repository(folder, {**os.environ, **author()})
    changes = Changes(folder, {folder / "recipe/meta.yaml": RECIPE.replace("1", "3").encode()})
    changes.apply()
    return repository.commit(changes, "changed", edit=edit)
