# Two commands matter: `make run` and `make test`. Both install what is missing.

.PHONY: run dev cluster test test-postgres test-clients test-speech test-browser check package test-package bench soak fuzz setup help

help: ## Show this help
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

run: ## Build and serve on 127.0.0.1:8080; no key and no configuration needed
	@scripts/setup run
	@scripts/model --release
	cargo run --release

dev: ## Build, serve and follow the folders: tools, prompts and records are live when they are saved
	@scripts/setup run
	cargo run --release -- serve --watch

cluster: ## Serve with two nodes on one PostgreSQL behind nginx, on 127.0.0.1:8080, until Ctrl-C
	@scripts/setup run
	scripts/try-cluster

test: setup ## Run every test
	@scripts/model
	@scripts/faketime
	@scripts/postgres
	@scripts/radicale
	@scripts/mail-server
	@scripts/otlp-receiver
	@scripts/language-model
	@scripts/speech
	@scripts/promtool
	@scripts/wasm-compilers
	cargo test --workspace --doc --all-features --quiet
	cargo nextest run --workspace --all-features
	scripts/test-clients
	scripts/test-browser

test-postgres: setup ## Run the suites that touch the store with a PostgreSQL server, a database for each test
	scripts/test-postgres

test-clients: setup ## Run the tests with the AI SDK, OpenAI's clients and other foreign programs
	scripts/test-clients

test-speech: setup ## Run the tests with real speech: Moonshine, Piper and espeak-ng, judged by Whisper
	@scripts/speech
	cargo nextest run --workspace --all-features -E "package(quarterdeck-local-speech) | test(local_engines)"

test-browser: setup ## Run the tests of the page in Chromium, with a voice in its microphone
	scripts/test-browser

check: setup ## Format, lints, docs, dependency policy: what CI asks for before the tests
	cargo fmt --all --check
	rustfmt --check tools/*/*.rs tools/*/*/*.rs
	cargo clippy --workspace --all-targets --all-features -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --document-private-items --all-features
	scripts/check-words
	scripts/check-shape
	scripts/check-dependencies

package: ## Build a Debian package, a tarball, licences and a bill of materials into target/package
	@scripts/setup run
	scripts/package

test-package: ## Install what `make package` has built on a bare Debian in a folder, and serve from it; try the proxy of deploy/
	scripts/test-package
	scripts/test-proxy

bench: setup ## Measure; the results are in CPU time
	scripts/bench
	scripts/bench-server
	scripts/bench-voice
	scripts/bench-pipeline
	scripts/bench-mcp
	scripts/bench-cluster
	scripts/bench-faults

soak: setup ## Inject every fault fifty times into three nodes on PostgreSQL; takes hours
	scripts/soak

fuzz: setup ## Fuzz every parser of foreign bytes for a short while
	scripts/fuzz

setup:
	@scripts/setup test
