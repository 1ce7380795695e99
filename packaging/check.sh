#!/usr/bin/env bash
# Installs the packages of packaging/build.sh into a bare Debian, as root, and tries what they bring there.
# Needs mmdebstrap, systemd and a network for the bare system and what the wheel depends on.
set -euo pipefail
cd "$(dirname "$0")/.."
packages=$(realpath "${CARGO_TARGET_DIR:-target}/packages")
deb=$(ls -t "$packages"/restp_*.deb | head -1)
wheel=$(ls -t "$packages"/restp-*.whl | head -1)
root=$(mktemp -d)
trap 'umount "$root/proc" 2>/dev/null; rm -rf --one-file-system "$root"' EXIT
inside() { chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 bash -euo pipefail -c "$1"; }

# MMDEBSTRAP: further options, such as for a mirror that stands still.
# shellcheck disable=SC2086
mmdebstrap ${MMDEBSTRAP:-} --variant=minbase --include=man-db,bash-completion,python3-venv,ca-certificates,systemd "${SUITE:-stable}" "$root" >/dev/null
mount -t proc proc "$root/proc"
# A minimal system leaves manual pages out.
rm -f "$root"/etc/dpkg/dpkg.cfg.d/*
cp "$deb" "$wheel" "$root/root/"
# pip may have an index of its own.
cp /etc/pip.conf "$root/etc/" 2>/dev/null || true
# and this machine an authority of its own
cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/" 2>/dev/null || true
cp /etc/resolv.conf "$root/etc/" 2>/dev/null || true

echo "deb:"
inside "dpkg --install /root/$(basename "$deb") >/dev/null; restp --version"
inside 'man restp-send | grep "Send files and folders"'
inside 'bash -c ". /usr/share/bash-completion/bash_completion; . /usr/share/bash-completion/completions/restp
  COMP_WORDS=(restp se) COMP_CWORD=1 COMP_LINE=\"restp se\"; _restp restp se restp; echo completes se: \${COMPREPLY[*]}" | grep -w send'
inside 'systemd-analyze verify /usr/lib/systemd/system/restp-recv.service /usr/lib/systemd/system/restp-serve.service /usr/lib/systemd/system/restp-serve.socket /usr/lib/systemd/system/restp-relay.service'
inside 'cd /root; restp reproduce e8 --runs 1 --output /tmp/results | tail -1'
inside 'size=$(stat -c %s /usr/bin/restp); echo "command: $size bytes"; test "$size" -le 15000000'
inside 'cd /tmp; mkdir box; head -c 3000000 /dev/urandom >file
  restp recv --dir box --listen 127.0.0.1:0 --once >ticket & receiver=$!
  until grep -q ticket: ticket; do sleep 0.1; done
  restp send file "$(sed "s/ticket: //" ticket)"; wait $receiver; cmp file box/file'
inside 'dpkg --purge restp >/dev/null; ! command -v restp'

echo "wheel:"
inside "python3 -m venv /root/venv; /root/venv/bin/pip --quiet install /root/$(basename "$wheel")"
inside 'cd /root; venv/bin/restp --version; venv/bin/restp reproduce e8 --runs 1 --output /tmp/again | tail -1
  venv/bin/python -c "import restp; print(restp.__version__)"'
echo "all of it works"
