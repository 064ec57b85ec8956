"""What Coterie costs, beside its budgets: `make bench`, or `python -m benchmarks --help`.

Each module with a `run` answers one question. What depends on the machine stands beside a baseline of the same run,
measured in turns with it, so that noise hits both.
"""
