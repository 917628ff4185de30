//! What a package is made of, and what of none is made. Nothing is built here: what stands in for cargo does nothing.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use outlive_tests::{bench, program_at};

fn of_project(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

#[test]
fn a_package_holds_every_license() {
    let manifest = fs::read_to_string(of_project("supervisor/Cargo.toml")).unwrap();
    let mut found = 0;
    for entry in fs::read_dir(of_project("")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name.starts_with("LICENSE-") {
            let asset = format!(r#"["../{name}", "usr/share/doc/outlive/{name}", "644"]"#);
            assert!(manifest.contains(&asset), "{name} is not packaged");
            found += 1;
        }
    }
    assert_eq!(found, 2);
}

#[test]
fn no_package_is_made_of_a_binary_that_needs_libraries() {
    let bench = bench!();
    let needed = ["bash", "readelf"].map(program_at);
    if let [Some(_), Some(readelf)] = needed {
        let (bin, target) = (bench.dir().join("bin"), bench.dir().join("target"));
        fs::create_dir_all(&bin).unwrap();
        for (name, script) in [("cargo", "exit 0"), ("rustc", "echo host: here")] {
            let program = bin.join(name);
            fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
            fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
        }
        // It needs some itself.
        let built = target.join("here/release");
        fs::create_dir_all(&built).unwrap();
        fs::copy(readelf, built.join("outlive")).unwrap();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let dirs = std::iter::once(bin).chain(std::env::split_paths(&path));
        let mut deb = bench.program(of_project("supervisor/packaging/deb"));
        deb.arg(bench.file("made"))
            .env("PATH", std::env::join_paths(dirs).unwrap())
            .env("CARGO_TARGET_DIR", &target);
        let refused = bench.end(deb).expect(1);
        assert!(
            refused
                .errors()
                .contains("is not linked statically (it needs "),
            "{refused:?}"
        );
        assert!(!bench.file("made").exists());
    }
    bench.audit();
}
