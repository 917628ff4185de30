//! Who asks a hub: a token, found where the hub's own client finds it.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use state_machine::pull::word::Cause;

use super::Variables;
use crate::pull::http::{Access, Bearer, Public, never};

/// Whoever the environment says, or nobody.
pub(super) fn of(variables: Variables<'_>) -> Result<Arc<dyn Access>, Cause> {
    Ok(match token(variables)? {
        Some(token) => Arc::new(Bearer(token)),
        None => Arc::new(Public),
    })
}

fn token(variables: Variables<'_>) -> Result<Option<String>, Cause> {
    if variables("HF_HUB_DISABLE_IMPLICIT_TOKEN").is_some_and(is_true) {
        return Ok(None);
    }
    let set = variables("HF_TOKEN").or_else(|| variables("HUGGING_FACE_HUB_TOKEN"));
    if let Some(set) = set {
        let text = set
            .into_string()
            .map_err(|_| never("HF_TOKEN is no text"))?;
        if let Some(token) = cleaned(&text) {
            return usable(token, "HF_TOKEN");
        }
    }
    let Some(path) = path(variables) else {
        return Ok(None);
    };
    match std::fs::read_to_string(&path) {
        Ok(text) => {
            cleaned(&text).map_or(Ok(None), |token| usable(token, &path.display().to_string()))
        }
        // Nobody has logged in here.
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            Ok(None)
        }
        Err(error) => Err(never(format!(
            "the token cannot be read from {}: {error}",
            path.display()
        ))),
    }
}

/// The file that a login leaves.
fn path(variables: Variables<'_>) -> Option<PathBuf> {
    let home = variables("HOME").map(PathBuf::from);
    // `~` is expanded by the client and not by whoever sets the variable, in some files.
    let expanded = |value: OsString| {
        let path = PathBuf::from(value);
        match (path.strip_prefix("~"), &home) {
            (Ok(rest), Some(home)) => home.join(rest),
            _ => path,
        }
    };
    if let Some(path) = variables("HF_TOKEN_PATH") {
        return Some(expanded(path));
    }
    let base = match variables("HF_HOME") {
        Some(base) => expanded(base),
        None => match variables("XDG_CACHE_HOME") {
            Some(cache) => expanded(cache),
            None => home.as_ref()?.join(".cache"),
        }
        .join("huggingface"),
    };
    Some(base.join("token"))
}

fn is_true(value: OsString) -> bool {
    let value = value.to_string_lossy().to_ascii_uppercase();
    matches!(value.as_str(), "1" | "ON" | "YES" | "TRUE")
}

/// Without line ends and space around it, where something is left.
fn cleaned(text: &str) -> Option<String> {
    let token = text.replace(['\r', '\n'], "");
    let token = token.trim();
    (!token.is_empty()).then(|| token.to_owned())
}

fn usable(token: String, from: &str) -> Result<Option<String>, Cause> {
    if token.bytes().all(|it| it.is_ascii_graphic()) {
        Ok(Some(token))
    } else {
        Err(never(format!(
            "{from} holds no token: there are characters in it that none has"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token_of(set: &[(&str, &str)]) -> Option<String> {
        let set: Vec<(String, OsString)> = set
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).into()))
            .collect();
        let variables = move |name: &str| set.iter().find(|it| it.0 == name).map(|it| it.1.clone());
        token(&variables).unwrap()
    }

    #[test]
    fn it_is_found_where_the_client_finds_it() {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| dir.path().join(path).to_str().unwrap().to_owned();
        for (path, text) in [
            ("h/token", "of-home\n"),
            ("c/huggingface/token", " of-cache "),
            ("t", "of-path"),
        ] {
            std::fs::create_dir_all(dir.path().join(path).parent().unwrap()).unwrap();
            std::fs::write(dir.path().join(path), text).unwrap();
        }
        std::fs::create_dir_all(dir.path().join(".cache/huggingface")).unwrap();
        std::fs::write(dir.path().join(".cache/huggingface/token"), "of-user").unwrap();
        let all = [
            ("HF_TOKEN", "a\n".to_owned()),
            ("HUGGING_FACE_HUB_TOKEN", "b".to_owned()),
            ("HF_TOKEN_PATH", at("t")),
            ("HF_HOME", at("h")),
            ("XDG_CACHE_HOME", at("c")),
            ("HOME", at("")),
        ];
        let expected = ["a", "b", "of-path", "of-home", "of-cache", "of-user"];
        for (from, token) in expected.iter().enumerate() {
            let set: Vec<(&str, &str)> =
                all[from..].iter().map(|it| (it.0, it.1.as_str())).collect();
            assert_eq!(token_of(&set).as_deref(), Some(*token));
            let mut disabled = set.clone();
            disabled.push(("HF_HUB_DISABLE_IMPLICIT_TOKEN", "yes"));
            assert_eq!(token_of(&disabled), None);
        }
        assert_eq!(token_of(&[]), None);
        assert_eq!(
            token_of(&[("HF_HOME", "~/h"), ("HOME", &at(""))]).as_deref(),
            Some("of-home")
        );
        assert_eq!(token_of(&[("HF_HOME", &at("nowhere"))]), None);
    }

    #[test]
    fn what_is_no_token_is_said_and_not_sent() {
        let variables = |name: &str| (name == "HF_TOKEN").then(|| OsString::from("a b"));
        assert!(token(&variables).is_err());
    }
}
