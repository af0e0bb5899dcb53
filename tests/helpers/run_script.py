"""A script that trains runs of its own sampler, to be disturbed by tests.

``python run_script.py SEEDS STEPS_TO_LEARN_AGAIN``: it prints what came of it.
"""

import sys

from prslib import RunConfig, Sampler, register, run_all


class Newest(Sampler):
    """A sampler that only this script knows: it keeps every sample that comes."""

    def choose(self, y, u):
        return len(self) if len(self) < self.size else int(u[0] * self.size)


def configs(seeds, epochs):
    fields = {"dataset": "imbal-digits-tiny", "batch_size": 40, "epochs": epochs}
    return [RunConfig(method="Newest", seed=seed, **fields) for seed in range(seeds)]


if __name__ == "__main__":
    register("Newest", Newest)
    seeds, epochs = map(int, sys.argv[1:3])
    try:
        runs = run_all(configs(seeds, epochs), workers=2)
        print(f"{len(runs)} runs", flush=True)
    except KeyboardInterrupt as error:
        print(error, flush=True)
        sys.exit(130)
    except RuntimeError as error:
        print(type(error).__name__, str(error).splitlines()[0], flush=True)
        sys.exit(1)
