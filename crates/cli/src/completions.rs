//! Generates the files with which bash, zsh, fish and PowerShell complete haul's options.
//!
//! ```
//! use haul_cli::completions;
//!
//! assert!(completions::bash().contains("--location"));
//! assert!(completions::fish().contains("-l location"));
//! ```

use crate::flags::{FLAGS, FlagSpec, FlagSyntax, HelpCategory};

fn specs() -> impl Iterator<Item = &'static FlagSpec> {
    FLAGS.iter().map(|flag| flag.spec())
}

fn is_file(spec: &FlagSpec) -> bool {
    matches!(spec.syntax, FlagSyntax::Value("file" | "dir" | "path" | "cert" | "key"))
}

/// Returns the completion file for bash (`source completions/haul.bash`).
pub fn bash() -> String {
    let names: Vec<String> = specs().flat_map(spelled).collect();
    let files: Vec<String> = specs().filter(|spec| is_file(spec)).flat_map(spelled).collect();
    let values: Vec<String> = specs()
        .filter(|spec| !is_file(spec) && matches!(spec.syntax, FlagSyntax::Value(_)))
        .flat_map(spelled)
        .collect();
    let subjects: Vec<&str> = HelpCategory::ALL.iter().map(|category| category.name()).collect();
    format!(
        "# Completion of haul for bash. Made from the table of flags: make generate.\n\
         _haul() {{\n\
         \x20   local word=\"${{COMP_WORDS[COMP_CWORD]}}\" before=\"${{COMP_WORDS[COMP_CWORD-1]}}\"\n\
         \x20   case \"$before\" in\n\
         \x20       {files}) COMPREPLY=($(compgen -f -- \"$word\")); return ;;\n\
         \x20       -h|--help) COMPREPLY=($(compgen -W \"all category {subjects}\" -- \"$word\")); return ;;\n\
         \x20       {values}) return ;;\n\
         \x20   esac\n\
         \x20   case \"$word\" in\n\
         \x20       -*) COMPREPLY=($(compgen -W \"{names}\" -- \"$word\")) ;;\n\
         \x20   esac\n\
         }}\n\
         complete -o default -F _haul haul\n",
        files = files.join("|"),
        values = values.join("|"),
        names = names.join(" "),
        subjects = subjects.join(" "),
    )
}

fn spelled(spec: &FlagSpec) -> Vec<String> {
    let letter = spec.short.filter(char::is_ascii_alphanumeric).map(|letter| format!("-{letter}"));
    letter.into_iter().chain([format!("--{}", spec.long)]).collect()
}

/// Returns the completion file for zsh (`_haul` in a directory of `fpath`).
pub fn zsh() -> String {
    let mut text = String::from("#compdef haul\n# Made from the table of flags: make generate.\n_arguments -s -S \\\n");
    for spec in specs() {
        let help = quoted(spec.help).replace(['[', ']'], "").replace(':', "\\:");
        let value = match spec.syntax {
            FlagSyntax::Switch | FlagSyntax::Once => String::new(),
            FlagSyntax::Optional(name) => format!("::{name}:"),
            FlagSyntax::Value(name) | FlagSyntax::Trailing(name) if is_file(spec) => format!(":{name}:_files"),
            FlagSyntax::Value(name) | FlagSyntax::Trailing(name) => format!(":{name}:"),
        };
        let value = quoted(&value);
        let letter = spec.short.filter(char::is_ascii_alphanumeric);
        if let Some(letter) = letter {
            text.push_str(&format!("  '*-{letter}[{help}]{value}' \\\n"));
        }
        let equals = if matches!(spec.syntax, FlagSyntax::Optional(_)) { "=-" } else { "" };
        text.push_str(&format!("  '*--{}{equals}[{help}]{value}' \\\n", spec.long));
    }
    text.push_str("  '*:URL:_urls'\n");
    text
}

/// Returns the completion file for fish (for a directory of `fish_complete_path`).
pub fn fish() -> String {
    let mut text = String::from("# Completion of haul for fish. Made from the table of flags: make generate.\n");
    for spec in specs() {
        let letter = spec.short.filter(char::is_ascii_alphanumeric).map(|letter| format!(" -s {letter}"));
        let value = match spec.syntax {
            FlagSyntax::Value(_) if is_file(spec) => " -r",
            FlagSyntax::Value(_) | FlagSyntax::Trailing(_) => " -x",
            _ => "",
        };
        let letter = letter.unwrap_or_default();
        text.push_str(&format!(
            "complete -c haul{letter} -l {}{value} -d '{}'\n",
            spec.long,
            spec.help.replace('\'', "\\'")
        ));
    }
    text
}

/// Returns the completion file for PowerShell (`. completions/haul.ps1` in a profile).
pub fn powershell() -> String {
    let mut text = String::from(
        "# Completion of haul for PowerShell. Made from the table of flags: make generate.\n\
         Register-ArgumentCompleter -Native -CommandName haul -ScriptBlock {\n\
         \x20   param($word, $command, $position)\n\
         \x20   if (-not $word.StartsWith('-')) { return }\n\
         \x20   @(\n",
    );
    for spec in specs() {
        let help = spec.help.replace('\'', "''");
        for name in spelled(spec) {
            text.push_str(&format!("        , @('{name}', '{help}')\n"));
        }
    }
    text.push_str(
        "    ) | Where-Object { $_[0].StartsWith($word, [StringComparison]::Ordinal) } | ForEach-Object {\n\
         \x20       [System.Management.Automation.CompletionResult]::new($_[0], $_[0], 'ParameterName', $_[1])\n\
         \x20   }\n\
         }\n",
    );
    text
}

/// Escapes a text for use inside single quotes of a shell.
fn quoted(text: &str) -> String {
    text.replace('\'', "'\\''")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::process::{Command, Stdio};

    #[test]
    fn completions_of_each_shell_have_every_flag() {
        let (bash, zsh, fish, powershell) = (bash(), zsh(), fish(), powershell());
        for spec in specs() {
            let long = format!("--{}", spec.long);
            assert!(bash.contains(&long) && zsh.contains(&long), "{long}");
            assert!(fish.contains(&format!("-l {}", spec.long)), "{long}");
            assert!(powershell.contains(&format!("@('{long}', ")), "{long}");
        }
    }

    /// Every installed shell accepts its completion file without a syntax error.
    #[test]
    fn completions_are_valid_shell_syntax() {
        for (shell, text) in [("bash", bash()), ("zsh", zsh()), ("fish", fish())] {
            let child = Command::new(shell).arg("-n").stdin(Stdio::piped()).stderr(Stdio::piped()).spawn();
            let Ok(mut child) = child else { continue };
            child.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("it reads");
            let output = child.wait_with_output().expect("an end");
            assert!(output.status.success(), "{shell}: {}", String::from_utf8_lossy(&output.stderr));
        }
    }
}
