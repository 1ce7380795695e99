//! Content at the port of a host that does something else as well: `restp recv` and `restp serve` with --publish or --cache.

use super::cache;
use super::node;
use super::publish::{self, Invitation, Object};
use crate::args::{CACHE_SIZE, ContentArgs};
use crate::content::CHUNK_BYTES;
use crate::failure::Failure;
use crate::monitor::content::Serving;
use crate::monitor::snapshot::Shown;
use crate::output::note;
use restp::Endpoint;
use restp_rivals::itp::node::{FIRST_BYTES, Node};
use std::path::Path;

/// What is to be served.
pub struct Content {
    object: Option<Object>,
    cache: Option<cache::Opened>,
}

/// What is served.
pub struct Beside {
    endpoint: Endpoint<Node>,
    /// To what is published.
    pub invitation: Option<Invitation>,
    cache: Option<cache::Running>,
}

impl Content {
    /// Reads what is published, vouched for by the key in the file `key` or this user's, and opens the store.
    ///
    /// # Errors
    /// When something cannot be read, or opened.
    pub fn open(arguments: &ContentArgs, key: Option<&Path>) -> Result<Self, Failure> {
        let ContentArgs {
            publish,
            cache,
            cache_size,
            upstream,
        } = arguments;
        if cache.is_none() && (cache_size.is_some() || !upstream.is_empty()) {
            return Err(Failure::input(
                "--upstream and --cache-size are of a cache; say --cache DIR as well, or leave them out",
            ));
        }
        let size = cache_size.as_deref().unwrap_or(CACHE_SIZE);
        let opened = cache
            .as_ref()
            .map(|dir| cache::Opened::open(("--cache", dir), ("--cache-size", size), upstream));
        let object = (!publish.is_empty()).then(|| Object::read(publish, CHUNK_BYTES, key));
        Ok(Content {
            object: object.transpose()?,
            cache: opened.transpose()?,
        })
    }

    /// Serves it at the port of `host`, if there is something.
    ///
    /// # Errors
    /// When the system gives no randomness, or none of those above can be reached.
    pub fn start(self, host: &Endpoint) -> Result<Option<Beside>, Failure> {
        if self.object.is_none() && self.cache.is_none() {
            return Ok(None);
        }
        let endpoint = host.share_port(Node::new(node::config(None)?), FIRST_BYTES);
        let cache = self.cache.map(|cache| cache.start(&endpoint)).transpose()?;
        Ok(Some(Beside {
            invitation: self.object.map(|object| object.serve(&endpoint)).transpose()?,
            cache,
            endpoint,
        }))
    }
}

impl Beside {
    /// Says what was fetched.
    pub fn end(self) {
        if self.invitation.is_some() {
            note(publish::served(&self.endpoint).sentence());
        }
        if let Some(cache) = self.cache {
            note(cache.served(&self.endpoint).sentence());
        }
    }
}

/// What `restp top` sees of `host`, and of what it serves beside.
pub fn shown(host: &Endpoint, beside: Option<&Beside>) -> Vec<Box<dyn Shown>> {
    let content = beside.map(|beside| Box::new(Serving(beside.endpoint.caller())) as Box<dyn Shown>);
    [Box::new(host.overview()) as Box<dyn Shown>]
        .into_iter()
        .chain(content)
        .collect()
}

/// What a host prints first: its own ticket, and that of what it publishes.
pub fn tickets(own: &str, content: Option<&Invitation>) -> String {
    let content = content.map_or_else(String::new, |content| {
        format!("\ncontent ticket: {}", content.ticket)
    });
    format!("ticket: {own}{content}")
}
