"""Hypothesis strategies of cases, which catalogues compose. Each draws recipes, never arrays."""

from conformance.strategies.layouts import layouts
from conformance.strategies.rarely import one_in
from conformance.strategies.reduction import reduction_cases
from conformance.strategies.unary import unary_cases
from conformance.strategies.values import values

__all__ = ["layouts", "one_in", "reduction_cases", "unary_cases", "values"]
