"""Runs of what the paper claims, and of the demonstration."""
