//! Any bytes as what an MCP server elsewhere sends.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| quarterdeck_host_mcp::fuzz_messages(data));
