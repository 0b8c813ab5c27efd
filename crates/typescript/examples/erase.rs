//! Prints the JavaScript of a file in TypeScript, or what is wrong with it.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "it is a program for the terminal")]

use std::process::ExitCode;

use quarterdeck_typescript::erase_types;

fn main() -> ExitCode {
    let Some(path) = std::env::args().nth(1) else {
        eprintln!("usage: erase FILE");
        return ExitCode::from(2);
    };
    let source = match std::fs::read_to_string(&path) {
        Ok(source) => source,
        Err(error) => {
            eprintln!("{path}: {error}");
            return ExitCode::from(2);
        }
    };
    match erase_types(&path, &source) {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(problems) => {
            for problem in problems {
                eprintln!("{path}:{}:{}: {problem}", problem.position.line, problem.position.column);
            }
            ExitCode::FAILURE
        }
    }
}
