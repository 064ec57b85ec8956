"""PostgreSQL: a connection to each thread, row locks in one order, use cases that begin again."""
