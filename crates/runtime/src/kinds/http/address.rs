//! Which addresses `http` nodes may connect to.
//!
//! Cloud providers give credentials to every process that asks a link-local address, and a workflow's URL is often
//! data. Such addresses are refused unless a setting allows them. A name is checked by the addresses that it resolves
//! to when the connection is made, so a name that resolves differently the second time gains nothing.

use std::error::Error;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// The addresses that `http` nodes may connect to: all but link-local and metadata addresses, plus the allowed ones.
#[derive(Clone, Debug, Default)]
pub struct Egress {
    allowed: Vec<(IpAddr, u8)>,
}

/// Metadata services at addresses that are not link-local: AWS and Google over IPv6, Alibaba, Oracle, Azure.
const METADATA: [IpAddr; 5] = [
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x0254)),
    IpAddr::V6(Ipv6Addr::new(0xfd20, 0x00ce, 0, 0, 0, 0, 0, 0x0254)),
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
];

impl Egress {
    /// Allows these networks, each an address and the length of its prefix.
    pub fn allowing(allowed: Vec<(IpAddr, u8)>) -> Self {
        Self { allowed }
    }

    pub(super) fn check(&self, address: IpAddr) -> Result<(), Refused> {
        let address = embedded_v4(address);
        let is_refused = is_link_local(address) || METADATA.contains(&address);
        match is_refused && !self.allowed.iter().any(|network| contains(*network, address)) {
            true => Err(Refused(address)),
            false => Ok(()),
        }
    }

    /// Checks a URL whose host is an address. The URL parser has normalised every spelling of an IPv4 address
    /// (decimal, octal, hexadecimal, shortened). Names are checked when they are resolved.
    pub(super) fn check_literal(&self, url: &Url) -> Result<(), Refused> {
        let host = url.host_str().unwrap_or_default();
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        bare.parse().map_or(Ok(()), |address| self.check(address))
    }
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

/// The IPv4 address that an IPv6 address leads to: mapped, compatible, NAT64 or 6to4.
fn embedded_v4(address: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = address else { return address };
    let octets = v6.octets();
    let tail = || IpAddr::V4(Ipv4Addr::new(octets[12], octets[13], octets[14], octets[15]));
    match v6.segments() {
        [0, 0, 0, 0, 0, 0xffff, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => tail(),
        // `::` and `::1` are addresses of their own.
        [0, 0, 0, 0, 0, 0, high, _] if high != 0 => tail(),
        [0x2002, ..] => IpAddr::V4(Ipv4Addr::new(octets[2], octets[3], octets[4], octets[5])),
        _ => address,
    }
}

fn contains((network, prefix): (IpAddr, u8), address: IpAddr) -> bool {
    // The prefix of an IPv4 network in IPv6 notation counts 96 bits more.
    let prefix = if embedded_v4(network) == network { prefix } else { prefix.saturating_sub(96) };
    match (embedded_v4(network), address) {
        (IpAddr::V4(network), IpAddr::V4(address)) => {
            let prefix = u32::from(prefix).min(32);
            let mask = u32::MAX.checked_shl(32 - prefix).unwrap_or(0);
            u32::from(network) & mask == u32::from(address) & mask
        }
        (IpAddr::V6(network), IpAddr::V6(address)) => {
            let prefix = u32::from(prefix).min(128);
            let mask = u128::MAX.checked_shl(128 - prefix).unwrap_or(0);
            u128::from(network) & mask == u128::from(address) & mask
        }
        _ => false,
    }
}

/// An address that `http` nodes do not connect to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Refused(IpAddr);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind =
            if is_link_local(self.0) { "a link-local address" } else { "the address of a metadata service" };
        write!(f, "{} is {kind}, which `http` nodes do not call unless `egress.allow` names it", self.0)
    }
}

impl Error for Refused {}

impl Refused {
    /// The refusal that caused a failed request, if there is one.
    pub(super) fn behind(error: &reqwest::Error) -> Option<Self> {
        let mut source = error.source();
        while let Some(inner) = source {
            if let Some(refused) = inner.downcast_ref::<Self>() {
                return Some(*refused);
            }
            source = inner.source();
        }
        None
    }
}

/// The system's resolver, without the refused addresses.
pub(in crate::kinds) struct Resolver(pub(in crate::kinds) Arc<Egress>);

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let egress = self.0.clone();
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let permitted: Vec<SocketAddr> =
                found.iter().copied().filter(|address| egress.check(address.ip()).is_ok()).collect();
            if let (Some(first), true) = (found.first(), permitted.is_empty()) {
                egress.check(first.ip())?;
            }
            Ok(Box::new(permitted.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(egress: &Egress, url: &str) -> bool {
        egress.check_literal(&Url::parse(url).unwrap()).is_err()
    }

    #[test]
    fn every_spelling_of_a_metadata_address_is_refused() {
        let egress = Egress::default();
        for url in [
            "http://169.254.169.254/latest/meta-data",
            "http://169.254.0.1",
            "http://169.254.169.254./",
            "http://2852039166/",
            "http://0xa9fea9fe/",
            "http://0xa9.0xfe.0xa9.0xfe/",
            "http://0251.0376.0251.0376/",
            "http://169.254.43518/",
            "http://169.16689662/",
            "http://[fe80::1]/",
            "http://[febf::1]/",
            "http://[fd00:ec2::254]/",
            "http://[fd20:ce::254]/",
            "http://[::ffff:169.254.169.254]/",
            "http://[::ffff:a9fe:a9fe]/",
            "http://[::169.254.169.254]/",
            "http://[64:ff9b::a9fe:a9fe]/",
            "http://[2002:a9fe:a9fe::]/",
            "http://100.100.100.200/",
        ] {
            assert!(refused(&egress, url), "{url}");
        }
        for url in [
            "http://127.0.0.1/",
            "http://10.0.0.1/",
            "http://169.253.255.255/",
            "http://[::1]/",
            "http://[::]/",
            "http://[fec0::1]/",
            "http://[fd00:ec2::253]/",
            "http://[::ffff:127.0.0.1]/",
            "http://example.com/",
        ] {
            assert!(!refused(&egress, url), "{url}");
        }
    }

    #[test]
    fn what_is_allowed_is_called() {
        let egress =
            Egress::allowing(vec![("169.254.169.254".parse().unwrap(), 32), ("fe80::".parse().unwrap(), 10)]);
        assert!(!refused(&egress, "http://169.254.169.254/"));
        assert!(!refused(&egress, "http://[::ffff:169.254.169.254]/"));
        assert!(!refused(&egress, "http://[fe80::7]/"));
        assert!(refused(&egress, "http://169.254.169.253/"));
        assert!(refused(&egress, "http://[fd00:ec2::254]/"));
        let all = Egress::allowing(vec![("0.0.0.0".parse().unwrap(), 0)]);
        assert!(!refused(&all, "http://169.254.1.1/"));
        assert!(refused(&all, "http://[fe80::7]/"));
        let mapped = Egress::allowing(vec![("::ffff:169.254.0.0".parse().unwrap(), 112)]);
        assert!(!refused(&mapped, "http://169.254.169.254/"));
    }
}
