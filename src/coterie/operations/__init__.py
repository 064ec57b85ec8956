"""The catalogue of operations, `perform`, and the verbs that sleep."""
