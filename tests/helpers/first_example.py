"""Run the README's first example of a sampler: ``python first_example.py README.md``."""

import re
import sys
from pathlib import Path

text = Path(sys.argv[1]).read_text(encoding="utf-8")
blocks = re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
first = next(code for code in blocks if "make_sampler" in code and "torch" not in code)
exec(compile(first, sys.argv[1], "exec"), {"__name__": "__main__"})
heavy = {"pandas", "scipy", "sklearn", "torch", "joblib", "tqdm"} & set(sys.modules)
sys.exit(f"expected numpy and numba alone, got {', '.join(sorted(heavy))} too" if heavy else 0)
