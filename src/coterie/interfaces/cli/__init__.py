"""The terminal: dials a host through `/rpc` and shows what it answers. It decides nothing and opens no database."""
