"""Run cases on the device under test, judge them, and class what fails against torch's CPU kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from conformance.devices.cpu import CpuDevice
from conformance.dtypes import dtype as dtype_of
from conformance.engine.coverage import Bools, uncovered
from conformance.engine.examine import Examined, examine
from conformance.engine.judged import parts_of, upcast, value_finding
from conformance.expectation import call_of
from conformance.findings import OF_ELEMENTS, Finding, Part
from conformance.formats import bits_of_array, component, widened
from conformance.known import Entry, FailureClass
from conformance.layout import view_of
from conformance.worker import InProcess
from conformance.worker.protocol import Tensor

if TYPE_CHECKING:
    from conformance.case import Case
    from conformance.devices.base import Device
    from conformance.op import Op

Masks = dict[Part, Bools]
"""Elements of some results and gradients."""


@dataclass
class Checker:
    """Checks cases on one device. ``known`` are the entries for its build, none to judge as if there were none."""

    device: Device
    known: Sequence[Entry] = ()

    def __post_init__(self) -> None:
        self._transport = InProcess(self.device)
        self._cpu = InProcess(CpuDevice())

    def check(self, op: Op, case: Case) -> Examined:
        """Run one case and find what is wrong with it; the property ``layout`` runs it a second time, contiguous."""
        examined = self._check_one(op, case, self._transport)
        if case.property != "layout" or examined.finding or examined.unsupported or examined.outcome.status != "ok":
            return examined
        plain = self._check_one(op, case.contiguous(), self._transport)
        if plain.finding is not None:
            message = f"contiguous, the same values: {plain.finding.message}"
            return replace(examined, finding=replace(plain.finding, message=message))
        return self._compared(examined, plain)

    def class_of(self, op: Op, case: Case, finding: Finding) -> FailureClass:
        """Class a failure: ``shared`` if torch's CPU kernel fails the same way, at the same element if it is about one.

        On the device ``cpu`` itself every failure is shared by definition.
        """
        if self.device.name == "cpu":
            return "shared"
        on_cpu = self._check_one(op, case, self._cpu, known=())
        if finding.kind in OF_ELEMENTS and finding.element is not None and on_cpu.judged:
            failing = on_cpu.failing.get(finding.part)
            return "shared" if failing is not None and failing.reshape(-1)[finding.element] else "device-only"
        if case.property == "layout":
            on_cpu = Checker(CpuDevice()).check(op, case)
        return "shared" if on_cpu.finding is not None and on_cpu.finding.kind == finding.kind else "device-only"

    def by_class(self, op: Op, examined: Examined) -> dict[FailureClass, Masks]:
        """Split the failing elements by whether torch's CPU kernel fails there too; only classes that have any."""
        if self.device.name == "cpu":
            return {"shared": examined.failing} if examined.failing else {}
        on_cpu = self._check_one(op, examined.case, self._cpu, known=()).failing
        split: dict[FailureClass, Masks] = {"device-only": {}, "shared": {}}
        for part, failing in examined.failing.items():
            shared = failing & on_cpu[part] if part in on_cpu else np.zeros_like(failing)
            split["device-only"][part], split["shared"][part] = failing & ~shared, shared
        kept = {name: {part: mask for part, mask in masks.items() if mask.any()} for name, masks in split.items()}
        return {name: masks for name, masks in kept.items() if masks}

    def narrowed(self, op: Op, examined: Examined, wanted: FailureClass) -> Examined:
        """Keep of a finding about values what is of the class ``wanted``; one of another kind counts as device-only.

        On the device ``cpu``, where all is shared, everything is kept.
        """
        finding = examined.finding
        if finding is None or self.device.name == "cpu":
            return examined
        if finding.kind not in OF_ELEMENTS:
            return examined if wanted == "device-only" else replace(examined, finding=None)
        if not examined.failing:
            # About the contiguous call of the property ``layout``.
            kept = finding if self.class_of(op, examined.case, finding) == wanted else None
            return replace(examined, finding=kept)
        masks = self.by_class(op, examined).get(wanted, {})
        findings = [value_finding(examined.judged_part(part), mask) for part, mask in masks.items()]
        return replace(examined, finding=findings[0] if findings else None)

    def _check_one(self, op: Op, case: Case, transport: InProcess, known: Sequence[Entry] | None = None) -> Examined:
        call = call_of(op, case)
        return examine(op.on(self.device.name), case, call, transport.run(call), self.known if known is None else known)

    def _compared(self, strided: Examined, plain: Examined) -> Examined:
        """Compare the bits of two results of the same values; any NaN equals any NaN."""
        if plain.outcome.status != "ok" or not getattr(self.device, "same_bits_in_any_layout", True):
            return strided
        case = strided.case
        used = dict.fromkeys((*strided.known, *plain.known))
        first = upcast(case.tensors[0].materialise()) if case.tensors else None
        others = dict(parts_of(plain.outcome, case.requires_grad))
        finding: Finding | None = None
        for part, one in parts_of(strided.outcome, case.requires_grad):
            if part not in others:
                continue
            differing, ids = uncovered(self.known, case, "layout", part, _differing(one, others[part]), first)
            used.update(dict.fromkeys(ids))
            if differing.any() and finding is None:
                finding = _layout_finding(part, one, others[part], differing)
        return replace(strided, finding=finding, known=tuple(used))


def _differing(one: Tensor, other: Tensor) -> NDArray[np.bool_]:
    """Elements whose bits differ, unless both are NaN."""
    dtype = dtype_of(one.dtype)
    left, right = view_of(one), view_of(other)
    unequal = bits_of_array(left, dtype) != bits_of_array(right, dtype)
    differing: NDArray[np.bool_] = unequal.reshape(*left.shape, component(dtype).count).any(axis=-1)
    if dtype.precision:
        differing &= ~(np.isnan(widened(left, dtype)) & np.isnan(widened(right, dtype)))
    return differing


def _layout_finding(part: Part, one: Tensor, other: Tensor, differing: NDArray[np.bool_]) -> Finding:
    element = int(np.flatnonzero(differing)[0])
    index = np.unravel_index(element, differing.shape)
    count = int(np.count_nonzero(differing))
    return Finding(
        "layout",
        f"{part.heading}{count} of {differing.size} elements differ from the contiguous call; "
        f"first at {list(map(int, index))}: strided gives {view_of(one)[index]}, contiguous {view_of(other)[index]}",
        element,
        part,
    )
