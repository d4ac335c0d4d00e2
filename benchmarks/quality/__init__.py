"""How well the tests test: branch coverage by room (``make coverage``) and mutation testing (``make mutation``)."""
