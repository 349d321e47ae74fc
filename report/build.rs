//! Bundles the page in `web/` so that the library can embed it: one script, one stylesheet.

use std::env;
use std::error::Error;
use std::path::Path;
use std::process::Command;

fn main() -> Result<(), Box<dyn Error>> {
    // From the folder of this crate, where cargo runs this, so that another clone watches the same.
    let web = Path::new("../web");
    let out = env::var("OUT_DIR")?;
    for watched in ["src", "build.mjs", "package-lock.json"] {
        println!("cargo::rerun-if-changed={}", web.join(watched).display());
    }
    if !web.join("node_modules/esbuild").is_dir() {
        return Err("web/node_modules is missing: run ./x build, which runs npm ci in web/".into());
    }
    let status = Command::new("node")
        .arg("build.mjs")
        .arg(&out)
        .current_dir(web)
        .status()
        .map_err(|error| format!("node, which bundles web/, did not start: {error}"))?;
    if !status.success() {
        return Err(format!("bundling web/ failed ({status})").into());
    }
    Ok(())
}
