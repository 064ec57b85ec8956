"""The ledger on disk."""
