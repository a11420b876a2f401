"""Hypothesis strategies of cases, which catalogues compose. Each draws recipes, never arrays."""

from conformance.strategies.concatenation import cat_cases
from conformance.strategies.contraction import aligned_layouts, contraction_cases, group_cases, scaled_cases
from conformance.strategies.elementwise import Operand, elementwise_cases
from conformance.strategies.gradients import with_gradients
from conformance.strategies.layouts import layouts
from conformance.strategies.numbers import numbers
from conformance.strategies.out import with_out
from conformance.strategies.pads import pad_cases
from conformance.strategies.rarely import one_in
from conformance.strategies.reduction import reduction_cases
from conformance.strategies.shapes import shapes
from conformance.strategies.values import values

__all__ = [
    "Operand",
    "aligned_layouts",
    "cat_cases",
    "contraction_cases",
    "elementwise_cases",
    "group_cases",
    "layouts",
    "numbers",
    "one_in",
    "pad_cases",
    "reduction_cases",
    "scaled_cases",
    "shapes",
    "values",
    "with_gradients",
    "with_out",
]
