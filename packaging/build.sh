#!/usr/bin/env bash
# What is handed out, into target/packages: packaging/build.sh deb|wheel
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
out=$target/packages
mkdir -p "$out"

# Most bytes of the command: packages come over the links that it is for.
most=15000000

# Of functions whose code is equal one is enough: 150 kB. Nothing here tells functions apart by their addresses, which Rust promises nothing about.
# The linker is LLVM's, which can do that, on x86-64.
fold=()
[ "$(uname -m)" = x86_64 ] && fold=(-C link-arg=-Wl,--icf=all)
# Relocations in their short form, which the loader of glibc knows since 2.36: 400 kB.
pack=(-C link-arg=-Wl,-z,pack-relative-relocs)

# light FILE: is it small enough?
light() {
  local size
  size=$(stat -c %s "$1")
  echo "$1: $size bytes"
  [ "$size" -le "$most" ] || { echo "build: that is more than $most bytes; optimize for size what no packet passes through (Cargo.toml, profile dist)" >&2 && exit 1; }
}

# written RESTP MAN COMPLETIONS: what the command RESTP writes of itself.
written() {
  rm -rf "$2" "$3" && mkdir -p "$2" "$3"
  "$1" man "$2"
  for shell in bash zsh fish; do "$1" completions "$shell" >"$3/restp.$shell"; done
}

deb() {
  command -v cargo-deb >/dev/null || cargo install --locked cargo-deb@3.8.0
  cargo rustc --locked --profile dist --package restp-cli --bin restp -- "${fold[@]}" "${pack[@]}"
  light "$target/dist/restp"
  # What the manifest of restp-cli lists under these names.
  local made=target/packaging
  rm -rf "$made" && mkdir -p "$made"
  cp "$target/dist/restp" "$made/restp"
  written "$made/restp" "$made/man" "$made/completions"
  cargo deb --locked --no-build --profile dist --package restp-cli --output "$out"
}

wheel() {
  local share=packaging/wheel/data/share
  rm -rf "$share/restp/scenarios"
  git archive HEAD scenarios | tar -x -C "$share/restp"
  cargo build --quiet --locked --package restp-cli --bin restp # any build writes the same
  written "$target/debug/restp" "$share/man/man1" "$share/restp/completions"
  command -v maturin >/dev/null || { echo "wheel: pip install maturin" >&2 && exit 1; }
  maturin build --locked --profile dist --out "$out"
}

case ${1:-} in
  deb) deb ;;
  wheel) wheel ;;
  *) echo "usage: packaging/build.sh deb|wheel" >&2 && exit 2 ;;
esac
ls -l "$out"
