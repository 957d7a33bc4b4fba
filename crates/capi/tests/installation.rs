//! The files that an installation provides for other build systems, and the examples in the guide.

mod common;

use std::fs;
use std::path::Path;
use std::process::Command;

use common::{BuildDirectory, built_library, crate_dir, has};
use tempfile::TempDir;
use testkit::origin::Origin;

/// Runs a command and panics if it fails.
fn run(command: &mut Command) {
    let output = command.output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{out}{err}", output.status);
}

/// Installs libhaul below `root` with the libraries in `library_dir`. The static library is empty.
fn install(root: &Path, library_dir: &str) {
    let built = root.join("built");
    fs::create_dir_all(&built).unwrap();
    fs::copy(built_library(), built.join("libhaul_c.so")).unwrap();
    fs::write(built.join("libhaul_c.a"), "!<arch>\n").unwrap();
    let script = crate_dir().join("../../scripts/libhaul.sh");
    run(Command::new("sh").arg(script).args([&built, root, root]).arg(library_dir));
}

#[test]
fn cmake_finds_the_installed_library() {
    let (true, true) = (has("cmake"), has("cc")) else { return };
    let (_origin, base) = Origin::start_with_base_url();
    // The second installation was moved after it was made.
    for (library_dir, moved) in [("lib", false), ("lib/some-triplet", true)] {
        let dir = TempDir::new().unwrap();
        let made = dir.path().join("made");
        install(&made, library_dir);
        let root = if moved { dir.path().join("moved") } else { made.clone() };
        fs::rename(&made, &root).unwrap();
        let (source, build) = (dir.path().join("source"), dir.path().join("build"));
        fs::create_dir(&source).unwrap();
        fs::copy(crate_dir().join("examples/get.c"), source.join("get.c")).unwrap();
        let lines = guide_examples("cmake").remove(0);
        let (package, library) = lines.split_once('\n').unwrap();
        let project = format!(
            "cmake_minimum_required(VERSION 3.16)\nproject(get C)\n{package}\nadd_executable(program get.c)\n{library}"
        );
        fs::write(source.join("CMakeLists.txt"), project).unwrap();
        let place = format!("-Dhaul_DIR={}", root.join(library_dir).join("cmake/haul").display());
        run(Command::new("cmake").arg("-S").arg(&source).arg("-B").arg(&build).arg(place));
        run(Command::new("cmake").arg("--build").arg(&build));
        let got = Command::new(build.join("program")).arg(format!("{base}/small/5")).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&got.stdout), "small 5\n", "{}", String::from_utf8_lossy(&got.stderr));
    }
}

#[test]
fn cmake_refuses_another_version() {
    if !has("cmake") || !has("cc") {
        return;
    }
    let dir = TempDir::new().unwrap();
    install(dir.path(), "lib");
    for (wanted, is_found) in [("0.1", true), ("0.1.0 EXACT", true), ("0", true), ("0.2", false), ("1", false)] {
        let source = dir.path().join("project");
        fs::create_dir_all(&source).unwrap();
        let project = format!(
            "cmake_minimum_required(VERSION 3.16)\nproject(p NONE)\nset(CMAKE_C_COMPILER cc)\nenable_language(C)\n\
             find_package(haul {wanted} REQUIRED)\n"
        );
        fs::write(source.join("CMakeLists.txt"), project).unwrap();
        let place = format!("-DCMAKE_PREFIX_PATH={}", dir.path().display());
        let output =
            Command::new("cmake").arg("-S").arg(&source).arg("-B").arg(source.join("build")).arg(place).output();
        assert_eq!(output.unwrap().status.success(), is_found, "find_package(haul {wanted})");
    }
}

/// Returns the code examples of the guide in this language.
fn guide_examples(language: &str) -> Vec<String> {
    let guide = fs::read_to_string(crate_dir().join("../../docs/c.md")).unwrap();
    let fence = format!("```{language}\n");
    let blocks = guide.split(&fence).skip(1);
    blocks.map(|block| block.split("```").next().unwrap_or_default().to_owned()).collect()
}

/// Compiles a program and returns what it prints.
fn output_of(directory: &BuildDirectory, compiler: &str, flags: &[&str], name: &str, text: &str) -> String {
    let source = directory.path(name);
    fs::write(&source, text).unwrap();
    directory.compile_by(compiler, flags, source.to_str().unwrap()).run_well::<&str>([])
}

#[test]
fn c_examples_of_the_guide_run() {
    let (true, Some(directory)) = (has("cc"), BuildDirectory::new()) else { return };
    let (_origin, base) = Origin::start_with_base_url();
    let [request, calls] = guide_examples("c").try_into().unwrap_or_else(|_| panic!("another number of examples"));
    let program = |example: &str| {
        format!(
            "#include <haul.h>\n#include <stdio.h>\n#include <string.h>\nint main(void) {{\n{example}\nreturn 0;\n}}\n"
        )
    };
    let text = program(&request.replace("https://example.com/", &format!("{base}/small/5")));
    assert_eq!(output_of(&directory, "cc", &["-std=c11"], "request.c", &text), "small 5\n");
    let text = program(&format!(
        "haul_client *client = haul_client_new();\nconst char *url = \"{base}/small/6\";\n{}\n\
         haul_response_free(place);\nhaul_client_free(client);",
        calls
            .replace("for (...)", "for (int turn = 0; turn < 3; turn++)")
            .replace("use(reply.body, reply.body_len)", "fwrite(reply.body, 1, reply.body_len, stdout)")
    ));
    assert_eq!(output_of(&directory, "cc", &["-std=c11"], "calls.c", &text), "small 6\n".repeat(3));
}

#[test]
fn cpp_example_of_the_guide_runs() {
    let (true, true, Some(directory)) = (has("cc"), has("c++"), BuildDirectory::new()) else { return };
    if !common::has_expected() {
        return;
    }
    let (_origin, base) = Origin::start_with_base_url();
    let [example] = guide_examples("cpp").try_into().unwrap_or_else(|_| panic!("another number of examples"));
    let example = example.replace("https://example.com/items", &format!("{base}/echo"));
    let text = format!(
        "#include <haul.hpp>\n#include <iostream>\nusing namespace std::literals;\nint main() {{\n{example}\n}}\n"
    );
    let printed = output_of(&directory, "c++", &["-std=c++23"], "request.cpp", &text);
    let (status, told) = printed.split_once(' ').unwrap();
    assert!(status == "200" && told.contains(r#""body":"{\"a\": 1}""#), "{printed}");
}
