#!/usr/bin/env python3
"""Measures ResTP, kernel MPTCP and noq side by side over two emulated paths and writes docs/results/multipath.md.

    bench/multipath.py [--rounds 5] [--cases equal,unequal,lossy,cut,unplugged,start] [--output FILE]

Needs what bench/path.py needs, a kernel with MPTCP and an `ip` tool that knows it. Exit codes are the same.
"""

import sys

import multipath_cases
import multipath_report
import rounds

CASES = ("equal", "unequal", "lossy", "cut", "unplugged", "start")

if __name__ == "__main__":
    sys.exit(
        rounds.main(__doc__.splitlines()[0], CASES, "multipath.md", multipath_cases.measure, multipath_report.page)
    )
