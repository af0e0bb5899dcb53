"""Compile the samplers by numba."""

import sys
import threading
from typing import Any

import numba
from numba.extending import register_jitable

# A function that compiled code calls; from Python it runs as it stands. A call that is
# not inlined counts the users of each of State's arrays, which costs more than most
# functions here do. So does a view of a row: inner loops take single numbers instead.
# Without wrappers for Python it compiles in less time.
compiled = register_jitable(
    error_model="numpy",
    forceinline=True,
    no_cpython_wrapper=True,
    no_cfunc_wrapper=True,
)
# a compiled function that Python calls
entry = numba.njit(cache=True, error_model="numpy", no_cfunc_wrapper=True)
# the terms of a sum may be added in any order, so that several are added at once
in_any_order = numba.njit(cache=True, fastmath={"reassoc", "nsz"})


def first_call(sampler: object, place: Any, *arguments: Any) -> int:
    """Call a function that numba loads or compiles; say so where that takes long."""
    name = type(sampler).__name__
    text = f"prslib: compiling {name} for this processor, once, for some seconds"
    notice = threading.Timer(1.0, print, [text], {"file": sys.stderr, "flush": True})
    notice.start()
    try:
        return place(*arguments)
    except Exception as error:
        error.add_note(f"if numba's cache is damaged, delete {place.stats.cache_path}")
        raise
    finally:
        notice.cancel()
