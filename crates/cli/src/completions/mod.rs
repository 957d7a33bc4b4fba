//! Generates the files with which bash, zsh, fish and PowerShell complete haul's options.
//!
//! ```
//! use haul_cli::completions;
//!
//! assert!(completions::bash().contains("--location"));
//! assert!(completions::fish().contains("-l location"));
//! ```

mod option_values;

use crate::flags::{FLAGS, FlagSpec, FlagSyntax};
use option_values::{JOB_COMMANDS, SUBCOMMANDS};

fn specs() -> impl Iterator<Item = FlagSpec> {
    FLAGS.iter().map(|flag| flag.spec())
}

fn is_file(spec: &FlagSpec) -> bool {
    matches!(spec.syntax, FlagSyntax::Value("file" | "dir" | "path" | "cert" | "key"))
}

fn takes_value(spec: &FlagSpec) -> bool {
    matches!(spec.syntax, FlagSyntax::Value(_) | FlagSyntax::Trailing(_))
}

/// Returns the completion file for bash (`source completions/haul.bash`).
pub fn bash() -> String {
    let names: Vec<String> = specs().flat_map(spellings).chain(specs().filter_map(negated_spelling)).collect();
    let files: Vec<String> = specs().filter(is_file).flat_map(spellings).collect();
    let offered =
        |spec: &FlagSpec| takes_value(spec) && !is_file(spec) && !option_values::values_of_option(spec.long).is_empty();
    let values: Vec<String> =
        specs().filter(|spec| takes_value(spec) && !is_file(spec) && !offered(spec)).flat_map(spellings).collect();
    let known: String = specs()
        .filter(offered)
        .map(|spec| {
            let words = option_values::values_of_option(spec.long).join(" ");
            format!(
                "        {}) COMPREPLY=($(compgen -W \"{words}\" -- \"$word\")); return ;;\n",
                spellings(spec).join("|")
            )
        })
        .collect();
    let subcommands: Vec<&str> = SUBCOMMANDS.iter().map(|(name, _)| *name).collect();
    format!(
        "# Completion of haul for bash. Made from the table of flags: make generate.\n\
         _haul() {{\n\
         \x20   local word=\"${{COMP_WORDS[COMP_CWORD]}}\" before=\"${{COMP_WORDS[COMP_CWORD-1]}}\" first=\"${{COMP_WORDS[1]}}\"\n\
         \x20   if [ \"$first\" = job ] && [ \"$COMP_CWORD\" -eq 2 ]; then\n\
         \x20       COMPREPLY=($(compgen -W \"{job}\" -- \"$word\")); return\n\
         \x20   fi\n\
         \x20   if [ \"$first\" = doctor ] && [ \"$before\" = --format ]; then\n\
         \x20       COMPREPLY=($(compgen -W \"text json\" -- \"$word\")); return\n\
         \x20   fi\n\
         \x20   case \"$before\" in\n\
         \x20       {files}) COMPREPLY=($(compgen -f -- \"$word\")); return ;;\n\
         {known}\
         \x20       {values}) return ;;\n\
         \x20   esac\n\
         \x20   case \"$word\" in\n\
         \x20       -*) COMPREPLY=($(compgen -W \"{names}\" -- \"$word\")) ;;\n\
         \x20       *) if [ \"$COMP_CWORD\" -eq 1 ] && [ \"${{COMP_WORDS[0]##*/}}\" = haul ]; then\n\
         \x20           COMPREPLY=($(compgen -W \"{subcommands}\" -- \"$word\"))\n\
         \x20       fi ;;\n\
         \x20   esac\n\
         }}\n\
         complete -o default -F _haul haul\n\
         # A link named curl is completed in the same way, if it leads to haul.\n\
         case \"$(readlink -f \"$(command -v curl)\" 2>/dev/null)\" in */haul) complete -o default -F _haul curl ;; esac\n",
        files = files.join("|"),
        job = JOB_COMMANDS.join(" "),
        values = values.join("|"),
        names = names.join(" "),
        subcommands = subcommands.join(" "),
    )
}

fn spellings(spec: FlagSpec) -> Vec<String> {
    let letter = spec.short.filter(char::is_ascii_alphanumeric).map(|letter| format!("-{letter}"));
    letter.into_iter().chain([format!("--{}", spec.long)]).collect()
}

/// Returns the spelling that turns an option off. `None` if the option has no such spelling.
fn negated_spelling(spec: FlagSpec) -> Option<String> {
    (spec.is_turned_off_by_no() && !spec.long.starts_with("no-")).then(|| format!("--no-{}", spec.long))
}

/// Returns the completion file for zsh (`_haul` in a directory of `fpath`).
pub fn zsh() -> String {
    let mut text = String::from("#compdef haul\n# Made from the table of flags: make generate.\n");
    text.push_str("if (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then\n  local -a commands=(\n");
    for (name, help) in SUBCOMMANDS {
        text.push_str(&format!("    '{name}:{help}'\n"));
    }
    text.push_str("  )\n  _describe command commands\n  _urls\n  return\nfi\n");
    text.push_str(&format!(
        "if [[ $words[2] == job ]]; then\n  _arguments '2:command:({})' '*:file:_files'\n  return\nfi\n",
        JOB_COMMANDS.join(" ")
    ));
    text.push_str("_arguments -s -S \\\n");
    for spec in specs() {
        let help = quoted(spec.help).replace(['[', ']'], "").replace(':', "\\:");
        let offered = option_values::values_of_option(spec.long).join(" ").replace(':', "\\:");
        let value = match spec.syntax {
            FlagSyntax::Switch | FlagSyntax::Once => String::new(),
            FlagSyntax::Optional(name) => format!("::{name}:"),
            FlagSyntax::Value(name) | FlagSyntax::Trailing(name) if is_file(&spec) => format!(":{name}:_files"),
            FlagSyntax::Value(name) | FlagSyntax::Trailing(name) if !offered.is_empty() => {
                format!(":{}:({offered})", name.replace(':', " "))
            }
            FlagSyntax::Value(name) | FlagSyntax::Trailing(name) => format!(":{}:", name.replace(':', " ")),
        };
        let value = quoted(&value);
        let letter = spec.short.filter(char::is_ascii_alphanumeric);
        if let Some(letter) = letter {
            text.push_str(&format!("  '*-{letter}[{help}]{value}' \\\n"));
        }
        let equals = if matches!(spec.syntax, FlagSyntax::Optional(_)) { "=-" } else { "" };
        text.push_str(&format!("  '*--{}{equals}[{help}]{value}' \\\n", spec.long));
        if let Some(negated) = negated_spelling(spec) {
            text.push_str(&format!("  '*{negated}[Turn off\\: {help}]' \\\n"));
        }
    }
    text.push_str("  '*:URL:_urls'\n");
    text
}

/// Returns the completion file for fish (for a directory of `fish_complete_path`).
pub fn fish() -> String {
    let mut text = String::from("# Completion of haul for fish. Made from the table of flags: make generate.\n");
    for (name, help) in SUBCOMMANDS {
        text.push_str(&format!(
            "complete -c haul -n __fish_use_subcommand -a {name} -d '{}'\n",
            escape_apostrophes(help)
        ));
    }
    text.push_str(&format!(
        "complete -c haul -n '__fish_seen_subcommand_from job' -a '{}'\n\
         complete -c haul -n '__fish_seen_subcommand_from doctor' -l format -x -a 'text json' -d 'Form of the page'\n",
        JOB_COMMANDS.join(" ")
    ));
    for spec in specs() {
        let letter = spec.short.filter(char::is_ascii_alphanumeric).map(|letter| format!(" -s {letter}"));
        let offered = option_values::values_of_option(spec.long).join(" ");
        let value = match spec.syntax {
            FlagSyntax::Value(_) if is_file(&spec) => " -r".to_owned(),
            FlagSyntax::Value(_) | FlagSyntax::Trailing(_) if !offered.is_empty() => format!(" -x -a '{offered}'"),
            FlagSyntax::Value(_) | FlagSyntax::Trailing(_) => " -x".to_owned(),
            _ => String::new(),
        };
        let letter = letter.unwrap_or_default();
        let help = escape_apostrophes(spec.help);
        text.push_str(&format!("complete -c haul{letter} -l {}{value} -d '{help}'\n", spec.long));
        if let Some(negated) = negated_spelling(spec) {
            text.push_str(&format!("complete -c haul -l {} -d 'Turn off: {help}'\n", &negated[2..]));
        }
    }
    text
}

fn escape_apostrophes(text: &str) -> String {
    text.replace('\'', "\\'")
}

/// Returns the completion file for PowerShell (`. completions/haul.ps1` in a profile).
pub fn powershell() -> String {
    let mut text = String::from(
        "# Completion of haul for PowerShell. Made from the table of flags: make generate.\n\
         Register-ArgumentCompleter -Native -CommandName haul -ScriptBlock {\n\
         \x20   param($word, $command, $position)\n\
         \x20   $values = @{\n",
    );
    for spec in specs().filter(takes_value) {
        let words: Vec<String> =
            option_values::values_of_option(spec.long).iter().map(|value| format!("'{value}'")).collect();
        if !words.is_empty() {
            text.push_str(&format!("        '--{}' = @({})\n", spec.long, words.join(", ")));
        }
    }
    text.push_str(
        "    }\n\
         \x20   $before = @($command.CommandElements | ForEach-Object { $_.ToString() } | Where-Object { $_ -ne $word })[-1]\n\
         \x20   if ($values.ContainsKey($before)) {\n\
         \x20       return $values[$before] | Where-Object { $_.StartsWith($word, [StringComparison]::Ordinal) }\n\
         \x20   }\n\
         \x20   @(\n",
    );
    for (name, help) in SUBCOMMANDS {
        text.push_str(&format!("        , @('{name}', '{}')\n", help.replace('\'', "''")));
    }
    for spec in specs() {
        let help = spec.help.replace('\'', "''");
        for name in spellings(spec) {
            text.push_str(&format!("        , @('{name}', '{help}')\n"));
        }
        if let Some(negated) = negated_spelling(spec) {
            text.push_str(&format!("        , @('{negated}', 'Turn off: {help}')\n"));
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

    /// Asks bash for the completions of a command line. Returns `None` without bash.
    fn completed(words: &[&str]) -> Option<String> {
        let line = words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
        let script = format!(
            "{}\nCOMP_WORDS=({line}) COMP_CWORD={}\n_haul\nprintf '%s ' \"${{COMPREPLY[@]}}\"",
            bash(),
            words.len() - 1
        );
        let output = Command::new("bash").args(["--norc", "-c", &script]).output().ok()?;
        Some(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
    }

    #[test]
    fn bash_completes_values_subcommands_and_negations() {
        for (words, expected) in [
            (&["haul", "d"][..], "doctor"),
            (&["haul", "job", "re"], "retry report"),
            (&["haul", "doctor", "--format", ""], "text json"),
            (&["haul", "-X", "P"], "POST PUT PATCH"),
            (&["haul", "--tls-max", "1"], "1.2 1.3"),
            (&["haul", "--no-loc"], "--no-location --no-location-trusted"),
            (&["haul", "--tls13-ciphers", "TLS_CH"], "TLS_CHACHA20_POLY1305_SHA256"),
            (&["haul", "--user", "x"], ""),
        ] {
            let Some(found) = completed(words) else { return };
            assert_eq!(found, expected, "{words:?}");
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
