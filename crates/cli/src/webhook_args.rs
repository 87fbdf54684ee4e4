//! The options of commands that serve webhooks.

use crate::replica::DEFAULT_NAMESPACE;
use clap::Args;
use std::net::SocketAddr;
use tutti_controllers::Key;
use tutti_controllers::webhooks::{Options, Places, Timing};

/// Webhooks: off unless there is an address.
#[derive(Debug, Args)]
pub(crate) struct WebhookArgs {
    /// Address for the calls of API servers, as IP:PORT. Without it there are no webhooks, and nothing depends on them.
    #[arg(long, value_name = "ADDRESS")]
    webhook_address: Option<SocketAddr>,
    /// Name of the Service by which API servers call. The Secret with the certificates and both webhook configurations
    /// have the same name.
    #[arg(long, value_name = "NAME", default_value = "tutti-webhooks", requires = "webhook_address")]
    webhook_service: String,
}

impl WebhookArgs {
    /// What is to be served, by replicas that live in this namespace.
    pub(crate) fn options(&self, own_namespace: Option<&str>) -> Option<Options> {
        let address = self.webhook_address?;
        let namespace = own_namespace.unwrap_or(DEFAULT_NAMESPACE);
        let service = self.webhook_service.as_str();
        let mut names =
            vec![format!("{service}.{namespace}.svc"), format!("{service}.{namespace}.svc.cluster.local")];
        // Whoever listens on one address only may be called there.
        names.extend(Some(address.ip()).filter(|ip| !ip.is_unspecified()).map(|ip| ip.to_string()));
        let places =
            Places { secret: Key::new(namespace, service), configurations: service.to_owned(), names };
        Some(Options { address, places, timing: Timing::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Command {
        #[command(flatten)]
        webhooks: WebhookArgs,
    }

    fn options(arguments: &[&str], namespace: Option<&str>) -> Option<Options> {
        let arguments = [&["x"], arguments].concat();
        Command::try_parse_from(arguments).unwrap().webhooks.options(namespace)
    }

    #[test]
    fn without_an_address_there_are_no_webhooks() {
        assert!(options(&[], Some("own")).is_none());
        assert!(Command::try_parse_from(["x", "--webhook-service", "s"]).is_err());
        assert!(Command::try_parse_from(["x", "--webhook-address", "here"]).is_err());
    }

    #[test]
    fn certificates_are_for_the_service_in_the_namespace_of_the_replicas() {
        let anywhere = options(&["--webhook-address", "0.0.0.0:10272"], Some("own")).unwrap();
        assert_eq!(anywhere.places.secret, Key::new("own", "tutti-webhooks"));
        assert_eq!(anywhere.places.names, ["tutti-webhooks.own.svc", "tutti-webhooks.own.svc.cluster.local"]);
        let here = ["--webhook-address", "127.0.0.1:1", "--webhook-service", "s"];
        let here = options(&here, None).unwrap().places;
        assert_eq!((here.configurations.as_str(), here.names[2].as_str()), ("s", "127.0.0.1"));
        assert_eq!(here.secret.namespace, DEFAULT_NAMESPACE);
    }
}
