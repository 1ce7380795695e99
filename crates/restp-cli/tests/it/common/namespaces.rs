//! Two network namespaces.

#![allow(dead_code, reason = "every test file uses a part of it")]

use std::fs;
use std::process::Command;

/// With unique names, gone when the test is over, however it ends.
pub struct Namespaces(pub [String; 2]);

impl Namespaces {
    /// Those of the test `name`.
    pub fn create(name: &str) -> Result<Self, String> {
        let tun = fs::File::options().read(true).write(true).open("/dev/net/tun");
        tun.map_err(|error| format!("/dev/net/tun: {error}"))?;
        let names = ["left", "right"].map(|side| format!("restp-{}-{name}-{side}", std::process::id()));
        let namespaces = Namespaces(names);
        for name in &namespaces.0 {
            netns("add", name)?;
        }
        Ok(namespaces)
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for name in &self.0 {
            let _ = netns("delete", name);
        }
    }
}

fn netns(action: &str, name: &str) -> Result<(), String> {
    let output = Command::new("ip").args(["netns", action, name]).output();
    let output = output.map_err(|error| format!("ip: {error}"))?;
    if output.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).trim().into())
    }
}

/// What `words` print inside of a namespace; empty where they fail.
pub fn inside(namespace: &str, words: &[&str]) -> String {
    let output = Command::new("ip")
        .args(["netns", "exec", namespace])
        .args(words)
        .output();
    output.map_or_else(
        |_| String::new(),
        |output| String::from_utf8_lossy(&output.stdout).into_owned(),
    )
}
