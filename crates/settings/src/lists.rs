//! Settings that are comma-separated lists.

use std::net::IpAddr;

use crate::value::{BadValue, Value};

fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty())
}

fn bad(part: &str, what: &str) -> BadValue {
    let shown: String = part.chars().take(60).collect();
    BadValue::new(format!("`{shown}` is not {what}"))
}

/// Names of environment variables; a `*` at the end matches any suffix.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EnvNames(pub Vec<String>);

impl Value for EnvNames {
    const EXPECTED: &'static str = "names of variables with commas between, such as `AWS_*, KUBECONFIG`";

    fn parse(text: &str) -> Result<Self, BadValue> {
        let is_name = |name: &str| {
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        };
        let names = parts(text).map(|part| match is_name(part.strip_suffix('*').unwrap_or(part)) {
            true => Ok(part.to_owned()),
            false => Err(bad(part, "the name of a variable")),
        });
        names.collect::<Result<_, _>>().map(Self)
    }

    fn show(&self) -> String {
        self.0.join(", ")
    }
}

/// Addresses and networks, each with its prefix length.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Networks(pub Vec<(IpAddr, u8)>);

impl Value for Networks {
    const EXPECTED: &'static str =
        "addresses or networks with commas between, such as `169.254.170.2, fe80::/10`";

    fn parse(text: &str) -> Result<Self, BadValue> {
        parts(text)
            .map(|part| network(part).ok_or_else(|| bad(part, "an address or a network")))
            .collect::<Result<_, _>>()
            .map(Self)
    }

    fn show(&self) -> String {
        let shown = self.0.iter().map(|(address, prefix)| match *prefix == bits(*address) {
            true => address.to_string(),
            false => format!("{address}/{prefix}"),
        });
        shown.collect::<Vec<_>>().join(", ")
    }
}

fn bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn network(text: &str) -> Option<(IpAddr, u8)> {
    let (address, prefix) = match text.split_once('/') {
        Some((address, prefix)) => (address.parse().ok()?, Some(prefix.parse().ok()?)),
        None => (text.parse().ok()?, None),
    };
    let prefix = prefix.unwrap_or(bits(address));
    (prefix <= bits(address)).then_some((address, prefix))
}

/// Origins of web pages, as browsers send them: in lowercase, without the default port of the scheme.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origins(pub Vec<String>);

impl Value for Origins {
    const EXPECTED: &'static str =
        "origins with commas between, such as `https://app.example.com, http://localhost:3000`";

    fn parse(text: &str) -> Result<Self, BadValue> {
        parts(text)
            .map(|part| origin(part).ok_or_else(|| bad(part, "an origin")))
            .collect::<Result<_, _>>()
            .map(Self)
    }

    fn show(&self) -> String {
        self.0.join(", ")
    }
}

fn origin(text: &str) -> Option<String> {
    let text = text.strip_suffix('/').unwrap_or(text).to_ascii_lowercase();
    let (scheme, authority) = text.split_once("://")?;
    let usual_port = match scheme {
        "http" => ":80",
        "https" => ":443",
        _ => return None,
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '[' | ']');
    if authority.is_empty() || !authority.chars().all(is_plain) {
        return None;
    }
    Some(format!("{scheme}://{}", authority.strip_suffix(usual_port).unwrap_or(authority)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown<T: Value>(text: &str) -> String {
        T::parse(text).map_or_else(|bad| bad.to_string(), |value| value.show())
    }

    #[test]
    fn lists_are_read_and_shown() {
        assert_eq!(shown::<EnvNames>("AWS_*,KUBECONFIG ,"), "AWS_*, KUBECONFIG");
        assert_eq!(shown::<EnvNames>("A B"), "`A B` is not the name of a variable");
        assert_eq!(shown::<EnvNames>("*"), "`*` is not the name of a variable");
        assert_eq!(shown::<Networks>("169.254.170.2/32, fe80::/10"), "169.254.170.2, fe80::/10");
        for bad in ["localhost", "10.0.0.0/33", "10.0.0.0/x", "::/129", "10.0.0"] {
            assert_eq!(shown::<Networks>(bad), format!("`{bad}` is not an address or a network"));
        }
        assert_eq!(
            shown::<Origins>("HTTPS://App.example.com:443/, http://localhost:3000, http://[::1]:80"),
            "https://app.example.com, http://localhost:3000, http://[::1]"
        );
        for bad in ["*", "app.example.com", "https://", "ftp://x", "https://a/b", "https://me@x", "null"] {
            assert_eq!(shown::<Origins>(bad), format!("`{bad}` is not an origin"));
        }
    }
}
