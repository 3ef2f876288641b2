# SPDX-License-Identifier: Apache-2.0
"""Fixtures of pytest; the wheel registers them.

    def test_add(cadre_run):
        assert cadre_run.Group(Counter, replicas=2).add(1) == [1, 2]

cadre_run      a local run of its own for each test: cadre.local(). Options: @pytest.mark.cadre_local(gpus=4, nodes=2)
cadre_session  one for all tests, which is faster
"""

import pytest

from . import _local


def pytest_configure(config):
    config.addinivalue_line("markers", "cadre_local(**options): options of cadre.local() for the fixture cadre_run")


@pytest.fixture
def cadre_run(request):
    """A client of a local run, which ends with the test."""
    marker = request.node.get_closest_marker("cadre_local")
    with _local.local(**(marker.kwargs if marker else {})) as client:
        yield client


@pytest.fixture(scope="session")
def cadre_session():
    """A client of one local run for all tests. Its groups stay until a test closes them, or until the end."""
    with _local.local() as client:
        yield client
