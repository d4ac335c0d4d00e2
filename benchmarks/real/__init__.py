"""The table of real data: ``python -m benchmarks.real``."""
