//! One end of a measurement across emulated paths: `bench/path.py` and `bench/multipath.py` start a server and a client of
//! each protocol in two namespaces.
//!
//! ```text
//! path_end TRANSPORT TASK server --listen IP:PORT --seconds S ...    prints {"listening": ..., "client_args": [...]}
//! path_end TRANSPORT TASK client --to IP:PORT --seconds S ...
//! ```
//!
//! | File | Holds |
//! |---|---|
//! | `arguments` | the command line |
//! | `channel` | what the transports have in common: two ends of a stream of bytes |
//! | `tcp`, `quic`, `multipath_quic`, `restp_stream` | the transports; TCP and Multipath TCP are one |
//! | `tls` | keys and settings of TLS for both kinds of QUIC |
//! | `bulk`, `answer`, `voice` | the tasks |

mod answer;
mod arguments;
mod bulk;
mod channel;
mod multipath_quic;
mod quic;
mod restp_stream;
mod tcp;
mod tls;
mod voice;

use anyhow::bail;
use arguments::{Arguments, Side};
use channel::{Client, Server};

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::read()?;
    match arguments.side {
        Side::Server => {
            let mut server = serve(&arguments).await?;
            match arguments.task.as_str() {
                "bulk" => bulk::receive(&mut server, arguments.seconds).await,
                "answer" => answer::serve(&mut server).await,
                "voice" => voice::receive(&mut server, arguments.seconds).await,
                other => bail!("{other}: a task is bulk, answer or voice"),
            }
        }
        Side::Client => {
            let client = client(&arguments)?;
            match arguments.task.as_str() {
                "bulk" => bulk::send(&client).await,
                "answer" => answer::ask(&client).await,
                "voice" => voice::send(&client, arguments.seconds).await,
                other => bail!("{other}: a task is bulk, answer or voice"),
            }
        }
    }
}

async fn serve(arguments: &Arguments) -> anyhow::Result<Server> {
    Ok(match arguments.transport.as_str() {
        "tcp" | "mptcp" => Server::Tcp(tcp::Server::bind(arguments)?),
        "quinn" => Server::Quic(quic::Server::bind(arguments)?),
        "noq" => Server::MultipathQuic(multipath_quic::Server::bind(arguments)?),
        "restp" => Server::Restp(restp_stream::Server::bind(arguments)?),
        other => bail!("{other}: a transport is tcp, mptcp, quinn, noq or restp"),
    })
}

fn client(arguments: &Arguments) -> anyhow::Result<Client> {
    Ok(match arguments.transport.as_str() {
        "tcp" | "mptcp" => Client::Tcp(tcp::Client::new(arguments)?),
        "quinn" => Client::Quic(quic::Client::new(arguments)?),
        "noq" => Client::MultipathQuic(multipath_quic::Client::new(arguments)?),
        "restp" => Client::Restp(restp_stream::Client::new(arguments)?),
        other => bail!("{other}: a transport is tcp, mptcp, quinn, noq or restp"),
    })
}
