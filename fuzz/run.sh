#!/bin/sh
# Fuzzes one target, or each in turn, guided by coverage, from the seeds in corpus/.
# usage: fuzz/run.sh [target|all [seconds]]
set -eu
cd "$(dirname "$0")/.."
targets=${1:-all}
seconds=${2:-1200}
command -v cargo-fuzz >/dev/null || cargo install cargo-fuzz --locked
[ "$targets" != all ] || targets="wire connection packet sealed composition itp streams scenario files"
# One function after another, and not one large one: this is built often and optimized enough.
export CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16
for target in $targets; do
  # What is found stays in the build folder; the seeds under version control are only read.
  found="fuzz/target/corpus/$target"
  mkdir -p "$found"
  seeds="fuzz/corpus/$target"
  [ "$target" != scenario ] || seeds="scenarios/restp scenarios/chaos"
  # No address sanitizer: the code under test has no unsafe block, and without it inputs run several times faster.
  # shellcheck disable=SC2086
  cargo +nightly fuzz run --sanitizer none --features libfuzzer "$target" "$found" $seeds -- \
    -max_total_time="$seconds" -max_len=4096 -timeout=20 -rss_limit_mb=1024 -print_final_stats=1
done
