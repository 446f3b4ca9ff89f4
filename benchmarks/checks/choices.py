"""What solvers take, compared with py-rattler over all that the packages require.

    python -m benchmarks.checks.choices MIRROR [--pairs 200] [--seed 1]

A pair is a commit and its first parent, both with jobs for CUDA. `changed_choices` keeps the requirements on the
machine, on `cuda-version` and on siblings; here each package keeps all requirements and constraints, and of each
other package that these name there are stubs, one for each specification, whose versions and builds satisfy it. The
packages of the commit, and of the parent those that none of them replaces, are solved with each CUDA version's as the
newest; what a machine may get after the commit must be what `changed_choices` calls it. A name that cannot be solved
with its stubs is counted apart, as is one that a package of another feedstock decides.
"""

import asyncio
import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.checks.lint_states import unpacked
from benchmarks.histories import feedstocks, git, options
from feedstock_tools.channel.many_solves import ManySolves
from feedstock_tools.channel.metadata import Record
from feedstock_tools.channel.solving import Question, virtual_packages
from feedstock_tools.check import choices
from feedstock_tools.check.choices import Offer, Packages
from feedstock_tools.check.renderings import Renderings
from feedstock_tools.errors import FeedstockError
from feedstock_tools.recipe.packages import name_in
from feedstock_tools.rerender.configuration import cuda_version

TOOLKITS = ("cuda-version", "cudatoolkit")
_VERSION = re.compile(r"\d[\w.]*")
#: What stands between version and build in `16.0.0.*=*cuda`.
_JOINT = re.compile(r"(?<=[\w*])=(?=[^=])")


def jobs_of(folder: Path) -> list[Packages]:
    renderings = Renderings(folder)
    return [renderings.packages(each) for each in renderings.configurations]


def stub(spec: str, like: Record, number: int) -> Record:
    """A package that satisfies a specification: its lowest version, and its build without patterns."""
    name, version, build, *_ = [*_JOINT.sub(" ", spec).split(), "", ""]
    found = _VERSION.search(version)
    pinned = found[0].removesuffix(".*").rstrip(".") if found else "99"
    string = build.replace("*", "0") or str(number)
    url = f"{like.url.rpartition('/')[0]}/{name}-{pinned}-{string}.conda"
    return replace(
        like, name=name, version=pinned, build=string, build_number=0, depends=(), constrains=(), track_features=(),
        file_name=url.rpartition("/")[2], url=url,
    )  # fmt: skip


def complete(jobs: Sequence[Packages]) -> list[Offer]:
    """The packages with all that they require."""
    names = {name_in(spec).lower() for job in jobs for package in job for spec in (*package.run, *package.constrains)}
    names |= {package.name.lower() for job in jobs for package in job} | {*TOOLKITS}
    return [
        Offer(package.platform, cuda_version(package.output.variant), choices._promised(package, job, names))
        for job in jobs
        for package in job
    ]


async def flavours(
    offers: Sequence[Offer], new: frozenset[str], name: str, platform: object, driver: str | None
) -> set[str]:
    """What a solver may take, with all requirements; packages with the URLs `new` are newer than the others."""
    here = [offer for offer in offers if offer.platform == platform]
    records = {offer.package.record.distribution: offer.package.record for offer in here}
    cudas: dict[str, set[str | None]] = {}
    for offer in here:
        cudas.setdefault(offer.package.record.distribution, set()).add(offer.cuda)
    own = {record.name for record in records.values()}
    like = next(iter(records.values()))
    specs = sorted({spec for record in records.values() for spec in record.depends})
    stubs = [
        stub(spec, like, at) for at, spec in enumerate(specs) if spec.split()[0] not in own | {""} and spec[:2] != "__"
    ]
    solver = ManySolves({here[0].platform.subdir: ()}, at_once=2)
    found: set[str] = set()
    try:
        for last in sorted({cuda for each in cudas.values() for cuda in each}, key=str):
            order = sorted(records.values(), key=lambda each: (each.url in new, last in cudas[each.distribution]))
            stamped = [replace(record, timestamp=at * 1000) for at, record in enumerate((*stubs, *order), 1)]
            question = Question((name,), here[0].platform, virtual_packages(here[0].platform, cuda=driver))
            package = (await solver.solve(question, stamped)).packages.get(name)
            if package is not None:
                of = cudas[f"{name}-{package.version}-{package.build}"]
                found.add("any" if len(of) > 1 else next(f"CUDA {each}" if each else "CPU" for each in of))
    finally:
        solver.close()
    return found


def compared(before: Path, after: Path, counts: Counter[str]) -> list[str]:
    """Compare what both say of each name, platform and driver; the differences."""
    old, new = jobs_of(before), jobs_of(after)
    channel = choices._after(choices._channel(old), choices._channel(new))
    if not any(offer.cuda for offer in channel.offers):
        return []
    drivers = choices._drivers(channel.offers)[-3:]
    ours = asyncio.run(choices._labels(channel, drivers))
    kept = {offer.package.record.distribution for offer in channel.offers}
    offers = [offer for offer in (*complete(new), *complete(old)) if offer.package.record.distribution in kept]
    toolkits = [offer for offer in channel.offers if offer.package.record.name in TOOLKITS]
    counts["pairs"] += 1
    wrong = []
    for (subdir, name, driver), label in ours.items():
        if name in TOOLKITS or (driver is not None and driver not in drivers):
            continue
        platform = next(offer.platform for offer in offers if offer.platform.subdir == subdir)
        theirs = asyncio.run(flavours([*offers, *toolkits], channel.new, name, platform, driver))
        said = set(label.partition(" (")[0].split(" or ")) - {"nothing"}
        result = "equal" if said == theirs else "another package decides" if " (as " in label and theirs <= said else ""
        result = result or ("no solution with stubs" if not theirs else "different")
        counts[result] += 1
        if result == "different":
            wrong.append(f"{name} on {subdir} with {driver}: {label}, not {sorted(theirs)}")
    return wrong


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    random.seed(given.seed)
    listed = []
    for repository in feedstocks(given.mirror):
        log = git(repository, "log", "--first-parent", "--format=%H", "--", ".ci_support/*cuda*")
        hashes = log.decode().split()
        random.shuffle(hashes)
        listed += [(at, repository, name) for at, name in enumerate(hashes)]
    listed.sort(key=lambda each: each[0])  # one of each feedstock in turn
    counts: Counter[str] = Counter()
    for _, repository, name in listed:
        if counts["pairs"] >= given.pairs:
            break
        print(dict(counts.most_common()), file=sys.stderr)
        with tempfile.TemporaryDirectory() as place:
            folders = Path(place, "before"), Path(place, "after")
            try:
                if not all(
                    unpacked(repository, f"{name}{end}", to) for end, to in zip(("^", ""), folders, strict=True)
                ):
                    continue
                for line in compared(*folders, counts):
                    print(repository.parent.name, name[:8], line, flush=True)
            except (FeedstockError, ValueError, KeyError) as error:
                counts[f"not rendered ({type(error).__name__})"] += 1
    print(dict(counts.most_common()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
