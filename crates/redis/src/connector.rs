//! Makes connections to an address.

use std::time::Duration;

use redis::aio::{MultiplexedConnection, PubSub};
use redis::cluster::ClusterClient;
use redis::{AsyncConnectionConfig, Client, ConnectionInfo, ErrorKind, RedisError, RedisFuture, RedisResult};

use crate::address::{Address, Location, tcp_settings};
use crate::connection::Connection;
use crate::tls;

/// Time limits of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// The limit for connecting and logging in.
    pub connect: Duration,
    /// The limit for the answer to a call.
    pub answer: Duration,
}

/// Makes connections to one address.
#[derive(Clone, Debug)]
pub struct Connector {
    address: Address,
    timeouts: Timeouts,
    enters_clusters: bool,
}

impl Connector {
    pub fn new(address: Address, timeouts: Timeouts) -> Self {
        tls::install_provider();
        Self { address, timeouts, enters_clusters: true }
    }

    /// A connector that takes the address of one node of a cluster for that node alone. The caller can recognize such a
    /// node by `redis_mode` in its `INFO`.
    pub fn for_single_servers(self) -> Self {
        Self { enters_clusters: false, ..self }
    }

    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Connects. The address of one node leads into its cluster, except after [`Self::for_single_servers`].
    ///
    /// Boxed, like every call on a connection: callers' futures stay small.
    pub fn connect(&self) -> RedisFuture<'_, Connection> {
        Box::pin(async move {
            match self.address.location() {
                Location::Cluster(nodes) => self.cluster(nodes.clone()).await,
                Location::Sentinel(_) => Ok(Connection::Server(self.server().await?)),
                Location::Server(info) => {
                    let mut connection = self.server().await?;
                    match self.enters_clusters && is_cluster(&mut connection).await? {
                        true => self.cluster(vec![info.clone()]).await,
                        false => Ok(Connection::Server(connection)),
                    }
                }
            }
        })
    }

    /// Opens a connection for subscriptions. Refused for a cluster.
    pub fn subscribe(&self) -> RedisFuture<'_, PubSub> {
        let connecting = async { self.client().await?.get_async_pubsub().await };
        Box::pin(async move {
            match tokio::time::timeout(self.timeouts.connect, connecting).await {
                Ok(connected) => connected,
                Err(_) => Err(std::io::Error::from(std::io::ErrorKind::TimedOut).into()),
            }
        })
    }

    async fn server(&self) -> RedisResult<MultiplexedConnection> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.timeouts.connect))
            .set_response_timeout(Some(self.timeouts.answer));
        self.client().await?.get_multiplexed_async_connection_with_config(&config).await
    }

    /// A client of the server that the address names, or of the master that its sentinels name.
    async fn client(&self) -> RedisResult<Client> {
        match self.address.location() {
            Location::Server(info) => match self.address.certificates().cloned() {
                Some(certificates) => Client::build_with_tls(info.clone(), certificates),
                None => Client::open(info.clone()),
            },
            Location::Sentinel(sentinel) => sentinel.master(self.address.certificates()).await,
            Location::Cluster(_) => Err(RedisError::from((
                ErrorKind::InvalidClientConfig,
                "a cluster is not one server",
                self.address.to_string(),
            ))),
        }
    }

    async fn cluster(&self, nodes: Vec<ConnectionInfo>) -> RedisResult<Connection> {
        let mut builder = ClusterClient::builder(nodes)
            .connection_timeout(self.timeouts.connect)
            .response_timeout(self.timeouts.answer)
            .overall_response_timeout(Some(self.timeouts.answer))
            .tcp_settings(tcp_settings());
        if let Some(certificates) = self.address.certificates() {
            builder = builder.certs(certificates.clone());
        }
        Ok(Connection::Cluster(builder.build()?.get_async_connection().await?))
    }
}

/// Whether the server is a node of a cluster. False if the user may not call `INFO`: a node of a cluster then answers
/// later calls with `MOVED`.
async fn is_cluster(connection: &mut MultiplexedConnection) -> RedisResult<bool> {
    let answer: RedisResult<String> = redis::cmd("INFO").arg("cluster").query_async(connection).await;
    match answer {
        Ok(info) => Ok(info.contains("cluster_enabled:1")),
        Err(error) if error.is_io_error() || error.is_timeout() || error.is_connection_dropped() => {
            Err(error)
        }
        Err(_) => Ok(false),
    }
}
