"""Adapters to the vendors of models."""
