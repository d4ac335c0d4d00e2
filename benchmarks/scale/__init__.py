"""Beyond one process: ``python -m benchmarks.scale predict``, rows in ``benchmarks/results/scale.jsonl``."""
