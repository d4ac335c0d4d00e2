"""Run the command line within the test's process."""

import sys
from unittest.mock import patch

from entourage.cli import main


def run(capsys, *arguments):
    """Run the command line; return its exit code, output and error."""
    with patch.object(sys, "argv", ["entourage", *map(str, arguments)]):
        try:
            main()
            code = 0
        except SystemExit as stop:
            code = stop.code or 0
    captured = capsys.readouterr()
    return code, captured.out, captured.err
