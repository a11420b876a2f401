"""Hypothesis strategies of cases, which catalogues compose. Each draws recipes, never arrays."""

from conformance.strategies.layouts import layouts
from conformance.strategies.reduction import reduction_cases
from conformance.strategies.unary import unary_cases
from conformance.strategies.values import values

__all__ = ["layouts", "reduction_cases", "unary_cases", "values"]
