"""Tells a person who is not looking what happens, by commands and addresses of their own choice."""
