"""The engine: from an op and an element type to records."""

from conformance.effort import Effort
from conformance.engine.checker import Checker
from conformance.engine.unit import Unit, run_unit

__all__ = ["Checker", "Effort", "Unit", "run_unit"]
