# Two commands matter: `make run` and `make test`. Both install what is missing.

.PHONY: run test test-clients test-browser check bench fuzz setup help

help: ## Show this help
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

run: setup ## Build and serve on 127.0.0.1:8080; no key and no configuration needed
	@scripts/model --release
	cargo run --release

test: setup ## Run every test
	@scripts/model
	@scripts/faketime
	@scripts/radicale
	@scripts/mail-server
	cargo test --workspace --doc --all-features --quiet
	cargo nextest run --workspace --all-features
	scripts/test-clients
	scripts/test-browser

test-clients: setup ## Run the tests with the AI SDK, OpenAI's clients and other foreign programs
	scripts/test-clients

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

bench: setup ## Measure; the results are in CPU time
	scripts/bench
	scripts/bench-server
	scripts/bench-voice

fuzz: setup ## Fuzz every parser of foreign bytes for a short while
	scripts/fuzz

setup:
	@scripts/setup
