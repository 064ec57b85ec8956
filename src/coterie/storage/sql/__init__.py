"""The SQL texts that every database runs, and the one implementation of the transaction over them."""
