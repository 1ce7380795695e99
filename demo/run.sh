#!/usr/bin/env bash
# A file of more than 256 MiB over a path that loses 1 % of its packets and is dead for two seconds, between three
# processes on this machine; the same over two paths, one of which dies; then an experiment in virtual time. Called by
# `make demo`.
set -euo pipefail
cd "$(dirname "$0")/.."

target=${CARGO_TARGET_DIR:-target}
cargo build --release --locked --quiet --package restp-cli
restp=$target/release/restp

work=$(mktemp -d)
pids=()
clean_up() {
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null || true; done
  rm -rf "$work"
}
trap clean_up EXIT

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }

# A line of a file that another process writes, once it is there.
await() { # FILE PATTERN
  for _ in $(seq 100); do
    sed -n "s/$2/\1/p" "$1" | grep -m1 . && return
    sleep 0.1
  done
  echo "nothing like \"$2\" in $1 within 10 s" >&2
  return 1
}

payload=$target/demo/payload
least=$((256 * 1024 * 1024))
if [ "$(stat -c %s "$payload" 2>/dev/null || echo 0)" -lt "$least" ]; then
  say "Making a real file: the repository and the libraries of the Rust toolchain"
  mkdir -p "$(dirname "$payload")"
  tar -cf "$payload.part" --exclude=./target --exclude=./.git . 2>/dev/null
  while [ "$(stat -c %s "$payload.part")" -lt "$least" ]; do
    find "$(rustc --print sysroot)/lib" -type f -exec cat {} + >>"$payload.part"
  done
  mv "$payload.part" "$payload"
fi

say "1. A receiver, a path of 200 Mbit/s, 20 ms, 1 % loss and an outage of 2 s, and a sender"
mkdir "$work/inbox"
"$restp" recv --once --listen 127.0.0.1:0 --dir "$work/inbox" --json >"$work/recv" 2>"$work/recv.err" &
pids+=($!)
receiver=$!
ticket=$(await "$work/recv" '.*"ticket":"\([^"]*\)".*')
receives_at=$(await "$work/recv" '.*"addresses":\["\([^"]*\)".*')

sed "s/^to = .*/to = \"$receives_at\"/" demo/net.toml >"$work/net.toml"
"$restp" emulate "$work/net.toml" >"$work/emulate" &
pids+=($!)
emulator=$!
path=$(await "$work/emulate" '^ready: field-link \([^ ]*\) .*')

# Losses here are no congestion, so the rate stays (profile arq-only). What is in flight is bounded instead: 200
# Mbit/s x 20 ms are 350 packets of 1428 bytes, and the queue holds as many. Some room is left in it, so that
# nothing but the path itself loses packets.
limit=640
echo "in flight: at most $limit segments (bandwidth-delay product 350, queue 350, 60 of them kept free)"
"$restp" send "$payload" "$ticket" --address "$path" \
  --profile arq-only --set ack=positive+sack --set recovery=pipe --set "flight-limit=$limit segments"
wait "$receiver"

say "2. Is it the same file? Judged by sha256sum"
sent=$(sha256sum <"$payload")
received=$(sha256sum <"$work/inbox/payload")
echo "sent     $sent"
echo "received $received"
[ "$sent" = "$received" ]

say "3. What the path did"
kill -INT "$emulator"
wait "$emulator" || true
grep -v '^ready' "$work/emulate"

say "4. Two paths of 100 Mbit/s at once; after five seconds one of them is cut for good"
mkdir "$work/inbox2"
"$restp" recv --once --listen 127.0.0.1:0 --listen 127.0.0.2:0 --dir "$work/inbox2" --json >"$work/recv2" 2>"$work/recv2.err" &
pids+=($!)
receiver=$!
ticket=$(await "$work/recv2" '.*"ticket":"\([^"]*\)".*')
first_at=$(await "$work/recv2" '.*"addresses":\["\([^"]*\)".*')
second_at=$(await "$work/recv2" '.*"addresses":\["[^"]*","\([^"]*\)".*')

sed "s/^to = \"127.0.0.1:.*/to = \"$first_at\"/; s/^to = \"127.0.0.2:.*/to = \"$second_at\"/" demo/two-paths.toml >"$work/two.toml"
"$restp" emulate "$work/two.toml" >"$work/emulate2" &
pids+=($!)
emulator=$!
first=$(await "$work/emulate2" '^ready: first \([^ ]*\) .*')
second=$(await "$work/emulate2" '^ready: second \([^ ]*\) .*')

"$restp" send "$payload" "$ticket" --address "$first" --address "$second"
wait "$receiver"
kill -INT "$emulator"
wait "$emulator" || true
cmp "$payload" "$work/inbox2/payload"
stall=$(await "$work/recv2" '.*"longest_stall_ms":\([0-9]*\).*')
echo "same file; the receiver never waited longer than $stall ms for new data"

say "5. The experiment behind the first one, in virtual time: bulk transfer with and without congestion control (E8), 20 runs of 100 s each"
"$restp" sim scenarios/restp/e8.toml --check
