# Exactly what the README and continuous integration call. Each target needs a Rust toolchain, Python 3 and make, and
# fetches the rest itself.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

ifeq ($(origin RUSTUP_TOOLCHAIN),undefined)
export RUSTUP_TOOLCHAIN := $(shell .ci/toolchain)
endif

# Cargo would take `--jobs` for the number of cores that it may use.
unexport MAKEFLAGS

.PHONY: help demo test test-long traces lint proof python-test spelling bench pages bench-cost bench-parity bench-handshakes bench-notice bench-relay bench-browse bench-tunnel bench-sctp bench-folder bench-survive bench-udp bench-itp bench-air bench-sensitivity deb wheel packages-test experiments chaos fuzz \
  fuzz-smoke mutants flaws soak docs deny clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' Makefile | expand -t 14

demo: ## a transfer over links that break, in one command
	./demo/run.sh

# Two at a time: some of them wait, for one another's locks, for the network, or for one core. Cargo comes last: its closing lines are
# the verdict. (A line with $(MAKE) would run under `make -n`.)
test: ## everything that must hold before a change is taken
	make --no-print-directory --jobs=2 $(if $(filter output-sync,$(.FEATURES)),--output-sync=target) lint proof python-test spelling
	cargo test --locked --workspace

test-long: fuzz-smoke ## what takes longer, or measures and wants a machine of its own
	cargo test --locked --workspace --lib --bins --tests -- --ignored

lint: ## format, clippy, checks of the repository
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets -- -D warnings
	cargo run --locked --quiet --package xtask -- all
	if ! command -v cargo-deny >/dev/null; then \
	  echo "lint: without cargo-deny advisories are not checked; make deny installs it"; \
	else \
	  cargo deny --offline --workspace check bans licenses sources; \
	  if cargo deny --workspace fetch db 2>/dev/null; then cargo deny --offline --workspace check advisories; \
	  else echo "lint: advisories are not checked: their database cannot be fetched"; fi; \
	fi

PROOF := cargo build --locked --quiet --profile proof --package restp-proofs --features linker

proof: ## no datagram makes a parser panic: the linker shows it, and that it would notice
	$(PROOF)
	($(PROOF),flawed 2>&1 || true) | grep -E "undefined (symbol|reference).*may_panic_in_flawed"

python-test: ## tests of the Python package, in an environment of its own (.venv)
	./python/test.sh

spelling: python-test ## spelling of code and documentation, by codespell; names and words of the field in .codespellrc
	if [ -x .venv/bin/codespell ]; then \
	  git ls-files '*.rs' '*.md' '*.py' '*.pyi' '*.sh' '*.toml' Makefile | xargs .venv/bin/codespell && echo "spelling: ok"; \
	else echo "SKIPPED: spelling is not checked without the Python environment"; fi

python-requirements: ## lock what those tests need, from python/requirements.in
	uv pip compile --quiet --universal --generate-hashes --python-version 3.11 --no-header \
	  python/requirements.in -o python/requirements.txt

bench: ## measure against QUIC, bare UDP, TCP and ns-3; writes docs/results/performance.md
	python3 bench/run.py

traces: ## packet traces of every committed scenario against snapshots/traces.txt, some ten minutes
	cargo run --locked --quiet --release --package restp-lab --example traces -- scenarios | diff snapshots/traces.txt -

chaos: ## 20 000 random compositions, networks and faults, with every assertion on; CHAOS="--seed N --runs N" for others
	cargo run --locked --quiet --profile chaos --package restp-cli -- chaos $(or $(CHAOS),--runs 20000)

experiments: ## the published experiments, under ten minutes on two cores; writes docs/results/; EXPERIMENTS="e8 tc-c1" for some
	cargo run --locked --quiet --release --package restp-cli -- reproduce $(EXPERIMENTS)

pages: ## every page of results that needs no measurement, on the revision that is checked out, in a clone of it; PAGES="--measured" for all
	python3 bench/pages.py $(PAGES)

bench-path: ## measure against kernel TCP and QUIC across an emulated path (root); writes docs/results/paths.md
	python3 bench/path.py

bench-multipath: ## measure against kernel MPTCP and multipath QUIC across two emulated paths (root); writes docs/results/multipath.md
	python3 bench/multipath.py

bench-sctp: ## our SCTP beside usrsctp over two emulated paths (root, cc, libusrsctp-dev); writes docs/results/sctp-usrsctp.md
	python3 bench/sctp.py

bench-tunnel: ## iperf3 through `restp tunnel` over two emulated links (root, iperf3); writes docs/results/tunnel.md
	python3 bench/tunnel.py

bench-folder: ## a folder of 10,000 files over a lossy path beside rsync and scp (root, ssh, rsync); writes docs/results/folder.md
	python3 bench/folder.py

bench-survive: ## a folder whose ends are killed, and ssh, git and rsync over `restp pipe` through an outage (root); writes docs/results/survive.md
	python3 bench/survive.py

bench-browse: ## how long Chromium takes for a page through `restp forward --socks` (root); writes docs/results/browse.md
	python3 bench/browse.py

bench-sensitivity: ## Regret and harm of the default with each of its constants halved and doubled (an hour); writes docs/results/adapt-sensitivity.md
	python3 bench/sensitivity.py

bench-itp: ## `restp publish`, `fetch` and `cache` over emulated paths, with sources that die and lie, and from a warm cache; writes docs/results/itp-real.md
	python3 bench/itp.py

bench-udp: ## how much of live media arrives in time through `restp forward --udp --deadline` over a lossy path
	python3 bench/udp_deadline.py

bench-media: ## ffmpeg through `restp forward --udp --deadline` over two links of which one dies, beside SRT (root, ffmpeg, srt-tools); writes docs/results/media.md
	python3 bench/media.py

bench-parity: ## the simulator's TCP beside the kernel's on seventeen emulated links (root); writes docs/results/kernel-parity.md
	python3 bench/parity.py

bench-handshakes: ## handshakes a second of one core, beside QUIC's; writes docs/results/handshakes.md
	python3 bench/handshakes.py

bench-cost: ## instructions per data packet at any size; needs valgrind; writes docs/results/cost.md; COST="--against PROGRAM REVISION"
	python3 bench/cost.py $(COST)

bench-air: ## chains of 802.11b stations beside ns-3's figures; writes docs/results/air.md
	python3 bench/air.py

bench-relay: ## how soon a direct path replaces the relay between two hosts behind translators (root, nft); writes docs/results/relay.md
	python3 bench/relay.py

bench-notice: ## how soon a new address and a receiver that starts again are noticed (root); writes docs/results/notice.md
	python3 bench/notice.py

fuzz: ## coverage-guided fuzzing, 20 minutes of one core for each target; fuzz/run.sh TARGET SECONDS for one
	./fuzz/run.sh

fuzz-smoke: ## every fuzz target for a share of one minute, without a fuzzer
	cargo run --locked --quiet --package restp-fuzz -- 60

mutants: ## mutation tests, days of one core; writes docs/results/mutation.md; MUTANTS="--shard 0/20" for a sample
	command -v cargo-mutants >/dev/null || cargo install --locked cargo-mutants
	python3 bench/mutants.py $(MUTANTS)

flaws: ## plants the flaws of bench/flaws.toml in a copy of the seal and says which law or test notices; FLAWS="--flaw replay" for some
	python3 bench/flaws.py $(FLAWS)

soak: ## 200 connections for an hour beside faults and kills; writes docs/results/soak.md; SOAK="--minutes N --seed N" for others
	cargo build --locked --release --package restp-cli
	cargo build --locked --release --package restp --example soak
	python3 bench/soak.py $(SOAK)

docs: ## the documentation of every crate, in target/doc
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps

deb: ## a Debian package, in target/packages
	./packaging/build.sh deb

wheel: ## a Python wheel with the command in it, in target/packages; needs maturin
	./packaging/build.sh wheel

packages-test: deb wheel ## both, installed and tried in a bare Debian (root, mmdebstrap, network)
	./packaging/check.sh

deny: ## licences, advisories and duplicates of the dependencies; needs the advisory database from the network
	command -v cargo-deny >/dev/null || cargo install --locked cargo-deny
	cargo deny --workspace check

clean: ## remove everything that was built
	cargo clean
	rm -rf .venv bench/peers/target fuzz/target fuzz/artifacts
