"""``python -m restp report RESULTS``: what the command ``restp`` leaves to Python."""

import argparse
import json
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit codes are those of the command: 0 done, 1 failed in operation, 2 bad usage or bad input."""
    parser = argparse.ArgumentParser(prog="restp", description="Reports of results.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    command = commands.add_parser("report", help="write one self-contained HTML page of results")
    command.add_argument("results", help="the folder of a sweep, or a file of what restp sim --json printed")
    command.add_argument("--output", "-o", help="where the page goes; RESULTS.html when absent")
    command.add_argument("--scenario", help="the scenario file of JSON lines, to have its text on the page")
    command.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args(arguments)
    from restp.reports import report

    try:
        page = report(given.results, given.output, scenario=given.scenario)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except (OSError, ImportError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if given.json:
        print(json.dumps({"report": str(page), "bytes": page.stat().st_size}))
    else:
        print(page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
