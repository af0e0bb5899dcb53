"""Write what PRS decides on the embedded streams: python tests/helpers/conformance_vectors.py."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from prslib.conformance import VECTORS, Stream, read_vectors
from prslib.paths import replacing
from prslib.samplers.reference import ReferencePRS


def steps(stream: Stream) -> Iterator[dict]:
    """Yield what the reference decides about each sample, quantity by quantity."""
    plain = stream.make(ReferencePRS, 0, rho=stream.rho)
    for y, u in zip(stream.labels, stream.uniforms, strict=True):
        step = {"labels": np.flatnonzero(y), "uniforms": u}
        if len(plain) == stream.size:
            step["partition"] = p = plain.partition(y)
            step["acceptance"] = plain.acceptance(y, p)
            step["surplus"] = plain.surplus(p)
            step["class_probability"] = plain.class_probability(step["surplus"])
            if u[0] < step["acceptance"]:
                step["class"] = plain.draw_class(step["class_probability"], u[1])
                scarce = plain.scarce(y, step["surplus"])
                step["candidates"] = plain.candidates(step["class"], scarce)
                step["distance"] = plain.distances(
                    step["candidates"], step["partition"]
                )
                step["leaving"] = plain.leaving(step["candidates"], step["distance"])
        step["slot"] = plain.choose(y, u)
        plain.follow(y, step["slot"])
        yield {name: _plain(value) for name, value in step.items()}


def write_vectors(target: Path = VECTORS) -> None:
    """Decide the embedded streams again and write the file anew."""
    with gzip.open(VECTORS, "rt", encoding="utf-8") as file:
        lines = [json.loads(next(file))]  # what each field means
    for stream, recorded in read_vectors():
        size = {"size": stream.size, "num_classes": stream.labels.shape[1]}
        fields = set().union(*recorded)  # large streams have the slots alone
        lines.append({"stream": stream.name, **size, "rho": stream.rho})
        for step in steps(stream):
            lines.append({name: step[name] for name in step if name in fields})
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    with replacing(target) as file:
        file.write(gzip.compress(text.encode(), mtime=0))


def _plain(value):
    """Round numbers to six digits, and write whole ones as such."""
    value = value.tolist() if isinstance(value, np.generic | np.ndarray) else value
    if isinstance(value, list):
        return [_plain(x) for x in value]
    value = float(f"{value:.6g}")
    return int(value) if value == int(value) else value


if __name__ == "__main__":
    write_vectors()
