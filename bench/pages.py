#!/usr/bin/env python3
"""Regenerates the pages of docs/results on one revision, the one that is checked out.

    bench/pages.py [--only STEP[,STEP]…] [--measured] [--list]

Without options: every page whose numbers are of virtual time (the experiments, and what sums them up), in an hour or
less. With --measured also those that measure this machine, which wants to be quiet, and some of which want root or
other programs; what cannot be had is named, and its page stays. A tree with changes is refused: its pages would be of
no revision.

Everything runs in a clone of the revision below target/pages, so that nothing that changes here meanwhile gets into a
page, and a page is copied when its step has worked. docs/results/REVISION says which pages are of which revision.

Python's standard library only. Exit code 0: every page was made; 1: some were not, and it says which; 2: the tree has
changes, or there is no such step.
"""

import argparse
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = Path("docs/results")
CLONE = ROOT / "target/pages"
REPRODUCE = ["cargo", "run", "--locked", "--quiet", "--release", "--package", "restp-cli", "--", "reproduce"]


@dataclass(frozen=True)
class Step:
    """A command that writes pages, and whether its numbers are of this machine."""

    name: str
    command: list[str]
    measured: bool = False


STEPS = [
    Step("experiments", REPRODUCE),
    # These read the pages of the experiments.
    Step("adapt", ["python3", "bench/adapt.py"]),
    Step("voice", ["python3", "bench/voice.py"]),
    *(
        Step(name, ["python3", f"bench/{program}.py"], measured=True)
        for name, program in [
            ("performance", "run"),
            ("paths", "path"),
            ("multipath", "multipath"),
            ("kernel-parity", "parity"),
            ("handshakes", "handshakes"),
            ("notice", "notice"),
            ("browse", "browse"),
            ("tunnel", "tunnel"),
            ("sctp-usrsctp", "sctp"),
            ("folder", "folder"),
            ("survive", "survive"),
            ("cost", "cost"),
            ("air", "air"),
            ("sweep", "sweep"),
            ("air-sweep", "air_sweep"),
            ("flood", "flood"),
            ("ns3", "ns3"),
            ("ns3-speed", "ns3_speed"),
        ]
    ),
]


def main() -> int:
    arguments = parse_arguments()
    names = [name for given in arguments.only or [] for name in given.split(",")]
    unknown = [name for name in names if name not in {step.name for step in STEPS}]
    if unknown:
        known = ", ".join(step.name for step in STEPS)
        print(f"there is no step {', '.join(unknown)}; write some of: {known}", file=sys.stderr)
        return 2
    steps = [step for step in STEPS if (step.name in names if names else arguments.measured or not step.measured)]
    if arguments.list:
        print("\n".join(f"{step.name}: {' '.join(step.command)}" for step in steps))
        return 0
    changes = git(ROOT, "status", "--porcelain")
    if changes:
        print(
            f"the tree has changes, so that its pages would be of no revision; commit or undo them:\n{changes}",
            file=sys.stderr,
        )
        return 2
    revision = git(ROOT, "rev-parse", "HEAD")
    clone(revision)
    done = {step.name: run(step, revision) for step in steps}
    note(revision, [name for name, worked in done.items() if worked])
    failed = [name for name, worked in done.items() if not worked]
    print(f"revision {revision[:12]}: {len(done) - len(failed)} of {len(done)} steps made their pages", file=sys.stderr)
    if failed:
        print(f"not made, and left as they were: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", metavar="STEP", help="these steps alone, with a comma between them")
    parser.add_argument("--measured", action="store_true", help="also the pages that measure this machine")
    parser.add_argument("--list", action="store_true", help="say what would run")
    return parser.parse_args()


def git(folder: Path, *words: str) -> str:
    return subprocess.run(
        ["git", "-C", str(folder), *words], check=True, capture_output=True, text=True
    ).stdout.rstrip()


def clone(revision: str) -> None:
    """The revision, and nothing else, in a folder of its own. What was compiled there before is used again."""
    if not (CLONE / ".git").exists():
        CLONE.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["git", "clone", "--quiet", "--no-checkout", str(ROOT), str(CLONE)], check=True)
    git(CLONE, "fetch", "--quiet", str(ROOT), revision)
    restore(revision)


def restore(revision: str) -> None:
    git(CLONE, "checkout", "--quiet", "--force", "--detach", revision)
    git(CLONE, "clean", "--quiet", "-fd", "--", str(RESULTS))


def run(step: Step, revision: str) -> bool:
    """Does a step in the clone and copies the pages that it has changed, also where it says that claims fail."""
    if step.measured:
        restore(revision)  # they name the revision, and ask whether the tree is it
    started = time.monotonic()
    print(f"{step.name}: {' '.join(step.command)}", file=sys.stderr)
    before = contents()
    environment = {**os.environ, "CARGO_TARGET_DIR": str(ROOT / "target")}
    try:
        code = subprocess.run(step.command, cwd=CLONE, env=environment, check=False).returncode
    except OSError as error:
        print(f"{step.name}: {error}", file=sys.stderr)
        return False
    after = contents()
    changed = sorted(name for name, text in after.items() if before.get(name) != text)
    if code != 0 and not changed:
        print(f"{step.name}: exit code {code}, and no page", file=sys.stderr)
        return False
    for name in changed:
        target = ROOT / RESULTS / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(after[name])
    seconds = time.monotonic() - started
    print(f"{step.name}: {len(changed)} files changed in {seconds:.0f} s, exit code {code}", file=sys.stderr)
    return True


def contents() -> dict[str, bytes]:
    folder = CLONE / RESULTS
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


def note(revision: str, names: list[str]) -> None:
    """Which step was done last on which revision, a line each."""
    file = ROOT / RESULTS / "REVISION"
    lines = file.read_text().splitlines() if file.exists() else []
    known = dict(line.split(": ", 1) for line in lines if ": " in line)
    known |= {name: revision for name in names}
    order = [step.name for step in STEPS if step.name in known]
    if order:
        file.write_text("".join(f"{name}: {known[name]}\n" for name in order))


if __name__ == "__main__":
    sys.exit(main())
