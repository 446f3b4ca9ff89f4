"""What conda-forge.yml says of rendering: where the recipe lies, which platforms are rendered, what selectors see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from feedstock_tools.errors import InputError
from feedstock_tools.platforms import Platform
from feedstock_tools.rerender.ci_rules import ci_rules
from feedstock_tools.rerender.ci_settings import placements, section
from feedstock_tools.rerender.rules import Rules
from feedstock_tools.variants.read import parse_plain_yaml, read_text

PROVIDERS = ("circle", "travis", "appveyor", "azure", "drone", "woodpecker", "github_actions")


@dataclass(frozen=True)
class Rendering:
    platform: Platform
    build_platform: Platform
    provider: str
    keep_noarch: bool
    environ: Mapping[str, str]


@dataclass(frozen=True)
class Forge:
    recipe_dir: str
    is_v1: bool
    fallback_image: str
    renderings: tuple[Rendering, ...]
    self_hosted: bool = False


def read_forge(feedstock: Path, rules: Rules) -> Forge:
    import yaml
    path = feedstock / "conda-forge.yml"
    data: Any = {}
    if path.is_file():
        data = next(iter(yaml.load_all(read_text(path), Loader=yaml.SafeLoader)), None) or {}
    ci = ci_rules(rules.smithy)
    environ = {"CF_COMPILER_STACK": "comp7", "CF_MIN_PY_VER": "27", "CF_MAX_PY_VER": "37", "CF_MIN_R_VER": "34", "CF_MAX_R_VER": "34"}
    recipe_dir = data.get("recipe_dir", "recipe")
    is_v1 = data.get("conda_build_tool") == "rattler-build"
    recipe = feedstock / recipe_dir / ("recipe.yaml" if is_v1 else "meta.yaml")
    import re
    if rules.sets_cuda_enabled and any(re.match(r"^[^\#]*compiler\((\"cuda\"|\'cuda\')\).*", l) for l in read_text(recipe).splitlines()):
        environ["CF_CUDA_ENABLED"] = "True"
    out = []
    for provider in PROVIDERS:
        for p in placements(data, ci, provider):
            environ = dict(environ)
            if rules.sets_build_platform:
                environ["CONFIG_VERSION"] = "2"
                environ["BUILD_PLATFORM"] = p.build_subdir
            if rules.sets_linux_version and p.platform.startswith("linux"):
                v = section(data, "os_version").get(p.platform)
                if v:
                    environ["DEFAULT_LINUX_VERSION"] = str(v)
            noarch = data.get("noarch_platforms", ["linux_64"]) if rules.has_noarch_platforms else ["linux_64"]
            noarch = [noarch] if isinstance(noarch, str) else noarch
            out.append(Rendering(Platform.parse(p.platform), Platform.parse(p.build_platform), provider, p.platform in noarch, environ))
    return Forge(recipe_dir, is_v1, section(data, "docker").get("fallback_image", "quay.io/condaforge/linux-anvil-comp7"), tuple(out))
