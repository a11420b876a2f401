"""Run cases on the device under test, judge them, and class what fails against torch's CPU kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from conformance.devices.cpu import CpuDevice
from conformance.dtypes import dtype as dtype_of
from conformance.engine.examine import Examined, call_of, examine, upcast, value_finding
from conformance.findings import Finding
from conformance.formats import bits_of_array, component
from conformance.known import Entry, FailureClass
from conformance.layout import view_of
from conformance.worker import InProcess
from conformance.worker.protocol import Tensor

if TYPE_CHECKING:
    from conformance.case import Case
    from conformance.devices.base import Device
    from conformance.op import Op


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
        failing = self.failing_on_cpu(op, case)
        if finding.kind == "value" and finding.element is not None and failing is not None:
            return "shared" if bool(failing.reshape(-1)[finding.element]) else "device-only"
        on_cpu = Checker(CpuDevice()).check(op, case).finding
        return "shared" if on_cpu is not None and on_cpu.kind == finding.kind else "device-only"

    def by_class(self, op: Op, examined: Examined) -> dict[FailureClass, NDArray[np.bool_]]:
        """Split the failing elements by whether torch's CPU kernel fails there too; only classes that have any."""
        assert examined.failing is not None
        failing = examined.failing
        if self.device.name == "cpu":
            return {"shared": failing}
        on_cpu = self.failing_on_cpu(op, examined.case)
        shared = failing & on_cpu if on_cpu is not None else np.zeros_like(failing)
        split: dict[FailureClass, NDArray[np.bool_]] = {"device-only": failing & ~shared, "shared": shared}
        return {failure_class: mask for failure_class, mask in split.items() if mask.any()}

    def narrowed(self, op: Op, examined: Examined, wanted: FailureClass) -> Examined:
        """Keep of a finding about values what is of the class ``wanted``; one of another kind counts as device-only.

        On the device ``cpu``, where all is shared, everything is kept.
        """
        finding = examined.finding
        if finding is None or self.device.name == "cpu":
            return examined
        if finding.kind != "value":
            return examined if wanted == "device-only" else replace(examined, finding=None)
        if examined.judgement is None or examined.failing is None or not examined.failing.any():
            # About the contiguous call of the property ``layout``.
            kept = finding if self.class_of(op, examined.case, finding) == wanted else None
            return replace(examined, finding=kept)
        mask = self.by_class(op, examined).get(wanted)
        return replace(examined, finding=None if mask is None else value_finding(examined.judgement, mask))

    def failing_on_cpu(self, op: Op, case: Case) -> NDArray[np.bool_] | None:
        """Elements that torch's CPU kernel has outside the bound; None if its result cannot be compared."""
        return self._check_one(op, case, self._cpu, known=()).failing

    def _check_one(self, op: Op, case: Case, transport: InProcess, known: Sequence[Entry] | None = None) -> Examined:
        call = call_of(op, case)
        return examine(op, case, call, transport.run(call), self.known if known is None else known)

    def _compared(self, strided: Examined, plain: Examined) -> Examined:
        """Compare the bits of two results of the same values; any NaN equals any NaN."""
        if plain.outcome.status != "ok" or not getattr(self.device, "same_bits_in_any_layout", True):
            return strided
        one, other = strided.outcome.outputs[0], plain.outcome.outputs[0]
        differing = _differing(one, other)
        used = list(dict.fromkeys((*strided.known, *plain.known)))
        first = upcast(strided.case.tensors[0].materialise()) if strided.case.tensors else None
        for entry in self.known if differing.any() else ():
            covered = differing & np.asarray(entry.covers(strided.case, "layout", first))
            if covered.any():
                used.append(entry.id)
                differing = differing & ~covered
        finding = _layout_finding(one, other, differing) if differing.any() else None
        return replace(strided, finding=finding, known=tuple(used))


def _differing(one: Tensor, other: Tensor) -> NDArray[np.bool_]:
    """Elements whose bits differ, unless both are NaN."""
    dtype = dtype_of(one.dtype)
    left, right = view_of(one), view_of(other)
    unequal = bits_of_array(left, dtype) != bits_of_array(right, dtype)
    differing: NDArray[np.bool_] = unequal.reshape(*left.shape, component(dtype).count).any(axis=-1)
    if dtype.kind in ("float", "complex"):
        differing &= ~(np.isnan(left) & np.isnan(right))
    return differing


def _layout_finding(one: Tensor, other: Tensor, differing: NDArray[np.bool_]) -> Finding:
    element = int(np.flatnonzero(differing)[0])
    index = np.unravel_index(element, differing.shape)
    count = int(np.count_nonzero(differing))
    return Finding(
        "layout",
        f"{count} of {differing.size} elements differ from the contiguous call; first at {list(map(int, index))}: "
        f"strided gives {view_of(one)[index]}, contiguous {view_of(other)[index]}",
        element,
    )
