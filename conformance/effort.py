"""How hard a run looks. It imports nothing, for the command line and the pytest plugin must stay light."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

EXAMPLES = 20
"""Cases drawn for each property by default."""

_HALF = ("layout", "out")
"""Properties that repeat the forward with one thing changed: half as many cases."""


@dataclass(frozen=True)
class Effort:
    """``examples`` cases drawn for each property, from the run's ``seed``."""

    examples: int = EXAMPLES
    seed: int = 0

    def cases_of(self, property: str) -> int:
        """Give the number of cases to draw for a property."""
        return max(1, self.examples // 2) if property in _HALF else self.examples

    def seed_of(self, unit: str) -> int:
        """Give the seed of a unit by its name, independent of the other units of the run."""
        return int.from_bytes(hashlib.sha256(f"{self.seed}/{unit}".encode()).digest()[:8], "big")
