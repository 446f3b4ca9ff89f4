"""Git: the commit of a feedstock, where its branch left the main one, the files of a commit, patches, and `--commit`.

A stranger may have made the repository, and git has many ways to start a program, or to wait. So what reads names the
repository itself and finds none inside a stranger's folder, lends its objects and names to one of our own that has no
settings, opens no connection and no FIFO, and reads objects, to which attributes, filters and replacements do not
apply, and which have the hashes that they are named by. `--commit` runs the hooks, filters and signing program of the
user's clone, as `git commit` does (docs/untrusted-input.md).
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast
from urllib.parse import unquote, urlsplit

from feedstock_tools.bounds.limits import released
from feedstock_tools.errors import FeedstockError, InputError, WorkError
from feedstock_tools.files.locks import named_wait
from feedstock_tools.files.temporary import system_folder, temporary_folder
from feedstock_tools.processes import program_of_the_user
from feedstock_tools.reading import CI_SUPPORT, is_below, is_inside, read_bytes, read_up_to
from feedstock_tools.wording import without_unseen

if TYPE_CHECKING:
    import subprocess

    from feedstock_tools.files.changes import Changes

#: The time limit of a question to git, in seconds, and those of a clone and of changes, since hooks may run.
_SECONDS = 60.0
_LONGEST_CLONE = 600.0
_LONGEST_COMMIT = 3600.0
#: Bytes of all files of a commit; no feedstock of conda-forge has 100 MB. Of a project, only files that are no larger
#: than the second are read, as of an archive (channel/package_index.py).
_LARGEST = 256 << 20
_LARGEST_TEXT = 1 << 20
#: Files of a commit of a feedstock, and folders that one is in.
_MOST_FILES = 20_000
_DEEPEST = 100
#: Bytes of an answer, such as the names of 100,000 files.
_LONGEST_ANSWER = 32 << 20
_LONGEST_REASON = 4000
_BRANCH = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./+-]{0,200}")
_REVISION = re.compile(r"[A-Za-z0-9_./@{}^~+-]{1,250}")
#: What file systems of macOS and Windows take for `.git`, by what is seen of a name.
_LIKE_GIT = re.compile(r"(\.git|git~[0-9]+)[ .]*([:\\].*)?", re.IGNORECASE | re.DOTALL)
#: The main branch of a feedstock, as the clones of maintainers know it.
_MAIN = tuple(
    f"refs/{place}/{name}" for place in ("remotes/upstream", "remotes/origin", "heads") for name in ("main", "master")
)
#: Where a name without `refs/` may be.
_PLACES = ("refs/{}", "refs/tags/{}", "refs/heads/{}", "refs/remotes/{}", "refs/remotes/{}/HEAD")
#: Settings that come before those of the repository: no program watches the folder, no folder inside of it is taken
#: for a repository, no index answers for objects, and nothing goes on in the background.
_SETTINGS = {
    "core.fsmonitor": "false",
    "core.commitGraph": "false",
    "core.multiPackIndex": "false",
    "safe.bareRepository": "explicit",
    "gc.auto": "0",
    "maintenance.auto": "false",
}
#: The same for what reads, in variables. A clone that lacks objects does not fetch them.
_READING = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_GRAFT_FILE": os.devnull,
    "GIT_OPTIONAL_LOCKS": "0",
}
#: What git reads of a repository, besides `HEAD`: of a work tree's own part, and of what work trees share.
_OF_WORK_TREE = ("index", "sharedindex.*", "logs/HEAD", "*_HEAD")
_SHARED = ("packed-refs", "shallow", "info/exclude", "logs/refs", "refs", "reftable", "objects")
#: What the settings of a repository say of its form, which git needs to know.
_FORMS = {"objectFormat": "sha256", "refStorage": "reftable"}
#: Repositories that lend objects to each other.
_MOST_LENDERS = 100
_LEADING = frozenset(
    f"GIT_{name}"
    for name in ("DIR", "WORK_TREE", "INDEX_FILE", "PREFIX", "COMMON_DIR", "NAMESPACE", "OBJECT_DIRECTORY")
)


@dataclass(frozen=True, slots=True)
class _Place:
    """A folder in the work tree of a repository, or a repository without one.

    Attributes:
        repository: what the work tree has of its own (`HEAD`, the index).
        shared: what all work trees of the repository share; most often the same folder.
        environment: leads git to a repository of our own with the objects and names of this one.
    """

    folder: Path
    top: Path
    repository: Path
    shared: Path
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Entry:
    """A file, link or submodule of a commit: its name in the folder, and its content's hash and size, if known."""

    name: str
    mode: int
    digest: str
    size: int | None


def commit_of(folder: Path) -> str:
    """The commit of the git repository that a folder is in, with `+` if the folder differs; empty without one."""
    try:
        with _opened(folder) as place:
            _refuse_what_waits(_ignoring(folder))
            commit = _commit(place, "HEAD")
            return commit and commit + ("+" if _differs(place, commit) else "")
    except FeedstockError:
        return ""


def tree_of(repository: Path) -> str:
    """The id of the files of a repository's last commit; the repository may be bare."""
    with _opened(repository, is_bare=True) as place:
        return _asked(place, "rev-parse", "--verify", "HEAD^{tree}").decode().strip()


@contextmanager
def small_files_of(repository: Path) -> Iterator[Path]:
    """A folder with the small files of a repository's last commit; removed afterwards. The repository may be bare."""
    with temporary_folder() as folder:
        with _opened(repository, is_bare=True) as place:
            _write(place, _small(place, _commit(place, "HEAD")), folder)
        yield folder


def address_of(folder: Path) -> str:
    """Where the feedstock of a folder comes from: the address of `upstream`, else of `origin`; empty without one."""
    try:
        with _opened(folder) as place:
            words = ("config", "--file", str(place.shared / "config"), "--no-includes", "--null", "--get-regexp")
            found = _asked(place, *words, r"^remote\.(upstream|origin)\.url$")
    except FeedstockError:
        return ""
    urls = dict(entry.decode(errors="replace").split("\n", 1) for entry in found.split(b"\0") if b"\n" in entry)
    return urls.get("remote.upstream.url", urls.get("remote.origin.url", ""))


def epoch_of(folder: Path, machine: Mapping[str, str]) -> int | None:
    """The time that packages of a feedstock hold, in seconds since 1970: that of its commit; None without one.

    Args:
        folder: the feedstock.
        machine: the environment, whose `SOURCE_DATE_EPOCH` comes first (reproducible-builds.org).
    """
    epoch = machine.get("SOURCE_DATE_EPOCH", "")
    if epoch.isascii() and epoch.isdigit():
        return int(epoch)
    try:
        with _opened(folder) as place:
            written = _asked(place, "cat-file", "commit", _commit(place, "HEAD") or "HEAD")
    except FeedstockError:
        return None
    found = re.search(rb"^committer .* (\d{1,15}) [+-]\d+$", written.partition(b"\n\n")[0], re.MULTILINE)
    return int(found[1]) if found else None


def branch_base(feedstock: Path) -> str:
    """The commit in which the present branch left the main one.

    That of the maintainers' repository (`upstream/main`), of the clone (`origin/main`) or here, whichever is found
    first; on the main branch itself, the last commit.

    Raises:
        InputError: it is not a repository, or has no main branch.
        WorkError: git is missing or fails.
    """
    hint = "Name the commit to compare with: feedstock-tools review BASE."
    with _opened(feedstock) as place:
        for name in _MAIN:
            if commit := _commit(place, name):
                with suppress(WorkError):  # they have no commit in common
                    return _asked(place, "merge-base", "HEAD", commit)[:12].decode()
    raise InputError("there is no commit in which this branch left a main one", path=feedstock, hint=hint)


def left_out(folder: Path, paths: Iterable[Path]) -> tuple[str, ...]:
    """Those of a folder's files that a `.gitignore` keeps out of its repository, by their path in it.

    conda-smithy's `.gitignore` admits only `recipe`, `.ci_support` and `conda-forge.yml`. Files that are in the
    repository already stay there. Where git does not answer, there are none.
    """
    names = [path.relative_to(folder).as_posix() for path in paths]
    try:
        _refuse_what_waits({folder / above / ".gitignore" for name in names for above in Path(name).parents})
        with _opened(folder) as place:
            found = _asked(place, "check-ignore", "-z", "--stdin", stdin=_listed(names))
    except FeedstockError:
        return ()
    return tuple(_names(found))


def applies(folder: Path, patch: bytes, strip: int, *, reverse: bool = False) -> bool:
    """Whether git would apply a patch to the files of a folder, which is in no repository, or take it back.

    Args:
        strip: how many folders at the beginning of the patch's paths do not count.
    """
    environment = _reading(GIT_CEILING_DIRECTORIES=str(folder.resolve().parent))
    words = ("apply", "--check", f"-p{strip}", *(("--reverse",) if reverse else ()))
    with _running(folder, words, environment, patch) as asked:
        read_up_to(asked.stdout, _LONGEST_ANSWER)
        return not asked.reason()


@contextmanager
def checked_out(feedstock: Path, revision: str) -> Iterator[Path]:
    """A folder with the files of a commit, branch or tag; removed afterwards. The repository stays as it is.

    Raises:
        InputError: the repository has no such revision, or it is not a repository; or the files of the commit are too
            many or too large, or lead out of the folder.
        WorkError: git is missing or fails.
    """
    if not _REVISION.fullmatch(revision) or revision.startswith("-"):
        raise InputError(f"'{revision}' is not a commit", path=feedstock)
    with temporary_folder() as folder:
        with _opened(feedstock) as place:
            commit = _commit(place, _in_full(place, revision))
            if not commit:
                hint = "To compare with a folder: review --folder, diff --folders." if Path(revision).is_dir() else None
                raise InputError(f"'{revision}' is not a commit", path=feedstock, hint=hint)
            try:
                entries = _entries(place, commit)
                if len(entries) > _MOST_FILES:
                    raise InputError(f"it has more than {_MOST_FILES} files")
                _write(place, entries, folder)
            except FeedstockError as error:
                message = f"commit '{revision}' is refused: {error.mistakes[0].message}"
                raise type(error)(message, path=feedstock) from error
        try:
            yield folder
        except FeedstockError as error:  # the folder is gone when a person reads this
            error.mistakes = tuple(
                replace(mistake, path=Path(f"{revision}:{mistake.path.relative_to(folder).as_posix()}"))
                if mistake.path is not None and mistake.path.is_relative_to(folder)
                else mistake
                for mistake in error.mistakes
            )
            raise


def has_branch(repository: Path, branch: str) -> bool:
    """Whether a repository has a branch of its own with this name; it may be bare."""
    with _opened(repository, is_bare=True) as place:
        return bool(_commit(place, f"refs/heads/{branch}"))


#: The content of a file and whether it may be run.
Content = tuple[bytes, bool]


def commit_on_branch(
    repository: Path, branch: str, files: Mapping[str, Content | None], message: str, environment: Mapping[str, str]
) -> str:
    """Commit changes to the files of a repository's last commit on a new branch, and give the commit.

    The branch appears with its commit or not at all. Work tree and index are not touched, no hook runs, nothing is
    signed. The repository may be bare.

    Args:
        files: by their names in the repository; None deletes a file.
        environment: says, with the user's settings of git, who commits.

    Raises:
        InputError: the branch exists, or has no valid name; or git does not know who commits.
        WorkError: git is missing or fails.
    """
    if not _BRANCH.fullmatch(branch):
        raise InputError(f"'{branch}' is not a name of a branch", path=repository)
    with _opened(repository, is_bare=True) as place:
        if _commit(place, f"refs/heads/{branch}"):
            raise InputError(f"the branch {branch} exists", path=repository, hint="Name another, or delete it.")
        own = _of_the_user(environment) | {"GIT_DIR": str(place.repository), "GIT_WORK_TREE": str(place.top)}
        with _running(place.folder, ("var", "GIT_COMMITTER_IDENT"), own) as asked:
            committer = asked.stdout.read(_LONGEST_REASON).strip()
            if reason := asked.reason():
                raise InputError(f"git does not know who commits: {reason}", path=repository)
        text = message.encode()
        stream = [
            b"commit refs/heads/" + branch.encode(),
            b"\ncommitter " + committer,
            b"\ndata %d\n" % len(text) + text,
        ]
        stream += [b"\nfrom " + _commit(place, "HEAD").encode() + b"\n", *_lines_of(files)]
        words = ("-c", f"core.hooksPath={os.devnull}", "fast-import", "--quiet", "--done")
        with _running(place.folder, words, own, b"".join([*stream, b"done\n"])) as imports:
            if reason := imports.reason():
                raise WorkError(f"git fast-import failed: {reason}", path=repository)
        return _commit(place, f"refs/heads/{branch}")


def _lines_of(files: Mapping[str, Content | None]) -> Iterator[bytes]:
    """Changes to files, as `git fast-import` reads them."""
    for name, content in sorted(files.items()):
        path = b'"' + re.sub(rb'(["\\])', rb"\\\1", os.fsencode(name)).replace(b"\n", b"\\n") + b'"'
        if content is None:
            yield b"D " + path + b"\n"
        else:
            data, executable = content
            mode = b"755" if executable else b"644"
            yield b"M 100" + mode + b" inline " + path + b"\ndata %d\n" % len(data) + data + b"\n"


def tag_before(folder: Path) -> tuple[str, int] | None:
    """The nearest tag of a version before the commit that a folder is at, and the number of commits since; None if
    there is none, or no repository.
    """
    try:
        with _opened(folder, is_bare=True) as place:
            return _tag_before(place)
    except FeedstockError:
        return None


def _tag_before(place: _Place) -> tuple[str, int] | None:
    try:
        answer = _asked(place, "describe", "--tags", "--long", "--match=*[0-9]*", _commit(place, "HEAD"))
    except FeedstockError:  # no tag, or no commit
        return None
    found = re.fullmatch(r"([\w./+-]{1,250})-(\d{1,9})-g[0-9a-f]+", answer.decode(errors="replace").strip())
    return (found[1], int(found[2])) if found else None


@contextmanager
def project_at(address: str) -> Iterator[tuple[Path, str, tuple[str, int] | None]]:
    """The small files of the newest commit of a repository, in a folder that is removed afterwards, the commit, and the
    tag before it, as `tag_before` gives it.

    Nothing is checked out, so the project's attributes start no filter of the user's. A repository of this machine
    (`file://`) is read where it is.

    Raises:
        WorkError: there is no such repository, or git fails.
    """
    with temporary_folder() as clone, temporary_folder() as folder:
        repository = clone
        if address.startswith("file://"):
            repository = Path(unquote(urlsplit(address).path))
        else:
            words = ("clone", "--quiet", "--bare", "--template=", "--depth=1", "--", address, str(clone))
            own = {"GIT_ALLOW_PROTOCOL": "https:http:ssh:git", "GIT_TERMINAL_PROMPT": "0"}
            with _running(clone, words, _of_the_user(os.environ) | own, seconds=_LONGEST_CLONE) as clones:
                reason = clones.reason()
            if reason:
                raise WorkError(f"{address} cannot be cloned: {reason}")
        nothing = WorkError(f"{address} cannot be cloned: it is not a repository with a commit")
        with ExitStack() as stack:
            try:
                place = stack.enter_context(_opened(repository, is_bare=True))
            except InputError as error:
                raise nothing from error
            if not (commit := _commit(place, "HEAD")):
                raise nothing
            _write(place, _small(place, commit), folder)
            tag = _tag_before(place)
        yield folder, commit, tag


@contextmanager
def _opened(folder: Path, *, is_bare: bool = False) -> Iterator[_Place]:
    """The repository that a folder is in, of the nearest folder above with a `.git`, lent until the end of the block.

    Objects and names are lent to a repository of our own with none of its settings. In what git reads of it, git has
    nothing to wait for.

    Args:
        is_bare: without a `.git`, the folder may be a repository itself.

    Raises:
        InputError: there is none, or a file that leads elsewhere leads nowhere.
        WorkError: a FIFO, a device or a socket has the name of a file that git reads.
    """
    folder = folder.resolve()
    tops = (folder,) if is_bare else (folder, *folder.parents)
    top = next((each for each in tops if (each / ".git").exists()), None)
    if top is None and not is_bare:
        raise InputError("is not in a git repository", path=folder)
    place = _place(folder, folder, folder) if top is None else _place(folder, top, top / ".git")
    if top is not None:
        _refuse_what_waits(each / ".gitignore" for each in (folder, *folder.parents) if each.is_relative_to(top))
    if sys.platform == "win32":  # links need a privilege there
        yield replace(place, environment=_reading(GIT_DIR=str(place.repository), GIT_WORK_TREE=str(place.top)))
        return
    with temporary_folder() as own:
        _lend(place, own)
        yield replace(place, environment=_reading(GIT_DIR=str(own), GIT_WORK_TREE=str(place.top)))


def _place(folder: Path, top: Path, repository: Path) -> _Place:
    if not repository.is_dir():  # of a work tree or a submodule
        repository = repository.parent / _line(repository).removeprefix("gitdir: ")
    common = repository / "commondir"
    shared = repository / _line(common) if common.exists() else repository
    if not (repository / "HEAD").exists() or not (shared / "objects").is_dir():
        raise InputError("is not in a git repository", path=folder)
    place = _Place(folder, top, repository, shared)
    _refuse_what_waits([repository / "HEAD", shared / "config", *_lendable(place).values()])
    for each in (shared / "refs", shared / "logs/refs", *_lenders(shared / "objects")):
        _refuse_what_waits(_odd(each))
    return place


def _line(path: Path) -> str:
    return os.fsdecode(read_bytes(path, _LONGEST_REASON, within=None)).strip("\n")


def _lendable(place: _Place) -> dict[str, Path]:
    """What git reads of a repository, by its path in it."""
    parts = ((place.repository, _OF_WORK_TREE), (place.shared, _SHARED))
    return {
        path.relative_to(folder).as_posix(): path
        for folder, names in parts
        for name in names
        for path in folder.glob(name)
    }


def _lenders(objects: Path) -> list[Path]:
    """The folders in which git looks for objects: those of a repository, and of others that it names."""
    folders = [objects.resolve()]
    for folder in folders:  # grows
        if (named := folder / "info/alternates").exists():
            lines = [line for line in read_bytes(named, within=None).splitlines() if line and not line.startswith(b"#")]
            found = dict.fromkeys((folder / os.fsdecode(line)).resolve() for line in lines)
            folders += [each for each in found if each not in folders]
        if len(folders) > _MOST_LENDERS:
            raise WorkError(f"takes objects from more than {_MOST_LENDERS} folders", path=objects)
    return folders


def _odd(folder: Path) -> Iterator[Path]:
    """What is neither a file nor a folder in a folder, at any depth; so is a link to a folder."""
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as entries:
        for each in entries:
            if each.is_dir(follow_symlinks=False):
                yield from _odd(Path(each.path))
            elif not each.is_file():
                yield Path(each.path)


def _refuse_what_waits(paths: Iterable[Path]) -> None:
    """Refuse files at which git would wait for somebody to write, or read for long.

    Raises:
        WorkError: a FIFO, a device or a socket has the name of a file that git reads, or one is too large.
    """
    for path in paths:
        with suppress(FileNotFoundError, NotADirectoryError):
            found = path.stat()
            if stat.S_IFMT(found.st_mode) not in (stat.S_IFREG, stat.S_IFDIR):
                raise WorkError("is not a file", path=path, hint="Remove it.")
            if found.st_size > _LARGEST:
                raise WorkError(f"is larger than {_LARGEST >> 20} MiB", path=path)


def _lend(place: _Place, own: Path) -> None:
    """Make a folder a repository with the objects and names of another, and with none of its settings."""
    for name, path in _lendable(place).items():
        (own / name).parent.mkdir(exist_ok=True)
        (own / name).symlink_to(path.resolve())
    (own / "HEAD").write_bytes(read_bytes(place.repository / "HEAD", _LONGEST_REASON, within=None))
    config = place.shared / "config"
    said = read_bytes(config, within=None) if config.exists() else b""
    forms = {key: form for key, form in _FORMS.items() if re.search(rf'(?i){key}\s*=\s*"?{form}'.encode(), said)}
    lines = ["[core]", f"repositoryFormatVersion = {int(bool(forms))}", "[extensions]"]
    (own / "config").write_text("\n".join([*lines, *(f"{key} = {form}" for key, form in forms.items()), ""]))


def _small(place: _Place, commit: str) -> list[_Entry]:
    return [one for one in _entries(place, commit) if stat.S_ISREG(one.mode) and (one.size or 0) <= _LARGEST_TEXT]


def _in_full(place: _Place, revision: str) -> str:
    """A revision with the full name of its branch or tag, so that no file `.git/main` answers for that.

    Raises:
        InputError: it means more than one commit: a tag `origin/main` would hide the branch of that name.
    """
    name = re.split(r"@\{|[~^]", revision)[0]
    if re.fullmatch("([A-Z]+_)?HEAD", name):
        return revision
    names = {name} if name.startswith("refs/") else {form.format(name) for form in _PLACES}
    listed = _asked(place, "for-each-ref", "--format=%(objectname) %(refname)", *names).decode(errors="replace")
    found = [line.split(" ", 1) for line in listed.splitlines()]
    found = [each for each in found if each[1] in names]
    if found and re.fullmatch("[0-9a-f]{4,64}", name):
        found += [[each, each] for each in _asked(place, "rev-parse", f"--disambiguate={name}").decode().split()]
    if len({digest for digest, _ in found}) > 1:
        message = f"'{revision}' means more than one commit: {', '.join(sorted(full for _, full in found))}"
        raise InputError(message, path=place.folder, hint="Write the full name of one of them.")
    full = next((full for _, full in found if full in names), name)
    return full + revision.removeprefix(name)


def _commit(place: _Place, revision: str) -> str:
    """The hash of a commit; empty if there is none of that name. A name from `refs/` on is that ref alone."""
    if name := re.match(r"refs/[^@~^]+", revision):  # git would take a tag `refs/remotes/upstream/main` for it
        with _running(place.folder, ("show-ref", "--verify", "--hash", "--", name[0]), place.environment) as asked:
            found = asked.stdout.read(_LONGEST_REASON).decode().strip()
            if asked.reason():
                return ""
        if "@" not in revision:
            revision = found + revision.removeprefix(name[0])
    words = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    with _running(place.folder, words, place.environment) as asked:
        found = asked.stdout.read(_LONGEST_REASON).decode().strip()
        return "" if asked.reason() else found


def _entries(place: _Place, commit: str) -> list[_Entry]:
    """The files, links and submodules of a commit below the folder."""
    entries, trees = [], {}
    for line in _asked(place, "ls-tree", "-r", "-t", "-l", "-z", commit).split(b"\0")[:-1]:
        head, _, name = line.partition(b"\t")
        mode, kind, digest, size = head.decode().split()
        entry = _Entry(os.fsdecode(name), int(mode, 8), digest, int(size) if size.isdigit() else None)
        if kind == "tree":
            trees[digest] = entry
        else:
            entries.append(entry)
    for _ in _contents(place, "tree", [*trees.values()]):  # git believes the hash of a tree below the first
        pass
    return entries


def _differs(place: _Place, commit: str) -> bool:
    """Whether a folder has other files than a commit; outside of `recipe`, those that are ignored aside.

    No filter is asked. Of the recipe, a build sees also what git ignores, and a `.git`, which git never lists.
    """
    entries = {each.name: each for each in _entries(place, commit) if not each.name.startswith("build_artifacts/")}
    listed = _asked(place, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    names = {name for name in _names(listed) if not name.startswith("build_artifacts/")}
    recipe = place.folder / "recipe"
    found = (
        () if recipe.is_symlink() else (each for each in recipe.rglob("*") if each.is_symlink() or not each.is_dir())
    )
    names |= {each.relative_to(place.folder).as_posix() for each in found}
    return names != entries.keys() or not all(_is_as_in(place.folder / name, each) for name, each in entries.items())


def _ignoring(folder: Path) -> Iterator[Path]:
    """The files in which git looks for names to ignore."""
    for above, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in (".git", "build_artifacts")]
        if ".gitignore" in files:
            yield Path(above, ".gitignore")


def _is_as_in(path: Path, entry: _Entry) -> bool:
    """Whether a file or link is what a commit has; a submodule is, as long as it is empty."""
    try:
        found = path.lstat()
        if stat.S_ISLNK(entry.mode):
            return stat.S_ISLNK(found.st_mode) and _digest(os.fsencode(path.readlink()), entry.digest) == entry.digest
        if not stat.S_ISREG(entry.mode):
            return not any(path.iterdir())
        is_other_mode = sys.platform != "win32" and bool(found.st_mode & 0o100) is not bool(entry.mode & 0o100)
        if not stat.S_ISREG(found.st_mode) or is_other_mode:
            return False
        content = read_bytes(path, _LARGEST, within=None)
    except (OSError, InputError):
        return False
    return any(_digest(each, entry.digest) == entry.digest for each in (content, content.replace(b"\r\n", b"\n")))


def _write(place: _Place, entries: Sequence[_Entry], folder: Path) -> None:
    """Write the files of a commit into an empty folder: links last, so that no file is written through one."""
    modules = [each for each in entries if not (stat.S_ISREG(each.mode) or stat.S_ISLNK(each.mode))]
    if lacking := next((each for each in entries if each.size is None and each not in modules), None):
        raise WorkError(f"this clone lacks the content of {lacking.name}")
    if sum(each.size or 0 for each in entries) > _LARGEST:
        raise InputError(f"its files have more than {_LARGEST >> 20} MiB")
    for each in entries:
        parts = each.name.split("/")
        is_odd = any(part in ("", ".", "..") or _LIKE_GIT.fullmatch(without_unseen(part)) for part in parts)
        if is_odd or not is_below(folder / each.name, folder):
            raise InputError(f"{each.name} leads out of it")
        if len(parts) > _DEEPEST:
            raise InputError(f"{each.name[:200]}… is in more than {_DEEPEST} folders")
    contents = sorted((each for each in entries if each not in modules), key=lambda each: stat.S_ISLNK(each.mode))
    try:
        for each in modules:
            (folder / each.name).mkdir(parents=True)
        for each, content in zip(contents, _contents(place, "blob", contents), strict=True):
            path = folder / each.name
            path.parent.mkdir(parents=True, exist_ok=True)
            if not stat.S_ISLNK(each.mode):
                with path.open("xb") as file:
                    file.write(content)
                path.chmod(0o755 if each.mode & 0o100 else 0o644)
            elif is_below(path.parent / os.fsdecode(content), folder) and is_inside(path.parent, folder):
                path.symlink_to(os.fsdecode(content))
            else:
                raise InputError(f"{each.name} leads out of it")
    except (FileExistsError, NotADirectoryError) as error:
        raise InputError(f"two of its files have one name: {each.name}") from error
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or error
        raise InputError(f"{each.name[:200]} cannot be written: {reason}") from error


def _contents(place: _Place, kind: str, entries: Sequence[_Entry]) -> Iterator[bytes]:
    """The content of each entry, with the size that was announced, if one was, and the hash of its name."""
    digests = b"".join(b"%s\n" % each.digest.encode() for each in entries)
    with _running(place.folder, ("cat-file", "--batch"), place.environment, digests) as asked:
        for each in entries:
            head = asked.stdout.readline(1000)
            found = re.fullmatch(rf"{each.digest} {kind} (\d{{1,9}})\n".encode(), head)
            content = read_up_to(asked.stdout, int(found[1])) if found else b""
            if each.size not in (None, len(content)) or _digest(content, each.digest, kind) != each.digest:
                raise WorkError(f"git does not have the content of {each.name}")
            asked.stdout.read(1)
            yield content


def _digest(content: bytes, like: str, kind: str = "blob") -> str:
    """The hash of a file's content in git, of the kind that another one is of."""
    algorithm = hashlib.sha256 if len(like) == 64 else hashlib.sha1
    return algorithm(b"%s %d\0" % (kind.encode(), len(content)) + content, usedforsecurity=False).hexdigest()


def _names(listed: bytes) -> list[str]:
    return [os.fsdecode(name) for name in listed.split(b"\0") if name]


def _listed(names: Iterable[str]) -> bytes:
    return b"".join(os.fsencode(name) + b"\0" for name in names)


def _asked(place: _Place, *words: str, stdin: bytes = b"") -> bytes:
    """What git answers.

    Raises:
        WorkError: git is missing, fails, answers without end, or does not end.
    """
    with _running(place.folder, words, place.environment, stdin) as asked:
        answer = read_up_to(asked.stdout, _LONGEST_ANSWER + 1)
        reason = asked.reason() if len(answer) <= _LONGEST_ANSWER else "it answers without end"
    if reason:
        raise WorkError(f"git {words[0]} failed: {reason}", path=place.folder)
    return answer


@dataclass(frozen=True, slots=True)
class _Running:
    """A git that answers."""

    process: subprocess.Popen[bytes]
    stdout: IO[bytes]
    stderr: IO[bytes]

    def reason(self) -> str:
        """Why it failed, after its answer was read; empty if it did not."""
        status = self.process.wait()
        self.stderr.seek(0)
        said = self.stderr.read(_LONGEST_REASON).decode(errors="replace").strip()
        return (said or f"exit status {status}") if status else ""


@contextmanager
def _running(
    folder: Path, words: Sequence[str], environment: Mapping[str, str], stdin: bytes = b"", *, seconds: float = _SECONDS
) -> Iterator[_Running]:
    """Run git in a folder until the end of the block, or of its time."""
    import subprocess
    from threading import Timer

    within = system_folder()
    with tempfile.TemporaryFile(dir=within) as given, tempfile.TemporaryFile(dir=within) as said:
        given.write(stdin)
        given.seek(0)
        try:
            command = [*_program(environment), *words]
            process = subprocess.Popen(
                command, cwd=folder, env=environment, stdin=given, stdout=subprocess.PIPE, stderr=said
            )
        except OSError as error:
            raise WorkError(f"git cannot be run: {error}", path=folder) from error
        timer = Timer(seconds, process.kill)
        timer.start()
        try:
            yield _Running(process, cast("IO[bytes]", process.stdout), said)
        finally:
            timer.cancel()
            process.kill()
            process.communicate()


def _program(environment: Mapping[str, str]) -> list[str]:
    """git with our settings, from an absolute folder of PATH: a feedstock may hold a program of that name.

    Raises:
        InputError: it is not installed.
    """
    git = program_of_the_user("git", environment)
    if git is None or not Path(git).is_absolute():
        raise InputError("git is not on PATH", hint="Install git.")
    return [git, "--no-pager", *(word for key, value in _SETTINGS.items() for word in ("-c", f"{key}={value}"))]


def _reading(**variables: str) -> dict[str, str]:
    """The environment of a git that reads."""
    own = {key: value for key, value in os.environ.items() if not key.startswith("GIT_") or key == "GIT_EXEC_PATH"}
    return {**own, **_READING, **variables}


def _of_the_user(environment: Mapping[str, str]) -> dict[str, str]:
    """An environment without the variables that lead git to another repository, in which nothing is fetched unasked."""
    return {key: value for key, value in environment.items() if key not in _LEADING} | {"GIT_NO_LAZY_FETCH": "1"}


@dataclass(frozen=True, slots=True)
class Repository:
    """A feedstock that is the top of a git repository, and the program that changes it.

    `environment`: the variables that git sees.
    """

    feedstock: Path
    git: Sequence[str]
    environment: Mapping[str, str]

    def commit(self, changes: Changes, message: str, *, edit: bool = False) -> bool:
        """Stage changes that were applied, and commit the index; whether there was anything to commit.

        Like conda-smithy, this commits everything that is staged, and stages ignored files too.

        Args:
            edit: open the message in the user's editor first.

        Raises:
            WorkError: git fails; the changed files stay, staged or not.
        """
        if not self.stage(changes):
            return False
        # status and diff would ask submodules and diff tools; no setting takes lines from the message
        editing = ("--edit", "--no-status", "--no-verbose") if edit else ("--cleanup=whitespace",)
        self._run("commit", "--message", message, *editing, quiet=not edit)
        return True

    def stage(self, changes: Changes) -> bool:
        """Stage changes that were applied, ignored files too; whether the index differs from the last commit."""
        written = [path for path in changes.seen.keys() | changes.files.keys() if path.is_file()]
        tracked = _names(self._run("ls-files", "-z", "--deleted", "--", CI_SUPPORT).stdout)
        gone = {path for path in changes.seen.keys() | changes.files.keys() if not path.exists()}
        gone |= {self.feedstock / name for name in tracked}
        known = self._tracked(written)
        for flag in ("--no-assume-unchanged", "--no-skip-worktree"):  # with these, git would stage nothing
            self._update((flag,), known)
        self._update((), written)
        self._update(("--force-remove",), self._tracked(gone))
        for way, executable in (("--chmod=+x", True), ("--chmod=-x", False)):
            self._update((way,), [path for path in written if bool(path.stat().st_mode & 0o100) is executable])
        committed = self._run("rev-parse", "--verify", "--quiet", "HEAD^{tree}", accepted=(0, 1)).stdout
        return self._run("write-tree", "--missing-ok").stdout != committed

    def _tracked(self, gone: Iterable[Path]) -> list[Path]:
        """The files in the index at or below some paths."""
        names = [path.relative_to(self.feedstock).as_posix() for path in gone]
        if not names:
            return []
        found = self._run("--literal-pathspecs", "ls-files", "-z", "--", *sorted(names)).stdout
        return [self.feedstock / name for name in _names(found)]

    def _update(self, words: tuple[str, ...], paths: Iterable[Path]) -> None:
        names = sorted(path.relative_to(self.feedstock).as_posix() for path in paths)
        if names:
            self._run("update-index", "--add", *words, "-z", "--stdin", stdin=_listed(names))

    def _run(
        self, *words: str, stdin: bytes = b"", accepted: tuple[int, ...] = (0,), quiet: bool = True
    ) -> subprocess.CompletedProcess[bytes]:
        import subprocess

        command, variables = [*self.git, "-C", str(self.feedstock), *words], dict(self.environment)
        with released():
            if not quiet:  # the user's editor needs the terminal
                run = subprocess.run(command, env=variables, stdout=None, stderr=None, check=False)
            else:
                try:
                    with named_wait(f"git {words[0]} to end", _LONGEST_COMMIT):
                        run = subprocess.run(
                            command,
                            env=variables,
                            input=stdin,
                            capture_output=True,
                            check=False,
                            timeout=_LONGEST_COMMIT,
                        )
                except subprocess.TimeoutExpired as error:
                    message = f"git {words[0]} has not ended within {_LONGEST_COMMIT:g} s"
                    raise WorkError(message, path=self.feedstock) from error
        if run.returncode not in accepted:
            reason = (run.stderr or b"").decode(errors="replace").strip() or f"exit status {run.returncode}"
            raise WorkError(f"git {words[0]} failed: {reason}", path=self.feedstock)
        return run


def find_repository(feedstock: Path, environment: Mapping[str, str]) -> Repository:
    """The repository of a feedstock; ask for it before anything is written.

    Args:
        environment: variables of the process; those that lead git to another repository are ignored.

    Raises:
        InputError: git is not installed, or the feedstock is not the top of a repository.
    """
    git = _program(environment)
    if not (feedstock / ".git").exists():
        raise InputError(
            "is not the top of a git repository, so --commit cannot commit",
            path=feedstock,
            hint="Run 'git init' there, or leave out --commit.",
        )
    above = {"GIT_CEILING_DIRECTORIES": str(feedstock.resolve().parent)}
    return Repository(feedstock, git, _of_the_user(environment) | above)
