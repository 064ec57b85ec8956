"""The parts of the store contract, one for each kind of promise.

`coterie.testing.store_contract` puts them together.
"""
