//! A model of a registry, in the directory that ollama reads: its blobs beside those of every other model, and its manifest, which
//! makes it known and is written last.

use std::path::Path;

use state_machine::pull::reference::{self, is_digest};
use state_machine::pull::word::Cause;
use state_machine::record::Pull;

use super::registry::{Found, Kind, Manifest, Registry, Wanted, written_down};
use super::{Provider, Variables};
use crate::pull::http::{Http, never};
use crate::pull::plan::{Item, Keystone, Plan};

/// The registry of ollama's makers. `OLLAMA_HOST` is not asked: it is a server that runs models, and no registry.
const REGISTRY: &str = "registry.ollama.ai";
/// The type of manifest that ollama asks for.
const ACCEPT: &str = "application/vnd.docker.distribution.manifest.v2+json";

/// A model of a registry.
pub(super) struct Model {
    registry: Registry,
    host: String,
    model: reference::Model,
    /// The digest that its manifest must have.
    wanted: Wanted,
    shown: String,
}

impl Model {
    /// What is asked for.
    pub(super) fn new(
        model: reference::Model,
        pull: &Pull,
        variables: Variables<'_>,
    ) -> Result<Model, Cause> {
        let wanted = Wanted::of(pull)?;
        let host = model
            .registry
            .clone()
            .unwrap_or_else(|| REGISTRY.to_owned());
        let name = format!("{}/{}", model.namespace, model.name);
        let shown = format!("ollama:{host}/{name}:{}", model.tag);
        Ok(Model {
            registry: Registry::new(&host, &name, shown.clone(), variables)?,
            host,
            model,
            wanted,
            shown,
        })
    }

    fn blobs(&self, manifest: &Manifest) -> Result<Vec<Item>, Cause> {
        let mut items: Vec<Item> = Vec::new();
        for blob in manifest.layers.iter().chain([&manifest.config]) {
            // Some models have no configuration.
            if blob.digest.is_empty() && blob.size == 0 {
                continue;
            }
            let Some(hex) = blob
                .digest
                .strip_prefix("sha256:")
                .filter(|_| is_digest(&blob.digest))
            else {
                return Err(never(format!(
                    "{:?} of {} is no digest that can be checked; only sha256 is",
                    blob.digest, self.shown
                )));
            };
            let path = vec!["blobs".to_owned(), format!("sha256-{hex}")];
            let item = self.registry.item(blob, path)?;
            match items.iter().find(|it| it.path == item.path) {
                Some(same) if same.size == item.size => {}
                Some(_) => {
                    return Err(never(format!(
                        "{} says two lengths of {}",
                        self.shown, blob.digest
                    )));
                }
                None => items.push(item),
            }
        }
        Ok(items)
    }

    fn found(&self, http: &Http, version: &str) -> Result<Found, Cause> {
        self.registry.manifest(http, version, ACCEPT)
    }

    /// The manifest of this digest. Not every registry of models has them by digest, so the tag is asked first.
    fn still(&self, http: &Http, digest: &str) -> Result<Found, Cause> {
        let found = match self.registry.last(digest) {
            Some(found) => found,
            None => self.found(http, &self.model.tag)?,
        };
        if found.digest == digest {
            return Ok(found);
        }
        self.found(http, digest).map_err(|cause| match cause {
            Cause::Never { .. } => never(format!(
                "{} was {digest} when this began, and is {} now; pull it anew",
                self.shown, found.digest
            )),
            cause => cause,
        })
    }
}

impl Provider for Model {
    fn resolve(&self, http: &Http) -> Result<Option<String>, Cause> {
        let digest = self.found(http, &self.model.tag)?.digest;
        self.wanted.accept(digest, &self.shown).map(Some)
    }

    fn plan(&self, http: &Http, resolved: Option<&str>, destination: &Path) -> Result<Plan, Cause> {
        let digest = written_down(resolved)?;
        let found = self.still(http, digest)?;
        let manifest = Manifest::read(&found)?;
        if manifest.kind != Kind::Image {
            return Err(never(format!(
                "{} is not one model but an index of several",
                self.shown
            )));
        }
        let items = self.blobs(&manifest)?;
        let model = &self.model;
        let parts = [
            "manifests",
            &self.host,
            &model.namespace,
            &model.name,
            &model.tag,
        ];
        Ok(Plan {
            items,
            written: Vec::new(),
            root: destination.to_owned(),
            staging: destination.join(state_machine::pull::path::STAGING),
            // Every model has its blobs here.
            owns_staging: false,
            keystone: Some(Keystone {
                path: parts.map(str::to_owned).to_vec(),
                // It is the model's, and whatever was there was an older one.
                make: Box::new(move |_| Ok(found.bytes.clone())),
            }),
            note: Some(format!("{} is {digest}", self.shown)),
        })
    }
}
