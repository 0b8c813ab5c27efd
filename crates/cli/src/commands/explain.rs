//! `quarterdeck explain`.

use quarterdeck_compiler::{nearest, rules};

use crate::ExitStatus;
use crate::arguments::ExplainOptions;
use crate::terminal::{print, table};

pub(crate) fn run(options: &ExplainOptions) -> anyhow::Result<ExitStatus> {
    let Some(code) = &options.code else {
        let row =
            |rule: &&rules::Rule| vec![rule.code.into(), rule.severity.as_str().into(), rule.name.into()];
        print(&table(&rules::ALL.iter().map(row).collect::<Vec<_>>()))?;
        return Ok(ExitStatus::Success);
    };
    let Some(rule) = rules::find(code) else {
        let names = rules::ALL.iter().flat_map(|rule| [rule.code, rule.name]);
        let hint = nearest(code, names).map_or(String::new(), |near| format!("; did you mean {near}?"));
        anyhow::bail!("there is no rule {code}{hint} (`quarterdeck explain` lists them all)");
    };
    print(&format!("{} {} ({})\n\n{}\n", rule.code, rule.name, rule.severity.as_str(), rule.explanation))?;
    Ok(ExitStatus::Success)
}
