"""What all doors share: the error table and the names on the wire."""
