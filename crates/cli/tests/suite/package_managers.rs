//! Runs apt and pacman, as the distribution has them, with haul as their download program. Each has
//! its own root directory, and fetches from a local mirror.

use crate::common;

use std::fs;
use std::path::Path;
use std::process::Command;

use common::{HAUL, installed, program, run, skipped};

use crate::guides::block_with;

/// A running `python3 -m http.server`, which serves as a mirror. It supports no ranges, and closes
/// each connection after one response.
struct PythonFileServer {
    child: std::process::Child,
    url: String,
}

impl PythonFileServer {
    fn of(dir: &Path) -> PythonFileServer {
        use std::io::BufRead;
        let script = "import http.server,functools,sys\n\
                      h=functools.partial(http.server.SimpleHTTPRequestHandler,directory=sys.argv[1])\n\
                      s=http.server.ThreadingHTTPServer(('127.0.0.1',0),h)\n\
                      print(s.server_port,flush=True)\n\
                      s.serve_forever()";
        let mut child = Command::new("python3")
            .args(["-c", script])
            .arg(dir)
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        std::io::BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        PythonFileServer { child, url: format!("http://127.0.0.1:{}", line.trim()) }
    }
}

impl Drop for PythonFileServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Builds a Debian package with the name `name`, which contains one file. The package is written to
/// the directory `pool` below `dir`.
fn debian_package(dir: &Path, name: &str) {
    let root = dir.join(name);
    fs::create_dir_all(root.join("DEBIAN")).unwrap();
    fs::create_dir_all(root.join("usr/share").join(name)).unwrap();
    fs::write(root.join("usr/share").join(name).join("file"), name.repeat(100_000)).unwrap();
    let control = format!(
        "Package: {name}\nVersion: 1\nArchitecture: all\nMaintainer: nobody <nobody@example.com>\nDescription: {name}\n"
    );
    fs::write(root.join("DEBIAN/control"), control).unwrap();
    let mut command = Command::new("dpkg-deb");
    command.args(["--build", "--root-owner-group"]).arg(&root).arg(dir.join("pool").join(format!("{name}.deb")));
    assert_eq!(run(&mut command).code, 0);
    fs::remove_dir_all(root).unwrap();
}

#[test]
fn apt_updates_and_downloads_with_haul() {
    for program in ["apt-get", "dpkg-deb", "apt-ftparchive", "python3"] {
        if installed(program, "apt with haul as its method").is_none() {
            return;
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let (mirror, root, methods) = (dir.path().join("mirror"), dir.path().join("root"), dir.path().join("methods"));
    fs::create_dir_all(mirror.join("pool")).unwrap();
    let names = ["haul-test-a", "haul-test-b", "haul-test-c"];
    for name in names {
        debian_package(&mirror, name);
    }
    let archive = |words: &[&str]| {
        let mut command = Command::new("apt-ftparchive");
        let ran = run(command.args(words).current_dir(&mirror));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        ran.stdout
    };
    fs::write(mirror.join("Packages"), archive(&["packages", "pool"])).unwrap();
    fs::write(mirror.join("Release"), archive(&["release", "."])).unwrap();
    for path in ["state/lists/partial", "cache/archives/partial", "etc/apt.conf.d", "etc/preferences.d", "log"] {
        fs::create_dir_all(root.join(path)).unwrap();
    }
    fs::write(root.join("status"), "").unwrap();
    // The commands of the guide, with directories of the test.
    let commands = block_with("docs/package-managers.md", "Dir::Bin::Methods");
    let commands = commands.replace("/usr/local/lib/haul/methods", methods.to_str().unwrap());
    let commands =
        commands.replace("/usr/local/bin/haul", HAUL).replace("/etc/apt", root.join("etc").to_str().unwrap());
    assert_eq!(run(program("sh").args(["-euc", &commands])).code, 0);
    let server = PythonFileServer::of(&mirror);
    fs::write(root.join("etc/sources.list"), format!("deb [trusted=yes] {} ./\n", server.url)).unwrap();
    let config = format!(
        "Dir \"{root}/\"; Dir::State \"state\"; Dir::State::status \"{root}/status\"; Dir::Cache \"cache\"; Dir::Etc \"etc\";\n\
         Dir::Log \"log\"; APT::Sandbox::User \"root\"; Acquire::Languages \"none\";\n\
         APT::Architecture \"amd64\"; Debug::NoLocking \"true\";\n",
        root = root.display(),
    );
    fs::write(dir.path().join("apt.conf"), config).unwrap();
    let apt = |words: &[&str]| {
        let mut command = Command::new("apt-get");
        command.args(words).env("APT_CONFIG", dir.path().join("apt.conf")).env("LC_ALL", "C").env_remove("http_proxy");
        let ran = run(command.current_dir(dir.path()));
        assert_eq!(ran.code, 0, "{}{}", String::from_utf8_lossy(&ran.stdout), ran.stderr);
        String::from_utf8(ran.stdout).unwrap()
    };
    // There is no InRelease: nothing is got of it.
    let said = apt(&["update"]);
    assert!(said.contains("Get:") && said.contains("Ign:1 ") && !said.contains("Get:1 "), "{said}");
    // Nothing is new the second time: the server says so, and the lists stay.
    let said = apt(&["update"]);
    assert!(said.contains("Hit:") && !said.contains("Get:"), "{said}");
    apt(&[&["install", "--download-only", "-y"], &names[..]].concat());
    for name in names {
        let got = fs::read(root.join(format!("cache/archives/{name}_1_all.deb"))).unwrap();
        assert!(got == fs::read(mirror.join(format!("pool/{name}.deb"))).unwrap(), "{name}");
    }
    // A file missing on the mirror is an error in apt's own words.
    fs::remove_file(mirror.join("pool/haul-test-a.deb")).unwrap();
    fs::remove_file(root.join("cache/archives/haul-test-a_1_all.deb")).unwrap();
    let mut command = Command::new("apt-get");
    command.args(["download", "haul-test-a"]).env("APT_CONFIG", dir.path().join("apt.conf")).current_dir(dir.path());
    let ran = run(&mut command);
    assert!(ran.code != 0 && ran.stderr.contains("404"), "{}", ran.stderr);
}

#[test]
fn pacman_fetches_with_haul() {
    for program in ["pacman", "repo-add", "python3", "bsdtar"] {
        if installed(program, "pacman with haul as its XferCommand").is_none() {
            return;
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let (mirror, root) = (dir.path().join("mirror"), dir.path().join("root"));
    fs::create_dir_all(&mirror).unwrap();
    for path in ["var/lib/pacman", "cache", "files/usr/share/x"] {
        fs::create_dir_all(root.join(path)).unwrap();
    }
    let files = root.join("files");
    fs::write(files.join("usr/share/x/file"), "x".repeat(200_000)).unwrap();
    fs::write(files.join(".PKGINFO"), "pkgname = x\npkgver = 1-1\narch = any\nsize = 200000\npkgdesc = x\n").unwrap();
    let package = mirror.join("x-1-1-any.pkg.tar.gz");
    let mut command = Command::new("bsdtar");
    let ran = run(command.arg("-czf").arg(&package).arg("-C").arg(&files).args([".PKGINFO", "usr"]));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let mut command = Command::new("repo-add");
    let ran = run(command.arg(mirror.join("test.db.tar.gz")).arg(&package));
    if ran.code != 0 {
        return skipped(&format!("pacman with haul: repo-add does not work here: {}", ran.stderr));
    }
    let server = PythonFileServer::of(&mirror);
    let setting = block_with("docs/package-managers.md", "XferCommand").replace("/usr/bin/haul", HAUL);
    let config =
        format!("[options]\nArchitecture = auto\nSigLevel = Never\n{setting}[test]\nServer = {}\n", server.url);
    fs::write(dir.path().join("pacman.conf"), config).unwrap();
    let mut command = Command::new("pacman");
    command.arg("--config").arg(dir.path().join("pacman.conf")).arg("--root").arg(&root);
    command.arg("--dbpath").arg(root.join("var/lib/pacman")).arg("--cachedir").arg(root.join("cache"));
    let ran = run(command.args(["--noconfirm", "-Syw", "x"]));
    assert_eq!(ran.code, 0, "{}{}", String::from_utf8_lossy(&ran.stdout), ran.stderr);
    assert!(fs::read(root.join("cache/x-1-1-any.pkg.tar.gz")).unwrap() == fs::read(&package).unwrap());
}
