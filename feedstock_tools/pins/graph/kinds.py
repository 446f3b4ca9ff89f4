"""The kinds of releases in the pin graph, and demands for them: `cuda=11.2`, `gcc<=10`, `gpu=RTX 3080`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from feedstock_tools.channel.specs import admits
from feedstock_tools.errors import InputError, Mistake
from feedstock_tools.facts.cuda import MSVC, Toolkit
from feedstock_tools.facts.gpus import driver_version, find_gpu, load_gpus
from feedstock_tools.platforms import Platform
from feedstock_tools.versions import minor_of, parse_version

#: The platforms in order of preference, if none is demanded.
_PLATFORMS = ("linux-64", "linux-aarch64", "win-64", "linux-ppc64le")
_YEARS = frozenset(str(year) for year in MSVC)
#: Visual Studio by its toolset, as MSBuild and CMake name it.
_TOOLSETS = {"v140": "2015", "v141": "2017", "v142": "2019", "v143": "2022"}
_PINNED_VISUAL_STUDIOS = frozenset({"2015", "2017", "2019", "2022"})
#: The platforms that people mean by the name of a system alone.
_SYSTEMS = {
    "linux": "linux-64",
    "wsl": "linux-64",
    "wsl2": "linux-64",
    "windows": "win-64",
    "win": "win-64",
    **dict.fromkeys(("mac", "macos", "osx", "darwin"), "osx-arm64"),
}


#: The origin of frameworks in a graph of the facts.
WHEELS = "the wheels on PyPI"
#: The frameworks that demands may name, and their wheels: some have others for each major version of CUDA.
FRAMEWORKS: Mapping[str, tuple[str, ...]] = {
    "tensorflow": ("tensorflow", "tensorflow-gpu"),
    "pytorch": ("torch",),
    "torch": ("torch",),
    "jax": ("jax-cuda12", "jax-cuda13"),
    "cupy": (
        *(f"cupy-cuda{cuda}" for cuda in (80, 90, 91, 92, 100, 101, 102, 110, 111, 112, 113, 114, 115, 116, 117)),
        *("cupy-cuda11x", "cupy-cuda12x", "cupy-cuda13x"),
    ),
    "torchvision": ("torchvision",),
    "torchaudio": ("torchaudio",),
    "vllm": ("vllm",),
    "xformers": ("xformers",),
    "onnxruntime-gpu": ("onnxruntime-gpu",),
    "bitsandbytes": tuple(f"bitsandbytes-cuda{cuda}" for cuda in (117, 118, 121, 124, 126, 128, 129, 130, 132)),
    "ctranslate2": ("ctranslate2",),
    "faiss-gpu": ("faiss-gpu", "faiss-gpu-cuda11", "faiss-gpu-cuda12"),
    "triton": ("triton",),
    "numba-cuda": ("numba-cuda",),
}


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of release.

    Attributes:
        name: as on the command line; `aliases` are other names for it there.
        title: as in answers.
        least: an answer takes the lowest that works, since it is a requirement on the machine and not a choice of the
            maintainer.
        asked_only: it is in an answer only if it is named.
        versioned: versions are compared as conda does; else only equality counts.
    """

    name: str
    title: str
    aliases: tuple[str, ...] = ()
    least: bool = False
    asked_only: bool = False
    versioned: bool = True

    def read(self, text: str) -> str:
        """A version of this kind as a person writes it, in the form of releases."""
        if self.name == "platform":
            return Platform.parse(_SYSTEMS.get(text.strip().lower(), text)).subdir
        if self.name == "sm":
            return _architecture_named(text)
        if self.name == "gpu":
            return find_gpu(text, load_gpus()).name
        if self.name == "driver":
            return driver_version(text)
        if self.name == "visual-studio":
            return _visual_studio_named(text)
        parse_version(text)
        return text


#: In the order in which an answer chooses them: the newest release of the first kind is tried before the next kinds.
KINDS = {
    kind.name: kind
    for kind in (
        Kind("platform", "platform", ("target_platform", "subdir", "os"), versioned=False),
        Kind(
            "cuda",
            "CUDA",
            ("cudatoolkit", "cuda-toolkit", "cuda-version", "cuda_version", "cuda_compiler_version", "cuda-nvcc"),
        ),
        Kind("cudnn", "cuDNN"),
        Kind("nccl", "NCCL"),
        Kind("cutensor", "cuTENSOR"),
        Kind("gcc", "gcc", ("gxx", "c_compiler_version", "cxx_compiler_version")),
        Kind("visual-studio", "Visual Studio", ("msvc", "vs", "visual_studio")),
        Kind("clang", "clang", asked_only=True),
        Kind("python", "Python", asked_only=True),
        Kind("gpu", "GPU", asked_only=True, versioned=False),
        Kind(
            "sm",
            "architecture",
            ("arch", "architecture", "capability", "compute_capability", "cc"),
            asked_only=True,
            versioned=False,
        ),
        Kind("driver", "driver", ("nvidia-driver", "nvidia_driver"), least=True),
        Kind("__cuda", "driver's CUDA", ("driver-cuda",), least=True),
        Kind("glibc", "glibc", ("__glibc", "sysroot", "c_stdlib_version"), least=True),
    )
}
#: Frameworks by the names of their projects on PyPI.
_PROJECTS = {
    project: name
    for name, keys in FRAMEWORKS.items()
    for project in (*keys, *(key.replace("-cuda1", "-cu1") for key in keys))
    if re.search(r"-cu(da)?\d", project)
}
_BY_ALIAS = {alias: kind for kind in KINDS.values() for alias in (kind.name, *kind.aliases)}


def kind_named(name: str) -> Kind:
    """The kind of that name or alias; any other name is a package of a channel, which is in an answer if named."""
    name = _PROJECTS.get(name, name)
    return _BY_ALIAS.get(name) or Kind(name, name, asked_only=True)


def newest_first(kind: str, versions: Iterable[str]) -> tuple[str, ...]:
    """Versions of one kind without repetition, newest first; platforms in the order of preference."""
    unique = set(versions)
    if kind == "platform":
        return tuple(sorted(unique, key=lambda name: (_PLATFORMS.index(name) if name in _PLATFORMS else 9, name)))
    if kind == "sm":
        return tuple(sorted(unique, key=_architecture, reverse=True))
    if kind == "gpu":
        return tuple(sorted(unique))
    if kind == "visual-studio":
        return tuple(sorted(unique, key=msvc_of, reverse=True))
    return tuple(sorted(unique, key=lambda text: (parse_version(text), text), reverse=True))


def preferred(kind: str, versions: Iterable[str]) -> tuple[str, ...]:
    """Versions of one kind in the order in which an answer tries them."""
    ordered = newest_first(kind, versions)
    if kind == "visual-studio":
        # conda-forge's own come first: its pinning never had 2026 or a minor version.
        return tuple(sorted(ordered, key=lambda version: version not in _PINNED_VISUAL_STUDIOS))
    return ordered[::-1] if kind_named(kind).least else ordered


def _visual_studio_named(text: str) -> str:
    """Visual Studio by its year (2022, vs2022), its own version (17.10), or its compiler's (19.40, 1940)."""
    name = text.strip().lower().removeprefix("vs")
    if name in _TOOLSETS:
        return _TOOLSETS[name]
    compiler = re.fullmatch(r"(?:19\.?([0-5]\d)|14\.([0-5]\d))(?:\.\d+)*", name)
    if compiler is not None and name not in _YEARS:
        minor = int(compiler[1] or compiler[2])
        if minor >= 30 and minor < 50:
            return f"17.{minor - 30}"
        year = next((year for year, (first, last) in MSVC.items() if first <= 1900 + minor <= last), None)
        if year is not None:
            return str(year)
    if name in _YEARS or re.fullmatch(r"17\.([0-9]|1[0-4])", name):
        return name
    raise InputError(f"'{text}' is not a Visual Studio", hint="Write it as 2022, as 17.10, or as its compiler's 19.40.")


def msvc_of(version: str) -> int:
    """The _MSC_VER of a Visual Studio: of a year, that of its last release (1944 of 2022); of 17.9, 1939."""
    return 1930 + int(version[3:]) if version.startswith("17.") else MSVC[int(version)][1]


def msvc_words(toolkit: Toolkit) -> str:
    """The Visual Studios that a toolkit's nvcc accepts, in words."""
    first, last = toolkit.visual_studio or (0, 0)
    newest = toolkit.newest_msvc
    if newest is None or newest >= MSVC[last][1]:
        return f"Visual Studio {first} to {last}"
    return f"Visual Studio {first} to {last} 17.{newest - 1930} (_MSC_VER up to {newest})"


def _architecture_named(text: str) -> str:
    match = re.match(r"^(?:sm_|compute_)?(\d+)\.?(\d)([af]?)$", text.strip())
    if match is None:
        raise InputError(f"'{text}' is not a GPU architecture", hint="Write it as 8.6, sm_86 or sm_90a.")
    return "".join(match.groups())


def _architecture(name: str) -> tuple[int, str]:
    digits = re.match(r"\d+", name)
    return int(digits[0]) if digits else 0, name


_FORM = re.compile(
    r"^\s*(?P<name>[A-Za-z_][A-Za-z0-9_.-]*?)\s*(?:(?P<operator>==|>=|<=|!=|=|>|<)\s*(?P<version>\S.*?))?\s*$"
)


@dataclass(frozen=True, slots=True)
class Demand:
    """The demand that a set has a release of some kind; `spec` is a version specification of conda.

    For kinds whose versions are names (platform, architecture), `spec` is the name itself. `text` is the original text.
    """

    kind: str
    spec: str
    text: str

    def admits(self, version: str) -> bool:
        """Whether a version of the kind meets the demand."""
        if self.spec == "*":
            return True
        return admits(self.spec, version) if kind_named(self.kind).versioned else self.spec == version

    def __str__(self) -> str:
        return self.text


def parse_demand(text: str) -> Demand:
    """Read one demand.

    `cuda=11.2` means 11.2 and all versions that begin with `11.2.`; `==`, `>=`, `<`, `!=` and several of them with
    commas are as in conda; a name alone demands any version. `gpu=` takes the name of a GPU, which brings its
    architecture and drivers along. A release of CUDA, `cuda=11.2.2`, is one of its minor version.

    Raises:
        InputError: it is not a demand, or its name or version is unknown.

    >>> parse_demand("cudnn=8.1").spec
    '8.1.*'
    """
    match = _FORM.match(text)
    if match is None:
        raise InputError(f"'{text}' is not a demand", hint="Write cuda=11.2, 'gcc<=10', cudnn, or platform=linux-64.")
    name, operator, version = match["name"].lower(), match["operator"], match["version"]
    kind = kind_named(name)
    if operator is None:
        if kind.name == "gpu":
            raise InputError(f"'{text}' names no GPU", hint="Write 'gpu=RTX 3080'.")
        return Demand(kind.name, "*", text.strip())
    if not kind.versioned:
        if operator not in ("=", "=="):
            raise InputError(f"'{text}': a {kind.title} must be demanded with '='", hint=f"Write {name}=….")
        return Demand(kind.name, kind.read(version), text.strip())
    if kind.name in KINDS and not re.match(r"(?:vs?)?\d", version) and version[0] not in "<>=!":
        raise InputError(
            f"'{text}': '{version}' is not a version of {kind.title}", hint=f"Write {name}=… with its number."
        )
    if kind.name == "cuda" and operator in ("=", "==") and re.fullmatch(r"\d+\.\d+\.\d+", version):
        version = version.rpartition(".")[0]
    elif kind.name in FRAMEWORKS and operator in ("=", "==") and re.fullmatch(r"\d+(\.\d+)+", version):
        version = minor_of(version)  # the facts are of the last release of a minor version
        operator = "="
    elif kind.name == "driver" and version[0].isdigit():
        version = driver_version(version)
    elif kind.name == "visual-studio" and operator in ("=", "=="):
        return Demand(kind.name, f"=={kind.read(version)}", text.strip())
    return Demand(kind.name, _spec(operator, version, text), text.strip())


def _spec(operator: str, version: str, text: str) -> str:
    if operator != "=":
        spec = f"{operator}{version}"
    elif any(sign in version for sign in "|,<>=*"):
        spec = version
    else:
        spec = f"{version}.*"
    try:
        admits(spec, "1")
    except InputError as error:
        raise InputError(f"'{text}': {error.mistakes[0].message}") from error
    return spec


def parse_demands(texts: Iterable[str]) -> tuple[Demand, ...]:
    """Read demands, all mistakes in one error.

    Raises:
        InputError: as `parse_demand`.
    """
    demands: list[Demand] = []
    mistakes: list[Mistake] = []
    for text in texts:
        try:
            demands.append(parse_demand(text))
        except InputError as error:
            mistakes.extend(error.mistakes)
    if mistakes:
        raise InputError.of(mistakes)
    return tuple(dict.fromkeys(demands))
