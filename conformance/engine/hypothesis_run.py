"""Run a check over drawn cases, reproducibly: the same seed and versions give the same cases in any process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING
from unittest.mock import patch

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

    from conformance.case import Case


class Enough(BaseException):
    """Raised by a check to end the exploration; no Exception, which Hypothesis would take for a failure."""


def explore(strategy: SearchStrategy[Case], check: Callable[[Case], None], *, examples: int, seed: int) -> None:
    """Call ``check`` with up to ``examples`` cases and, once it raises, with ever simpler ones.

    Whatever ``check`` raised last, for each class of exception, was raised by the simplest case found. Returns
    normally whether or not a check failed, and as soon as one raises :class:`Enough`.
    """
    import hypothesis
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis.errors import Flaky

    from conformance.findings import Failing

    @hypothesis.seed(seed)
    @settings(
        max_examples=examples,
        database=None,
        deadline=None,
        derandomize=False,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
        print_blob=False,
        report_multiple_bugs=True,
    )
    @given(strategy)
    def body(case: Case) -> None:
        check(case)

    with _plain_generation():
        try:
            body()
        except* (Failing, Flaky, Enough):
            pass


@contextmanager
def _plain_generation() -> Iterator[None]:
    """Switch off two habits of Hypothesis for which there is no setting.

    It draws constants that it finds in the source of whatever modules are imported, so cases would depend on what else
    is loaded, hence on the number of jobs. And it spends a third of the cases on copies of earlier ones with parts
    repeated, which tell little of a kernel. Versions without these hooks do neither, or do it under another name; a
    test sees the first, and the second costs examples only.
    """
    from hypothesis.internal.conjecture import engine, providers

    with ExitStack() as stack:
        if hasattr(providers, "_get_local_constants"):
            none = type(providers.GLOBAL_CONSTANTS)()
            stack.callback(providers.CONSTANTS_CACHE.cache.clear)
            stack.enter_context(patch.object(providers, "_get_local_constants", lambda: none))
            providers.CONSTANTS_CACHE.cache.clear()
        if hasattr(engine.ConjectureRunner, "generate_mutations_from"):
            stack.enter_context(
                patch.object(engine.ConjectureRunner, "generate_mutations_from", lambda self, data: None)
            )
        yield
