//! Any text as a handler in TypeScript: JavaScript in which everything that is kept stands where it stood, or reasons with
//! places, never a panic or a stack that overflows.
#![no_main]

use libfuzzer_sys::fuzz_target;
use quarterdeck_typescript::erase_types;

fuzz_target!(|source: &str| {
    match erase_types("handler.ts", source) {
        Ok(text) => {
            assert_eq!(source.chars().count(), text.chars().count());
            for (before, after) in source.chars().zip(text.chars()) {
                let is_line_end = matches!(before, '\n' | '\r' | '\u{2028}' | '\u{2029}');
                assert!(before == after || (!is_line_end && matches!(after, ' ' | ';' | '(' | ')')));
            }
            assert_eq!(erase_types("handler.ts", &text).as_deref(), Ok(&*text), "JavaScript stays as it is");
        }
        Err(problems) => {
            assert!(!problems.is_empty());
            let lines = source.split('\n').count();
            for problem in &problems {
                assert!((1..=lines).contains(&problem.position.line), "{problem}");
            }
        }
    }
});
