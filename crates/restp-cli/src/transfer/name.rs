//! Which file names a receiver takes: plain names that mean one file in its own folder, on every system.

use super::message::MAX_NAME_BYTES;
use thiserror::Error;

/// Why a name is not taken.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NameError {
    /// No name at all.
    #[error("the file name is empty")]
    Empty,
    /// More bytes than file systems hold.
    #[error("the file name has {0} bytes; {MAX_NAME_BYTES} are allowed")]
    TooLong(usize),
    /// It leads elsewhere.
    #[error("the file name {0:?} holds a path; send a plain name such as \"report.pdf\"")]
    Path(String),
    /// It begins as a drive of Windows.
    #[error("the file name {0:?} begins like a drive of Windows; rename the file")]
    Drive(String),
    /// It would confuse terminals or file systems.
    #[error("the file name {0:?} holds a control character; rename the file")]
    Control(String),
    /// It would be taken for an option.
    #[error("the file name {0:?} begins with '-'; rename the file")]
    Option(String),
    /// It looks like another name than it is.
    #[error("the file name {0:?} holds characters that change the direction of text; rename the file")]
    Direction(String),
    /// A device of Windows, or a temporary file of ours.
    #[error("the file name {0:?} is reserved; rename the file")]
    Reserved(String),
}

/// Temporary files of running transfers begin so.
pub const TEMPORARY_PREFIX: &str = ".restp-";

/// Names that open devices on Windows, whatever follows the first dot.
const DEVICES: [&str; 4] = ["CON", "PRN", "AUX", "NUL"];
const NUMBERED_DEVICES: [&str; 2] = ["COM", "LPT"];

/// Does it hide from lists? What a shell or a login reads by itself does.
pub fn hides(name: &str) -> bool {
    name.starts_with('.')
}

/// Checks that `name` names a file in the receiver's folder, and nothing else.
///
/// # Errors
/// The first rule it breaks.
pub fn check(name: &str) -> Result<(), NameError> {
    let is_path = name.contains(['/', '\\']) || name == "." || name == "..";
    let is_drive = name.as_bytes().get(1) == Some(&b':') && name.as_bytes()[0].is_ascii_alphabetic();
    if name.is_empty() {
        Err(NameError::Empty)
    } else if name.len() > MAX_NAME_BYTES {
        Err(NameError::TooLong(name.len()))
    } else if is_path {
        Err(NameError::Path(name.into()))
    } else if is_drive {
        Err(NameError::Drive(name.into()))
    } else if name.chars().any(char::is_control) {
        Err(NameError::Control(name.into()))
    } else if name.starts_with('-') {
        Err(NameError::Option(name.into()))
    } else if name.chars().any(turns_text) {
        Err(NameError::Direction(name.into()))
    } else if is_device(name) || name.to_lowercase().starts_with(TEMPORARY_PREFIX) {
        Err(NameError::Reserved(name.into()))
    } else {
        Ok(())
    }
}

/// The characters of Unicode (UAX #9, §2) that make a name look like another one.
fn turns_text(c: char) -> bool {
    matches!(c, '\u{061C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

fn is_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or(name).trim_end();
    let stem = stem.to_ascii_uppercase();
    let numbered = NUMBERED_DEVICES.iter().any(|device| {
        stem.strip_prefix(device)
            .is_some_and(|rest| matches!(rest.as_bytes(), [b'0'..=b'9']))
    });
    numbered || DEVICES.contains(&stem.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_names_pass() {
        for name in [
            "a",
            "report.pdf",
            "Grüße 1.txt",
            "a..b",
            "a-b.",
            "שלום.txt",
            "console.log",
            "com10",
            ".git",
            "..a",
            "...",
        ] {
            assert_eq!(
                (check(name), hides(name)),
                (Ok(()), name.starts_with('.')),
                "{name}"
            );
        }
        assert_eq!(check(&"x".repeat(255)), Ok(()));
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        for name in ["../a", "/etc/passwd", "a/b", "..", ".", "a\\b", "C:\\x"] {
            assert_eq!(check(name), Err(NameError::Path(name.into())));
        }
        assert_eq!(check("c:x"), Err(NameError::Drive("c:x".into())));
        assert_eq!(check("mail:2,S"), Ok(()));
    }

    #[test]
    fn names_that_are_no_names_are_refused() {
        assert_eq!(check(""), Err(NameError::Empty));
        assert_eq!(check(&"x".repeat(256)), Err(NameError::TooLong(256)));
        assert_eq!(check("a\0b"), Err(NameError::Control("a\0b".into())));
        assert!(matches!(check("a\nb"), Err(NameError::Control(_))));
        for name in [
            "CON",
            "nul.txt",
            "Com1",
            "lpt9.log",
            "aux .txt",
            ".restp-x.part",
            ".ReSTP-",
        ] {
            assert_eq!(check(name), Err(NameError::Reserved(name.into())));
        }
    }

    #[test]
    fn names_that_are_options_or_look_like_others_are_refused() {
        for name in ["-rf", "--help"] {
            assert_eq!(check(name), Err(NameError::Option(name.into())));
        }
        for c in ['\u{202E}', '\u{2066}', '\u{200F}', '\u{061C}'] {
            let name = format!("report{c}fdp.exe");
            assert_eq!(check(&name), Err(NameError::Direction(name.clone())));
        }
    }
}
