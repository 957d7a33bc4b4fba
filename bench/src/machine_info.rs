//! A description of the machine on which the bench runs.

use crate::bench_results_file::MachineInfo;

/// Returns the description of this computer. `name` replaces the host name of the system, if it is
/// given.
pub(crate) fn this_machine(name: Option<&str>) -> MachineInfo {
    let system = rustix::system::uname();
    let text = |file: &str| std::fs::read_to_string(file).unwrap_or_default();
    let said = system.nodename().to_string_lossy();
    MachineInfo {
        name: plain_name(name.unwrap_or(&said)),
        cpus: std::thread::available_parallelism().map_or(0, usize::from),
        cpu: field(&text("/proc/cpuinfo"), "model name").unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
        memory_mib: memory_mib(&text("/proc/meminfo")).unwrap_or(0),
        kernel: format!("{} {}", system.sysname().to_string_lossy(), system.release().to_string_lossy()),
    }
}

/// Returns the first label of a host name, reduced to characters that are allowed in any file name.
fn plain_name(name: &str) -> String {
    let label = name.split('.').next().unwrap_or_default();
    let plain: String = label.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(40).collect();
    if plain.trim_matches('-').is_empty() { "host".to_owned() } else { plain }
}

/// Returns the value of the first line `NAME : VALUE` that has this name. `None` if no line has it.
fn field(text: &str, name: &str) -> Option<String> {
    let line = text.lines().find(|line| line.split(':').next().is_some_and(|first| first.trim() == name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn memory_mib(text: &str) -> Option<u64> {
    let kib = field(text, "MemTotal")?.split(' ').next()?.parse::<u64>().ok()?;
    Some(kib / 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpuinfo_and_meminfo_are_parsed() {
        let info = "processor\t: 0\nmodel name\t: AMD EPYC 7\nprocessor\t: 1\nmodel name\t: other\n";
        assert_eq!(field(info, "model name").as_deref(), Some("AMD EPYC 7"));
        assert_eq!(field("", "model name"), None);
        assert_eq!(memory_mib("MemTotal:       24576000 kB\nMemFree: 1 kB\n"), Some(24_000));
        assert_eq!(memory_mib("MemFree: 1 kB\n"), None);
    }

    #[test]
    fn host_name_becomes_one_path_component() {
        assert_eq!(plain_name("build.example.net"), "build");
        assert_eq!(plain_name("../a b"), "host");
        assert_eq!(plain_name("a/b"), "a-b");
        assert_eq!(plain_name(""), "host");
    }
}
