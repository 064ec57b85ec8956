"""Subagents: in-process helpers of one session, which report to it and to nobody else."""
