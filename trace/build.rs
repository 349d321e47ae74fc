//! Compiles the kernel programs and generates their Rust skeleton.

use std::env;
use std::error::Error;
use std::path::PathBuf;
use std::process::Command;

use libbpf_cargo::SkeletonBuilder;

const SOURCE: &str = "bpf/io.bpf.c";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=bpf");
    let clang = env::var_os("CLANG").unwrap_or_else(|| "clang".into());
    if let Err(error) = Command::new(&clang).arg("--version").output() {
        return Err(format!(
            "cannot run {}: {error}. It compiles seekscope's kernel programs ({SOURCE}). Install clang 12 or newer \
             (Debian, Ubuntu: apt install clang) or name it in the environment variable CLANG",
            clang.display()
        )
        .into());
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo did not set OUT_DIR")?)
        .join("io.skel.rs");
    SkeletonBuilder::new()
        .source(SOURCE)
        .clang(&clang)
        .clang_args(["-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter"])
        .build_and_generate(&out)?;
    println!("cargo:rerun-if-env-changed=CLANG");
    Ok(())
}
