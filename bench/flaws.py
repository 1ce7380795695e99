#!/usr/bin/env python3
"""Plants the flaws of bench/flaws.toml in a copy of the seal, one at a time, and prints who notices each.

    bench/flaws.py [--runs N] [--seed N] [--flaw NAME ...] [--without-tests]

The copy is built once: the environment variable FLAW says which flaw it has. Exit code 1: nobody notices one of them.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

from report import ROOT, table

TREE = ROOT / "target/flaws"
SEAL = TREE / "crates/restp-seal/src"

PLANTED = """
/// Is this flaw planted?
pub(crate) fn planted(name: &str) -> bool {
    static FLAW: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    FLAW.get_or_init(|| std::env::var("FLAW").unwrap_or_default()) == name
}
"""


def main() -> int:
    arguments = parse_arguments()
    flaws = tomllib.loads((ROOT / "bench/flaws.toml").read_text())["flaw"]
    plant(flaws)
    program = build()
    chosen = [flaw for flaw in flaws if not arguments.flaw or flaw["name"] in arguments.flaw]
    heads = ["Flaw: the seal", f"Laws of {arguments.runs} runs from seed {arguments.seed} on", "Tests of the seal"]
    rows, missed = [], 0
    for flaw in [{"name": "", "what": "(none)"}, *chosen]:
        laws = broken(program, flaw["name"], arguments)
        tests = [] if arguments.without_tests else failing(flaw["name"])
        missed += not (laws or tests) and flaw["name"] != ""
        told = ", ".join(f"`{law}` {count}" for law, count in laws.most_common()) or "–"
        rows.append((flaw["what"], told, f"{len(tests)}: `{tests[0]}`" if tests else "–"))
        print(f"{flaw['name']}: {told}; {len(tests)} tests", file=sys.stderr)
    print(table(heads, rows))
    return 1 if missed else 0


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=3000, help="random runs with each flaw")
    parser.add_argument("--seed", type=int, default=1, help="of the first run")
    parser.add_argument("--flaw", metavar="NAME", action="append", default=[], help="only this one; may be repeated")
    parser.add_argument("--without-tests", action="store_true", help="only the laws")
    return parser.parse_args()


def plant(flaws: list[dict]) -> None:
    """Copies the tree, and puts a choice in the place of each expression. Files that stay the same keep their time."""
    words = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    texts = {name: (ROOT / name).read_bytes() for name in names.split("\0") if name and (ROOT / name).is_file()}
    for flaw in flaws:
        for edit in flaw["edits"]:
            name = f"crates/restp-seal/src/{edit['file']}"
            texts[name] = edited(texts[name].decode(), flaw["name"], edit).encode()
    texts["crates/restp-seal/src/lib.rs"] += PLANTED.encode()
    for name, text in texts.items():
        file = TREE / name
        if not file.is_file() or file.read_bytes() != text:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text)


def edited(text: str, name: str, edit: dict[str, str]) -> str:
    begin = text.find(edit.get("after", ""))
    code, flawed = edit["code"], edit["flawed"]
    # A binding, or the head of a match, keeps its words in front of the choice.
    words = re.match(r"(let \w+ = |match )?", code)[0]
    choice = f"{words}(if crate::planted({json.dumps(name)}) {{ {flawed[len(words):]} }} else {{ {code[len(words):]} }})"
    if begin < 0 or code not in text[begin:] or "after" not in edit and text.count(code) != 1:
        sys.exit(f"{edit['file']} does not say once: {code}")
    return text[:begin] + text[begin:].replace(code, choice, 1)


def environment(flaw: str) -> dict[str, str]:
    """With a folder for what is built that the copy has alone: the crates of both trees have the same names."""
    return {**os.environ, "FLAW": flaw, "CARGO_TARGET_DIR": str(TREE / "target")}


def build() -> Path:
    words = ["cargo", "build", "--locked", "--profile", "chaos", "--package", "restp-cli", "--message-format", "json"]
    done = subprocess.run(words, cwd=TREE, env=environment(""), check=True, stdout=subprocess.PIPE, text=True)
    built = [json.loads(line) for line in done.stdout.splitlines()]
    return Path(next(one["executable"] for one in built if one.get("executable") and one["target"]["name"] == "restp"))


def broken(program: Path, flaw: str, arguments: argparse.Namespace) -> Counter[str]:
    """How many runs broke which law."""
    words = [program, "chaos", "--json", "--seed", str(arguments.seed), "--runs", str(arguments.runs)]
    done = subprocess.run(words, env=environment(flaw), stdout=subprocess.PIPE, text=True)
    told = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return Counter(one["law"] for one in told if "law" in one)


def failing(flaw: str) -> list[str]:
    """Tests that fail."""
    words = ["cargo", "test", "--locked", "--package", "restp-seal", "--no-fail-fast", "--quiet"]
    done = subprocess.run(words, cwd=TREE, env=environment(flaw), capture_output=True, text=True)
    return sorted(set(re.findall(r"^---- (\S+) stdout ----$", done.stdout, re.MULTILINE)))


if __name__ == "__main__":
    sys.exit(main())
