//! Asks sentinels for the master of a service.

use redis::sentinel::{SentinelClient, SentinelClientBuilder, SentinelServerType};
use redis::{Client, ConnectionAddr, RedisResult, TlsCertificates, TlsMode};

use crate::address::{AddressError, UrlParts, decoded, tcp_settings};

const PORT_DEFAULT: &str = "26379";

/// The sentinels of a service, and how to log in to them and to the master.
#[derive(Clone)]
pub struct Sentinel {
    sentinels: Vec<ConnectionAddr>,
    service: String,
    db: i64,
    is_tls: bool,
    redis_login: Login,
    sentinel_login: Login,
}

#[derive(Clone, Default, PartialEq)]
struct Login {
    user: Option<String>,
    password: Option<String>,
}

impl std::fmt::Display for Sentinel {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sentinels: Vec<String> = self.sentinels.iter().map(ToString::to_string).collect();
        write!(formatter, "{} (sentinels {})", self.service, sentinels.join(","))
    }
}

impl std::fmt::Debug for Sentinel {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Sentinel({self})")
    }
}

impl Sentinel {
    pub(crate) fn parse(parts: &UrlParts<'_>) -> Result<Self, AddressError> {
        let mut path = parts.path.trim_matches('/').splitn(2, '/');
        let service = path.next().filter(|name| !name.is_empty()).map(decoded);
        let service = service.ok_or_else(|| {
            AddressError(format!("`{}` does not name a service: …/service[/db]", parts.shown()))
        })?;
        let db = path.next().unwrap_or("0");
        let db = db.parse().map_err(|_| AddressError(format!("`{db}` is not the number of a database")))?;
        let is_tls = parts.is_tls();
        let sentinels = parts.hosts.split(',').map(|host| sentinel_address(host, is_tls));
        Ok(Self {
            sentinels: sentinels.collect::<Result<_, _>>()?,
            service,
            db,
            is_tls,
            redis_login: parts.login.map(Login::parse).unwrap_or_default(),
            sentinel_login: Login {
                user: parts.parameter("sentinel_username"),
                password: parts.parameter("sentinel_password"),
            },
        })
    }

    /// Asks the sentinels for the current master. Every new connection asks again, so that after a failover it leads to
    /// the new master.
    pub(crate) async fn master(&self, certificates: Option<&TlsCertificates>) -> RedisResult<Client> {
        self.client(certificates)?.async_get_client().await
    }

    fn client(&self, certificates: Option<&TlsCertificates>) -> RedisResult<SentinelClient> {
        let sentinels = self.sentinels.iter().cloned();
        let mut builder = SentinelClientBuilder::new(sentinels, &self.service, SentinelServerType::Master)?
            .set_client_to_redis_db(self.db)
            .set_client_to_redis_tcp_settings(tcp_settings());
        if self.is_tls {
            builder = builder.set_client_to_redis_tls_mode(TlsMode::Secure);
            builder = builder.set_client_to_sentinel_tls_mode(TlsMode::Secure);
        }
        if let Some(certificates) = certificates {
            builder = builder.set_client_to_redis_certificates(certificates.clone());
            builder = builder.set_client_to_sentinel_certificates(certificates.clone());
        }
        if let Some(user) = &self.redis_login.user {
            builder = builder.set_client_to_redis_username(user);
        }
        if let Some(password) = &self.redis_login.password {
            builder = builder.set_client_to_redis_password(password);
        }
        if let Some(user) = &self.sentinel_login.user {
            builder = builder.set_client_to_sentinel_username(user);
        }
        if let Some(password) = &self.sentinel_login.password {
            builder = builder.set_client_to_sentinel_password(password);
        }
        builder.build()
    }
}

impl Login {
    fn parse(login: &str) -> Self {
        let (user, password) = login.split_once(':').unwrap_or((login, ""));
        let given = |part: &str| (!part.is_empty()).then(|| decoded(part));
        Self { user: given(user), password: given(password) }
    }
}

fn sentinel_address(host: &str, is_tls: bool) -> Result<ConnectionAddr, AddressError> {
    let (name, port) = host.rsplit_once(':').unwrap_or((host, PORT_DEFAULT));
    let port =
        port.parse().map_err(|_| AddressError(format!("`{host}` is not a host:port of a sentinel")))?;
    let host = name.trim_matches(['[', ']']).to_owned();
    Ok(match is_tls {
        true => ConnectionAddr::TcpTls { host, port, insecure: false, tls_params: None },
        false => ConnectionAddr::Tcp(host, port),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Address, Location};

    #[test]
    fn a_sentinel_url_has_all_its_parts() {
        let address =
            Address::parse("redis+sentinel://ada:p%40ss@a:1,b/main/3?sentinel_username=s%25").unwrap();
        let Location::Sentinel(sentinel) = address.location() else { panic!("it is a sentinel") };
        let login = |user: Option<&str>, password: Option<&str>| Login {
            user: user.map(ToOwned::to_owned),
            password: password.map(ToOwned::to_owned),
        };
        assert!(sentinel.redis_login == login(Some("ada"), Some("p@ss")));
        assert!(sentinel.sentinel_login == login(Some("s%"), None));
        assert_eq!((sentinel.service.as_str(), sentinel.db), ("main", 3));
        assert_eq!(sentinel.sentinels[1], ConnectionAddr::Tcp("b".to_owned(), 26379));
    }
}
