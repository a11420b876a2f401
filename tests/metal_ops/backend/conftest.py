import pytest

from metal_ops import backend


@pytest.fixture(autouse=True)
def _registered() -> None:
    backend.register()
