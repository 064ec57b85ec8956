"""Runs turns: a supervisor starts workers, workers perform effects."""
