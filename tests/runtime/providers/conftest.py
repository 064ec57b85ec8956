"""The provider that is tested, with bounds that a test can wait for."""

from collections.abc import AsyncIterator

import pytest
from tests.runtime.providers.vendor import BOUND_S

from coterie.runtime.providers.direct import DirectProvider


@pytest.fixture
async def provider() -> AsyncIterator[DirectProvider]:
    made = DirectProvider(connect_timeout_s=BOUND_S, idle_timeout_s=BOUND_S)
    yield made
    await made.close()
