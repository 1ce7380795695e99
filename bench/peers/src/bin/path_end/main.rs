//! One end of a measurement across an emulated path: `bench/path.py` starts a server and a client of each protocol in the
//! two namespaces of one link.
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
//! | `tcp`, `quic`, `restp_stream` | the transports |
//! | `bulk`, `answer`, `voice` | the tasks |

mod answer;
mod arguments;
mod bulk;
mod channel;
mod quic;
mod restp_stream;
mod tcp;
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
        "tcp" => Server::Tcp(tcp::Server::bind(arguments)?),
        "quinn" => Server::Quic(quic::Server::bind(arguments)?),
        "restp" => Server::Restp(restp_stream::Server::bind(arguments)?),
        other => bail!("{other}: a transport is tcp, quinn or restp"),
    })
}

fn client(arguments: &Arguments) -> anyhow::Result<Client> {
    Ok(match arguments.transport.as_str() {
        "tcp" => Client::Tcp(tcp::Client::new(arguments)?),
        "quinn" => Client::Quic(quic::Client::new(arguments)?),
        "restp" => Client::Restp(restp_stream::Client::new(arguments)?),
        other => bail!("{other}: a transport is tcp, quinn or restp"),
    })
}
