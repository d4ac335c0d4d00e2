"""A plugin of pytest for ``make mutation``: quick tests first, and few examples a law; the same ones for each mutant.

Each mutant is tested until the first failure. Hand-worked values kill most, in milliseconds; laws kill others, and five
drawn examples nearly always do what twenty-five would.
"""

import os

from hypothesis import settings

MOST_EXAMPLES = 5


def pytest_collection_modifyitems(items):
    for item in items:
        function = getattr(item, "function", None)
        own = getattr(function, "_hypothesis_internal_use_settings", None)
        if own is not None:
            few = min(own.max_examples, MOST_EXAMPLES)
            function._hypothesis_internal_use_settings = settings(
                own, max_examples=few, derandomize=True, database=None
            )
    items.sort(key=lambda item: (hasattr(item.function, "hypothesis"), "laws" in item.nodeid))


def pytest_report_header():
    return f"mutant: {os.environ.get('MUTANT_UNDER_TEST') or 'none'}"
