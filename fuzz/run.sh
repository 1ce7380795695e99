#!/bin/sh
# Fuzzes one target, by default the wire format with ten million inputs, from the seeds in corpus/.
# usage: fuzz/run.sh [target [runs]]
set -eu
cd "$(dirname "$0")/.."
target=${1:-wire}
runs=${2:-10000000}
command -v cargo-fuzz >/dev/null || cargo install cargo-fuzz --locked
# What is found stays in the build folder; the seeds under version control are only read.
found="fuzz/target/corpus/$target"
mkdir -p "$found"
# No address sanitizer: the code under test has no unsafe block, and without it inputs run several times faster.
exec cargo +nightly fuzz run --sanitizer none "$target" "$found" "fuzz/corpus/$target" -- -runs="$runs" -max_len=1200
