"""The command line ``entourage``: what each command prints and writes."""

from entourage.cli.program import app, main

__all__ = ["app", "main"]
