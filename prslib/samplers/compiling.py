"""Compile the samplers by numba; make a damaged cache of compiled code again."""

import sys
import threading
import warnings
from pathlib import Path
from typing import Any

import numba
from numba.core.errors import NumbaError
from numba.extending import register_jitable

# A function that compiled code calls; from Python it runs as it stands. A call that is
# not inlined counts the users of each of State's arrays, which costs more than most
# functions here do. Without wrappers for Python it compiles in less time.
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
    """Call a function that numba loads or compiles; a damaged cache is made again."""
    notice = threading.Timer(1.0, tell_that_it_compiles, [sampler])
    notice.start()
    try:
        return place(*arguments)
    except NumbaError:  # the arguments cannot be compiled
        raise
    except Exception as error:  # whatever a damaged file leads to
        index = [*Path(place.stats.cache_path).glob("*.nbi")]
        if place.overloads or not index:  # it was loaded, and failed by itself
            raise
        warnings.warn(
            f"expected numba's cache in {place.stats.cache_path} as numba wrote it, "
            f"got other files ({error}); compiling again",
            stacklevel=5,
        )
        for file in index:
            file.unlink(missing_ok=True)
        return place(*arguments)
    finally:
        notice.cancel()


def tell_that_it_compiles(sampler: object) -> None:
    """Say what the first call waits for."""
    name = type(sampler).__name__
    print(
        f"prslib: compiling {name} for this processor, once, for some seconds",
        file=sys.stderr,
        flush=True,
    )
