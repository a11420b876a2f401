"""The suite as tests for pytest; see :mod:`conformance.pytest_plugin`."""
