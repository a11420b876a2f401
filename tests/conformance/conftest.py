from __future__ import annotations

from pathlib import Path

import pytest

PLUGIN = Path(__file__).parent / "plugin"


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make the package ``tiny`` importable and its entry points findable, here and in child processes."""
    monkeypatch.syspath_prepend(str(PLUGIN))
    monkeypatch.setenv("PYTHONPATH", str(PLUGIN), prepend=":")
    return PLUGIN
