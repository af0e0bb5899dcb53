"""What tests register, forgotten afterwards."""

from contextlib import ExitStack, contextmanager
from unittest.mock import patch


@contextmanager
def forgetting():
    """Forget at the end what has been registered within."""
    from prslib import runs

    tables = [*runs.TABLES.values(), runs.REGISTERED, runs.USER_CODE]
    with ExitStack() as stack:
        for table in tables:
            stack.enter_context(patch.dict(table))
        yield
    runs.fingerprint.cache_clear()
    runs.code_of.cache_clear()
