#!/usr/bin/env bash
# Installs what packaging/build.sh made, and what `cargo install` makes, into a bare Debian, as root, and tries what each brings there: the
# command, its manual, completion of words, units. Each has a minute, downloads and compilers not counted.
# Usage: packaging/check.sh [PAGE]; PAGE is written when everything works, such as docs/results/install.md.
# Needs mmdebstrap, systemd and a network for the bare system and what the wheel depends on.
set -euo pipefail
cd "$(dirname "$0")/.."
page=${1:-}
target=$(realpath "${CARGO_TARGET_DIR:-target}")
packages=$target/packages
deb=$(ls -t "$packages"/restp_*.deb | head -1)
wheel=$(ls -t "$packages"/restp-*.whl | head -1)
root=$(mktemp -d)
trap 'umount "$root/proc" 2>/dev/null; rm -rf --one-file-system "$root"' EXIT
inside() { chroot "$root" /usr/bin/env -i PATH=/root/venv/bin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 bash -euo pipefail -c "$1"; }

rows=()
most_seconds=60
# way NAME SCRIPT: the script installs and tries; how long both took goes to the page.
way() {
  local began seconds
  echo "$1:"
  began=$(date +%s)
  inside "$2"
  seconds=$(($(date +%s) - began))
  rows+=("| $1 | $seconds | $3 |")
  [ "$seconds" -le "$most_seconds" ] || { echo "check: $1 took $seconds s" >&2 && exit 1; }
}

# MMDEBSTRAP: further options, such as for a mirror that stands still.
# shellcheck disable=SC2086
mmdebstrap ${MMDEBSTRAP:-} --variant=minbase --include=man-db,bash-completion,zsh,fish,python3-venv,ca-certificates,systemd "${SUITE:-stable}" "$root" >/dev/null
mount -t proc proc "$root/proc"
# A minimal system leaves manual pages out.
rm -f "$root"/etc/dpkg/dpkg.cfg.d/*
cp "$deb" "$wheel" "$root/root/"
# pip may have an index of its own.
cp /etc/pip.conf "$root/etc/" 2>/dev/null || true
# and this machine an authority of its own
cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/" 2>/dev/null || true
cp /etc/resolv.conf "$root/etc/" 2>/dev/null || true
cat >"$root/root/completes.sh" <<'COMPLETES'
# completes.sh FOLDER: each shell completes `restp se` with what lies there, by the names of the shells.
set -eu
bash -c '. /usr/share/bash-completion/bash_completion; . '"$1"'/restp.bash
  COMP_WORDS=(restp se) COMP_CWORD=1 COMP_LINE="restp se"; _restp restp se restp; printf "%s\n" "${COMPREPLY[@]}"' | grep -qx send
fish -c "source $1/restp.fish; complete --do-complete 'restp se'" | grep -q ^send
zsh -f -c "autoload -U compinit && compinit -u -D; . $1/restp.zsh; typeset -f _restp >/dev/null"
COMPLETES
transfer='cd /tmp; rm -rf box; mkdir box; head -c 3000000 /dev/urandom >file
  restp recv --dir box --listen 127.0.0.1:0 --once >ticket & receiver=$!
  until grep -q ticket: ticket; do sleep 0.1; done
  restp send file "$(sed "s/ticket: //" ticket)"; wait $receiver; cmp file box/file'
manual='man restp | grep -q "Moves data over links"; man restp-send | grep -q "Send files and folders"'

way "the Debian package" "dpkg --install /root/$(basename "$deb") >/dev/null; restp --version; $manual
  mkdir -p /tmp/words; cp /usr/share/bash-completion/completions/restp /tmp/words/restp.bash
  cp /usr/share/fish/vendor_completions.d/restp.fish /tmp/words/; cp /usr/share/zsh/vendor-completions/_restp /tmp/words/restp.zsh
  sh /root/completes.sh /tmp/words
  systemd-analyze verify /usr/lib/systemd/system/restp-{recv,serve,relay}.service /usr/lib/systemd/system/restp-serve.socket
  cd /root; restp reproduce e8 --runs 1 --output /tmp/results | tail -1
  $transfer" "command, manual, completion in bash, zsh and fish, units by \`systemd-analyze verify\`, an experiment, a transfer"
inside 'size=$(stat -c %s /usr/bin/restp); echo "command: $size bytes"; test "$size" -le 15000000'
inside 'dpkg --purge restp >/dev/null; ! command -v restp'

echo "(downloading what the wheel depends on)"
inside "python3 -m venv /root/venv; pip --quiet download --dest /root/wheels /root/$(basename "$wheel")"
way "the wheel" "pip --quiet install --no-index --find-links /root/wheels /root/$(basename "$wheel"); restp --version; $manual
  sh /root/completes.sh /root/venv/share/restp/completions
  cd /root; restp reproduce e8 --runs 1 --output /tmp/again | tail -1; python -c 'import restp; print(restp.__version__)'
  $transfer" "command, manual, completion, \`import restp\`, an experiment, a transfer"
inside 'pip --quiet uninstall --yes restp; ! command -v restp'

echo "(cargo install, which compiles)"
cargo install --quiet --locked --path crates/restp-cli --profile dist --target-dir "$target" --root "$root/usr/local"
way "what \`cargo install\` made" "restp --version; mkdir -p /usr/local/share/man/man1 /tmp/written; restp man /usr/local/share/man/man1; $manual
  for shell in bash zsh fish; do restp completions \$shell >/tmp/written/restp.\$shell; done; sh /root/completes.sh /tmp/written
  $transfer" "command, manual and completion that it writes itself, a transfer"
echo "all of it works"

[ -z "$page" ] || {
  cat <<PAGE
# Installing

A bare Debian (\`mmdebstrap --variant=minbase\`) in a chroot gets each of what is handed out, and what each brings is tried there. Command:
\`make packages-test\`, then \`packaging/check.sh docs/results/install.md\`. Seconds are from the beginning of the installation to the end of
the last trial; what has to be downloaded or compiled is there before. A minute is allowed for each.

| way | seconds | tried |
|---|---|---|
$(printf '%s\n' "${rows[@]}")

| | |
|---|---|
| revision | $(git describe --always --dirty) |
| system inside | $(. "$root/etc/os-release"; echo "$PRETTY_NAME") |
| command of the Debian package | $(stat -c %s target/packaging/restp) bytes, 15,000,000 at most |
| wheel | $(basename "$wheel"), $(stat -c %s "$wheel") bytes |
PAGE
} >"${page:-/dev/null}"
