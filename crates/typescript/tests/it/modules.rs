//! Imports and exports.

use std::fs;
use std::path::{Path, PathBuf};

use expect_test::expect;

use crate::world::{check, erase};

#[test]
fn imports_of_types_become_spaces() {
    check(
        "import type A from './a.ts'\nimport type { B, C as D } from './b.ts';\nimport type * as E from './c.ts'\nimport type F = require('f')\nimport { score } from './score.ts'\n(score)",
        expect![[r#"
            ;··························
            ;·······································
            ;·······························
            ;···························
            import·{·score·}·from·'./score.ts'
            (score)"#]],
    );
}

#[test]
fn types_in_a_list_go_with_their_commas() {
    check(
        "import { type A, b, type C as D, e as f, type G } from './a.ts'\nimport h, { type I } from './i.ts'\nimport { type J } from './j.ts'\nimport { type as as, type } from './k.ts'\nimport { type /* l */ M /* n */ , o } from './o.ts'",
        expect![[r#"
            import·{·········b,··············e·as·f,········}·from·'./a.ts'
            import·h,·{········}·from·'./i.ts'
            import·{········}·from·'./j.ts'
            import·{·type·as·as,·type·}·from·'./k.ts'
            import·{··························o·}·from·'./o.ts'"#]],
    );
    check(
        "const a = 1, b = 2\nexport { a, type A, type B as C, b }\nexport { type D, e } from './d.ts'\nexport { type F }",
        expect![[r#"
        const·a·=·1,·b·=·2
        export·{·a,······················b·}
        export·{·········e·}·from·'./d.ts'
        export·{········}"#]],
    );
}

#[test]
fn exports_of_types_become_spaces() {
    check(
        "export type A = B\nexport interface C {}\nexport type { D }\nexport type { E } from './e.ts'\nexport type * from './f.ts'\nexport type * as G from './g.ts'\nexport declare const h: I\nexport default interface J {}\nexport namespace K { export type L = M }\n",
        expect![[r#"
            ;················
            ;····················
            ;················
            ;······························
            ;··························
            ;·······························
            ;························
            ;····························
            ;·······································
        "#]],
    );
}

#[test]
fn a_handler_is_left_as_its_author_wrote_it() {
    check(
        "import { ErrorType, ToolError } from 'quarterdeck';\nimport type { Answer, Call } from 'quarterdeck';\n\ntype Args = { text: string; unit: 'words' | 'characters' };\n\nexport async function execute({ args }: Call<Args>): Promise<Answer> {\n  const text = args.text.trim();\n  if (text === '') throw new ToolError(ErrorType.VALIDATION, 'The text has no words.');\n  return { ok: true, data: { count: text.length, unit: args.unit } satisfies Data };\n}\n",
        expect![[r#"
            import·{·ErrorType,·ToolError·}·from·'quarterdeck';
            ;···············································

            ;··························································

            export·async·function·execute({·args·}············)··················{
            ··const·text·=·args.text.trim();
            ··if·(text·===·'')·throw·new·ToolError(ErrorType.VALIDATION,·'The·text·has·no·words.');
            ··return·{·ok:·true,·data:·{·count:·text.length,·unit:·args.unit·}················};
            }
        "#]],
    );
}

#[test]
fn the_templates_of_quarterdeck_new_are_taken() {
    for category in ["utility", "retrieval", "action"] {
        let template = format!("../cli/templates/{category}/handler.ts.txt");
        let source = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(template)).unwrap();
        let text = erase(&source);
        assert!(text.contains("export async function execute({ args"), "{text}");
        assert!(!text.contains("Args"), "{text}");
    }
}

#[test]
fn javascript_stays_as_it_is() {
    for source in [
        "\u{feff}// é\r\nexport const a = '\u{2028}', b = /[/(]/g, c = a ? b : (d) => `${d}`\n",
        "#!/usr/bin/env node\nexport {}\n",
        "",
    ] {
        assert_eq!(erase(source), source);
    }
    let files = javascript_files(Path::new(env!("CARGO_MANIFEST_DIR")).join("../server/web"));
    assert!(files.len() > 50, "the pages' scripts are there");
    for file in files {
        let source = fs::read_to_string(&file).unwrap();
        assert_eq!(erase(&source), source, "{}", file.display());
    }
}

fn javascript_files(folder: PathBuf) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let scripts = files.into_iter().filter(|file| file.extension().is_some_and(|end| end == "js"));
    scripts.chain(folders.into_iter().flat_map(javascript_files)).collect()
}
