"""Failures of released builds that we know, as data: a TOML file a build, with conditions, evidence and witnesses."""

from __future__ import annotations

from importlib.resources import files as _resources
from importlib.resources.abc import Traversable


def files() -> list[Traversable]:
    """The files of known failures, by build."""
    return sorted(
        (item for item in _resources(__name__).iterdir() if item.name.endswith(".toml")), key=lambda i: i.name
    )
