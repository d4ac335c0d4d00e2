"""``python -m benchmarks.scale NAME ...`` runs ``benchmarks.scale.NAME``."""

import sys
from importlib import import_module
from pathlib import Path

NAMES = sorted(
    path.stem for path in Path(__file__).parent.glob("[!_]*.py") if path.stem not in ("data", "record")
)

if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in NAMES:
        sys.exit(f"Name one of {', '.join(NAMES)}; {NAMES[0]} --help has its options.")
    name = sys.argv.pop(1)
    sys.argv[0] = f"python -m benchmarks.scale {name}"
    import_module(f"benchmarks.scale.{name}").main()
