"""Axes are checked on every call while the tests run; must come before entourage is imported."""

from jaxtyping import install_import_hook

install_import_hook(["entourage.losses", "entourage.nets"], "beartype.beartype")
