#!/usr/bin/env python3
"""Measures ResTP, kernel TCP and quinn side by side on one emulated path and writes docs/results/paths.md.

    bench/path.py [--rounds 5] [--cases loss,share,outage,voice,first] [--output FILE]

Needs Linux, root, /dev/net/tun and the `ip` tool; without them it says so and measures nothing. Python's standard
library only. Beside the page it writes every sample as JSON. Exit code 0: everything was measured; 1: something could
not be, and the page says what; 2: nothing could.
"""

import sys

import path_cases
import path_report
import rounds

CASES = ("loss", "share", "outage", "voice", "first")

if __name__ == "__main__":
    sys.exit(rounds.main(__doc__.splitlines()[0], CASES, "paths.md", path_cases.measure, path_report.page))
