"""SQLite: one writer thread, group commit, separate readers."""
