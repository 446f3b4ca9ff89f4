"""A pinning of a few lines, laid out as conda-forge-pinning's own files are."""

from __future__ import annotations

from pathlib import Path


def write_pinning(folder: Path, config: str, **migrations: str) -> Path:
    """Write `conda_build_config.yaml` and migrations, by their names without `.yaml`, into a new folder; return it."""
    (folder / "migrations").mkdir(parents=True)
    (folder / "conda_build_config.yaml").write_text(config)
    for name, text in migrations.items():
        (folder / "migrations" / f"{name}.yaml").write_text(text)
    return folder
