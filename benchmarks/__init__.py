"""What Coterie costs, beside its budgets: `make bench`, or `python -m benchmarks --help`.

Each module with a `run` answers one question. Every figure that depends on the machine stands beside a baseline that was
measured in the same run, in turns with it, so that noise hits both.
"""
