#!/usr/bin/env bash
# Builds and installs the Python package into an environment of its own (.venv) with `pip install .`, and runs its tests
# there. Packages are those of python/requirements.txt, by their hashes. Where they cannot be fetched, or Python is too
# old, it says so and does nothing: the package is optional, its environment large.
set -euo pipefail
cd "$(dirname "$0")/.."

skip() {
  printf '\nSKIPPED, NOT TESTED: the Python package (python/tests): %s\n\n' "$1" >&2
  exit 0
}

python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
  skip "it needs Python 3.11 or later, this is $(python3 --version)"
python3 -c 'import ensurepip' 2>/dev/null || skip "this Python cannot make environments (install python3-venv)"

pip=(.venv/bin/python -m pip --disable-pip-version-check --quiet)
wanted=$(sha256sum python/requirements.txt)
if [ "$(cat .venv/requirements.sha256 2>/dev/null)" != "$wanted" ]; then
  rm -rf .venv
  python3 -m venv .venv
  if ! "${pip[@]}" install --retries 1 --require-hashes --only-binary :all: -r python/requirements.txt; then
    # Is it the list that is wrong, or is nothing to be had?
    "${pip[@]}" download --retries 1 --no-deps --dest .venv/probe pip >/dev/null 2>&1 ||
      skip "its packages cannot be fetched; is there a network?"
    exit 1
  fi
  echo "$wanted" >.venv/requirements.sha256
fi

# The profile and the features of `cargo test`, so that what one has compiled the other need not. Maturin is the one from the list.
PATH="$PWD/.venv/bin:$PATH" "${pip[@]}" install --no-deps --no-build-isolation --force-reinstall \
  --config-settings=build-args="--profile dev --locked --features as-in-tests" .
.venv/bin/python -m pytest "$@" python/tests
