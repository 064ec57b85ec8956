"""Public doubles and contract suites."""
