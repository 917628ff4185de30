//! Who has logged in to which registry: the file that `docker login`, `podman login` and `skopeo login` write. Programs that it
//! names are not run.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use state_machine::pull::word::Cause;

use super::Variables;
use crate::pull::http::never;

/// The names by which its users know the registry of docker.
const DOCKER: [&str; 3] = ["docker.io", "index.docker.io", "registry-1.docker.io"];

/// What is in the file.
#[derive(Default)]
pub(super) struct Logins {
    path: Option<PathBuf>,
    file: File,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct File {
    auths: BTreeMap<String, Login>,
    #[serde(rename = "credHelpers")]
    helpers: BTreeMap<String, String>,
    #[serde(rename = "credsStore")]
    store: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Login {
    auth: Option<String>,
    username: Option<String>,
    password: Option<String>,
}

impl Logins {
    /// Read the file that the environment names, else the one in the usual place.
    pub(super) fn read(variables: Variables<'_>) -> Result<Logins, Cause> {
        let Some((path, is_named)) = path(variables) else {
            return Ok(Logins::default());
        };
        let text = match std::fs::read(&path) {
            Ok(text) => text,
            Err(error)
                if !is_named
                    && matches!(
                        error.kind(),
                        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                    ) =>
            {
                return Ok(Logins::default());
            }
            Err(error) => return Err(never(format!("cannot read {}: {error}", path.display()))),
        };
        let file = serde_json::from_slice(&text)
            .map_err(|error| never(format!("{} cannot be read: {error}", path.display())))?;
        Ok(Logins {
            path: Some(path),
            file,
        })
    }

    /// What is shown to a host for a name, as `Authorization: Basic` has it: of the entry that says most of both.
    pub(super) fn of(&self, host: &str, name: &str) -> Option<String> {
        let wanted = format!("{}/{name}", known_as(host));
        let fits = |key: &str| {
            let key = plain(key);
            let is_it = wanted == key
                || wanted
                    .strip_prefix(&key)
                    .is_some_and(|rest| rest.starts_with('/'));
            is_it.then_some(key.len())
        };
        let entries = self.file.auths.iter();
        let found = entries.filter_map(|(key, login)| Some((fits(key)?, login.shown()?)));
        found
            .max_by_key(|(length, _)| *length)
            .map(|(_, shown)| shown)
    }

    /// What could be done about a host that knows nobody.
    pub(super) fn advice(&self, host: &str) -> String {
        let named = self
            .file
            .helpers
            .iter()
            .find(|(key, _)| plain(key) == known_as(host));
        let helper = named.map(|it| it.1).or(self.file.store.as_ref());
        match (helper, &self.path) {
            (Some(helper), Some(path)) => format!(
                "{} leaves its credentials to the program docker-credential-{helper}, which is not run: put them into its \"auths\"",
                path.display()
            ),
            _ => format!("log in with `docker login {host}` or `skopeo login {host}`"),
        }
    }
}

impl Login {
    fn shown(&self) -> Option<String> {
        if let Some(auth) = self.auth.as_ref().filter(|it| !it.is_empty()) {
            let user = STANDARD.decode(auth.trim()).ok()?;
            return user.contains(&b':').then(|| STANDARD.encode(user));
        }
        let (user, password) = (self.username.as_ref()?, self.password.as_ref()?);
        Some(STANDARD.encode(format!("{user}:{password}")))
    }
}

/// The file, and whether somebody has named it.
fn path(variables: Variables<'_>) -> Option<(PathBuf, bool)> {
    if let Some(path) = variables("REGISTRY_AUTH_FILE") {
        return Some((path.into(), true));
    }
    if let Some(dir) = variables("DOCKER_CONFIG") {
        return Some((PathBuf::from(dir).join("config.json"), false));
    }
    // podman and skopeo write this one, and it goes when its user logs out.
    let of_session =
        variables("XDG_RUNTIME_DIR").map(|dir| PathBuf::from(dir).join("containers/auth.json"));
    if let Some(path) = of_session.filter(|path| path.exists()) {
        return Some((path, false));
    }
    let home = PathBuf::from(variables("HOME")?);
    Some((home.join(".docker/config.json"), false))
}

/// A key of the file without what does not tell one registry from another: `https://index.docker.io/v1/` is an address.
fn plain(key: &str) -> String {
    let key = key
        .strip_prefix("https://")
        .or(key.strip_prefix("http://"))
        .unwrap_or(key);
    let key = key.trim_end_matches('/');
    let key = key
        .strip_suffix("/v1")
        .or(key.strip_suffix("/v2"))
        .unwrap_or(key);
    let (host, rest) = key.split_at(key.find('/').unwrap_or(key.len()));
    format!("{}{rest}", known_as(host))
}

/// One name for each registry.
fn known_as(host: &str) -> &str {
    if DOCKER.contains(&host) {
        DOCKER[0]
    } else {
        host
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logins(text: &str) -> Logins {
        Logins {
            path: Some("config.json".into()),
            file: serde_json::from_str(text).unwrap(),
        }
    }

    #[test]
    fn the_entry_that_says_most_is_taken() {
        let logins = logins(
            r#"{"auths":{
                "https://index.docker.io/v1/":{"auth":"dTpkb2NrZXI="},
                "host:5000":{"auth":"dTpob3N0"},
                "host:5000/team":{"username":"u","password":"team"},
                "helped":{},
                "broken":{"auth":"?"}
            }}"#,
        );
        let of = |host, name| {
            let shown = logins.of(host, name)?;
            String::from_utf8(STANDARD.decode(shown).unwrap()).ok()
        };
        assert_eq!(
            of("registry-1.docker.io", "library/x").as_deref(),
            Some("u:docker")
        );
        assert_eq!(of("host:5000", "teams/x").as_deref(), Some("u:host"));
        assert_eq!(of("host:5000", "team/x").as_deref(), Some("u:team"));
        assert_eq!(of("host", "x"), None);
        assert_eq!(of("host:5000.evil", "x"), None);
        assert_eq!(of("helped", "x"), None);
        assert_eq!(of("broken", "x"), None);
    }

    #[test]
    fn a_program_that_has_the_credentials_is_named() {
        let logins = logins(r#"{"credHelpers":{"host":"pass"},"credsStore":"desktop"}"#);
        assert!(logins.advice("host").contains("docker-credential-pass"));
        assert!(logins.advice("other").contains("docker-credential-desktop"));
        assert!(
            Logins::default()
                .advice("host")
                .contains("docker login host")
        );
    }
}
