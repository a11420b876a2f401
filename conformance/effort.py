"""How hard a run looks. It imports nothing, for the command line and the pytest plugin must stay light."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

EXAMPLES = 20
"""Cases drawn for each property by default: with the sweeps, about four minutes for all ops on two cores."""


@dataclass(frozen=True)
class Effort:
    """``examples`` cases drawn for each property, from the run's ``seed``."""

    examples: int = EXAMPLES
    seed: int = 0

    def seed_of(self, unit: str) -> int:
        """Give the seed of a unit by its name, independent of the other units of the run."""
        return int.from_bytes(hashlib.sha256(f"{self.seed}/{unit}".encode()).digest()[:8], "big")
