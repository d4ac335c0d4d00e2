"""Do the statistical claims hold? Simulations that could refute them; ``make long-tests`` runs all of them.

``context_test``: false alarms and power of the test of context. ``verdict``: false alarms of `compare`.
``effects``: coverage of the intervals of `entourage effects`.
"""
