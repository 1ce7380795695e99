//! The way to another host, as the arguments say: addresses, sockets, composition and keys.

use super::trust::Trust;
use super::warn_of_plain;
use super::words::Receiver;
use crate::address;
use crate::args::{CompositionArgs, LinkArgs};
use crate::failure::Failure;
use crate::keys;
use crate::links;
use crate::plan;
use crate::user_timeout::bear;
use restp::{Composition, Endpoint, EndpointConfig, Identity, Local, Security};
use restp_base::time::Duration;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

/// Where the receivers can be reached: as said, or as their tickets say; each address once.
///
/// # Errors
/// When what was said is no address.
pub fn addresses(arguments: &LinkArgs, to: &[Receiver]) -> Result<Vec<SocketAddr>, Failure> {
    if arguments.address.is_empty() {
        let addresses = to.iter().flat_map(|receiver| receiver.ticket.addresses());
        return on_links(each_once(addresses.copied()));
    }
    let mut addresses = Vec::new();
    for word in &arguments.address {
        let found = address::to_send_to(word);
        addresses.extend(found.map_err(|why| why.of("--address "))?);
    }
    Ok(each_once(addresses))
}

/// Those of a ticket that lead anywhere: the interface to a link is each host's own.
fn on_links(mut addresses: Vec<SocketAddr>) -> Result<Vec<SocketAddr>, Failure> {
    let first = addresses.first().copied();
    addresses.retain(|address| !address::lacks_zone(address));
    match first.filter(|_| addresses.is_empty()) {
        None => Ok(addresses),
        Some(first) => Err(Failure::input(format!(
            "{first}, of the ticket, is an address of one link; say by which interface of this host it is reached, such as --address [{}%eth0]:{}",
            first.ip(),
            first.port()
        ))),
    }
}

/// In their order: an address that is named twice is one path.
fn each_once(addresses: impl IntoIterator<Item = SocketAddr>) -> Vec<SocketAddr> {
    let mut once = Vec::new();
    for address in addresses {
        if !once.contains(&address) {
            once.push(address);
        }
    }
    once
}

/// What the connection is made of: `prepare` makes it carry what it is for, unless `--set` contradicts that. Over several paths the
/// default uses all of them, unless `--set` contradicts that as well.
///
/// # Errors
/// As [`plan::composition`].
pub fn composition(
    arguments: &LinkArgs,
    several: bool,
    user_timeout: Duration,
    prepare: fn(&mut Composition),
) -> Result<Composition, Failure> {
    let over = |base, arguments: &CompositionArgs| {
        plan::composition(base, arguments, |composition| {
            bear(composition, user_timeout);
            prepare(composition);
        })
    };
    let arguments = &arguments.composition;
    if several {
        let mut unsaid = arguments.clone();
        unsaid.profile.take_if(|profile| profile == "default");
        let spread = over(Composition::default().over_several_paths(), &unsaid)?;
        if spread.clone().check().is_ok() {
            return Ok(spread);
        }
    }
    over(Composition::default(), arguments)
}

/// Did the user name more than one path?
pub fn asks_for_several(
    arguments: &LinkArgs,
    locals: &[Local],
    to: &[Receiver],
    addresses: &[SocketAddr],
) -> bool {
    let interface = |local: &Local| !matches!(local, Local::Address(_));
    let several_here = locals.len() > 1 || locals.iter().any(interface);
    let there = if arguments.address.is_empty() {
        to.len() > 1 || to.iter().any(|receiver| receiver.ticket.has_paths())
    } else {
        true
    };
    several_here
        || to.iter().any(|receiver| !receiver.ticket.relays().is_empty())
        || (there || !locals.is_empty()) && addresses.len() > 1
}

/// Tells `endpoint` which addresses are those of relays.
pub fn expect_relays(endpoint: &Endpoint, to: &[Receiver]) {
    for receiver in to {
        endpoint.expect_relays(receiver.ticket.relays());
    }
}

/// Sealed under this user's key, unless the user wants neither.
///
/// # Errors
/// When the key cannot be read.
pub fn security(arguments: &LinkArgs, trust: &Trust) -> Result<Security, Failure> {
    if arguments.seal.plain {
        warn_of_plain();
        return Ok(Security::Plain);
    }
    let secret = keys::identity(arguments.seal.key.as_deref())?;
    Ok(Security::Sealed(Identity {
        trust: trust.policy(),
        ..Identity::of(secret)
    }))
}

/// Opens the sockets.
///
/// # Errors
/// When there is none.
pub fn bind(
    from: &[Local],
    to: &[SocketAddr],
    config: EndpointConfig,
    security: Security,
) -> Result<Endpoint, Failure> {
    if !from.is_empty() {
        let bound = Endpoint::bind_with(from, config, security).map_err(|error| {
            let list: Vec<_> = from.iter().map(Local::to_string).collect();
            // What the system says has no way out; what we say has.
            let rule = error
                .raw_os_error()
                .map_or("", |_| "; name addresses or interfaces of this host");
            Failure::input(format!("--bind {}: {error}{rule}", list.join(", ")))
        });
        return bound.inspect(|_| links::tell_of_those_without_an_address(from));
    }
    let mut local: Vec<Local> = Vec::new();
    if to.iter().any(SocketAddr::is_ipv4) {
        local.push(Local::Address((Ipv4Addr::UNSPECIFIED, 0).into()));
    }
    if to.iter().any(SocketAddr::is_ipv6) {
        local.push(Local::Address((Ipv6Addr::UNSPECIFIED, 0).into()));
    }
    Endpoint::bind_with(&local, config, security)
        .map_err(|error| Failure::operation(format!("no socket: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transfer::Ticket;

    fn arguments(address: &[&str]) -> LinkArgs {
        LinkArgs {
            address: address.iter().map(|text| (*text).to_owned()).collect(),
            ..LinkArgs::default()
        }
    }

    #[test]
    fn addresses_replace_those_of_the_ticket() {
        let to = ["127.0.0.1:1", "127.0.0.1:2"].map(|word| Receiver::of(word).expect("one"));
        let both = addresses(&arguments(&[]), &to).expect("addresses");
        assert_eq!(both.len(), 2);
        let replaced = addresses(&arguments(&["127.0.0.1:3"]), &to).expect("addresses");
        assert_eq!(replaced, ["127.0.0.1:3".parse().expect("an address")]);
        assert!(addresses(&arguments(&["no address"]), &to).is_err());
    }

    #[test]
    fn an_address_that_is_named_twice_is_one() {
        let words = ["127.0.0.1:2", "127.0.0.1:1", "127.0.0.1:2"];
        let to = words.map(|word| Receiver::of(word).expect("one"));
        for named in [&[][..], &words] {
            let found = addresses(&arguments(named), &to).expect("addresses");
            assert_eq!(
                found,
                ["127.0.0.1:2", "127.0.0.1:1"].map(|text| text.parse().expect("an address"))
            );
        }
    }

    #[test]
    fn over_several_paths_the_default_uses_all_of_them_unless_something_else_is_said() {
        let made_of = |profile: Option<&str>, set: &[&str], several: bool| {
            let mut arguments = arguments(&[]);
            arguments.composition.profile = profile.map(str::to_owned);
            arguments.composition.set = set.iter().map(|text| (*text).to_owned()).collect();
            let composition = composition(&arguments, several, Duration::from_secs(30), |_| {});
            composition
                .expect("understood")
                .check()
                .expect("valid")
                .services()
        };
        let has = |services: &[(&str, String, &str)], key: &str, choice: &str| {
            services
                .iter()
                .any(|(name, value, _)| *name == key && value == choice)
        };
        for profile in [None, Some("default")] {
            let spread = made_of(profile, &[], true);
            for (key, choice) in [
                ("paths", "spreading"),
                ("scheduling", "guard"),
                ("congestion", "adaptive"),
                ("loss", "adaptive"),
            ] {
                assert!(has(&spread, key, choice), "{spread:?}");
            }
        }
        let changed = made_of(None, &["congestion=cubic"], true);
        assert!(has(&changed, "congestion", "cubic") && has(&changed, "scheduling", "guard"));
        let default = made_of(None, &[], false);
        assert_eq!(made_of(None, &["paths=single"], true), default);
        let published = made_of(Some("3wh-arq"), &[], true);
        assert!(!has(&published, "paths", "spreading"), "{published:?}");
    }

    #[test]
    fn what_the_user_says_stands_above_what_a_command_prepares() {
        let made_of = |set: &str| {
            let mut arguments = arguments(&[]);
            arguments.composition.set = vec![set.to_owned()];
            let prepare = crate::pipe::prepare;
            composition(&arguments, false, Duration::from_secs(30), prepare).expect("understood")
        };
        let small = made_of("stream-window=1 MiB");
        assert_eq!(crate::pipe::check_fitness(&small), Ok(()));
        assert!(format!("{:?}", small.framing).contains("1048576"), "{small:?}");
        let other = crate::pipe::check_fitness(&made_of("framing=coalesce"));
        assert!(other.is_err_and(|why| why.contains("framing = coalesce") && why.contains("streams")));
    }

    #[test]
    fn several_paths_are_used_when_they_are_named() {
        let own: Vec<SocketAddr> = ["10.0.0.1:5", "10.0.1.1:5"]
            .map(|text| text.parse().expect("an address"))
            .to_vec();
        let (guesses, paths) = (
            Ticket::new(own.clone()).to_string(),
            Ticket::of_paths(own).to_string(),
        );
        let asks = |to: &[&str], address: &[&str], bind: &[&str]| {
            let arguments = arguments(address);
            let locals: Vec<Local> = bind.iter().map(|word| word.parse().expect("a local")).collect();
            let to: Vec<_> = to.iter().map(|word| Receiver::of(word).expect("one")).collect();
            let addresses = addresses(&arguments, &to).expect("addresses");
            asks_for_several(&arguments, &locals, &to, &addresses)
        };
        assert!(!asks(&["10.0.0.1:5"], &[], &[]));
        assert!(
            !asks(&[&guesses], &[], &[]),
            "a receiver at every address is tried at each of them"
        );
        assert!(asks(&[&paths], &[], &[]));
        assert!(!asks(&[&paths], &["10.0.0.9:5"], &[]), "replaced by one");
        assert!(asks(&[&guesses], &["10.0.0.9:5", "10.0.0.8:5"], &[]));
        assert!(asks(&["10.0.0.1:5", "10.0.1.1:5"], &[], &[]));
        assert!(!asks(&["10.0.0.1:5"], &[], &["10.0.0.2"]));
        assert!(asks(&["10.0.0.1:5"], &[], &["10.0.0.2", "10.0.1.2"]));
        assert!(asks(&[&guesses], &[], &["10.0.0.2"]));
        assert!(asks(&["10.0.0.1:5"], &[], &["all"]) && asks(&["10.0.0.1:5"], &[], &["eth0"]));
    }
}
