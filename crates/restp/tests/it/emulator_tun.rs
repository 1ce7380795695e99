//! The emulator between two network namespaces: kernel TCP crosses the emulated link. Needs root, /dev/net/tun
//! and the `ip` tool; where these are missing the test says so and shows nothing.
#![cfg(target_os = "linux")]

use restp::clock::Clock;
use restp::emulator::{Attachment, Emulator, NetConfig};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::process::Command;
use std::time::Duration;

/// Two namespaces with unique names, gone when the test is over, however it ends.
struct Namespaces([String; 2]);

impl Namespaces {
    fn create() -> Result<Self, String> {
        File::options()
            .read(true)
            .write(true)
            .open("/dev/net/tun")
            .map_err(|error| format!("/dev/net/tun: {error}"))?;
        let names = ["left", "right"].map(|side| format!("restp-{}-{side}", std::process::id()));
        let namespaces = Namespaces(names);
        for name in &namespaces.0 {
            ip(&["netns", "add", name])?;
        }
        Ok(namespaces)
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for name in &self.0 {
            let _ = ip(&["netns", "delete", name]);
        }
    }
}

fn ip(arguments: &[&str]) -> Result<(), String> {
    let output = Command::new("ip")
        .args(arguments)
        .output()
        .map_err(|error| format!("ip: {error}"))?;
    if output.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).trim().into())
    }
}

/// Runs `work` on a thread inside a namespace. Sockets made there stay there.
fn inside<T: Send + 'static>(
    namespace: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> std::thread::JoinHandle<T> {
    let file = File::open(format!("/run/netns/{namespace}")).expect("just made");
    std::thread::spawn(move || {
        move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).expect("root");
        work()
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kernel_traffic_crosses_the_emulated_link() {
    let namespaces = match Namespaces::create() {
        Ok(namespaces) => namespaces,
        Err(reason) => {
            eprintln!(
                "SKIPPED: no TUN devices between namespaces here ({reason}); run as root to see this test"
            );
            return;
        }
    };
    let [left, right] = namespaces.0.clone();
    let text = format!(
        "[tun]\nnamespaces = [\"{left}\", \"{right}\"]\n[[path]]\nname = \"a\"\nrate = \"50 Mbit/s\"\n\
         delay = \"10 ms\"\naddresses = [\"10.81.0.1/24\", \"10.81.0.2/24\"]\nloss = {{ drop = [5] }}"
    );
    let network = NetConfig::parse(&text).expect("a network");
    let emulator = Emulator::from_config(&network, Attachment::Tun).expect("root and /dev/net/tun");
    let devices = emulator.ports()[0].devices.clone().expect("TUN devices");
    assert_eq!(devices[1], format!("{right}/ta 10.81.0.2"));
    let control = emulator.control();
    let running = tokio::spawn(emulator.run(std::future::pending()));

    let data: Vec<u8> = (0..2_000_000u32).map(|number| (number % 251) as u8).collect();
    let expected = data.clone();
    let (ready, listening) = std::sync::mpsc::channel();
    let server = inside(&right, move || {
        let echo = UdpSocket::bind("10.81.0.2:9000").expect("the device's address");
        let listener = TcpListener::bind("10.81.0.2:9000").expect("the device's address");
        ready.send(()).expect("the client waits");
        let mut buffer = [0; 100];
        for _ in 0..50 {
            let (len, from) = echo.recv_from(&mut buffer).expect("a datagram");
            echo.send_to(&buffer[..len], from).expect("a route");
        }
        let mut received = Vec::new();
        listener
            .accept()
            .expect("a client")
            .0
            .read_to_end(&mut received)
            .expect("a stream");
        received
    });
    let client = inside(&left, move || {
        listening.recv_timeout(Duration::from_secs(10)).expect("a server");
        let socket = UdpSocket::bind("10.81.0.1:0").expect("the device's address");
        socket
            .set_read_timeout(Some(Duration::from_secs(1)))
            .expect("a time");
        let clock = Clock::start();
        let mut round_trips = Vec::new();
        while round_trips.len() < 50 {
            let sent = clock.now();
            socket.send_to(&[1; 100], "10.81.0.2:9000").expect("a route");
            // The fifth packet is lost.
            if socket.recv(&mut [0; 100]).is_ok() {
                round_trips.push(clock.now().since(sent).as_nanos() as f64 / 1e6);
            }
        }
        round_trips.sort_by(f64::total_cmp);
        let mut stream = TcpStream::connect("10.81.0.2:9000").expect("a listener");
        stream.write_all(&data).expect("a stream");
        round_trips[25]
    });
    let (median, received) = tokio::task::spawn_blocking(move || (client.join(), server.join()))
        .await
        .expect("no panic");
    let (median, received) = (median.expect("client"), received.expect("server"));
    control.quit();
    let report = running.await.expect("no panic");
    eprintln!("median round trip {median:.3} ms of 20 ms\n{report}");
    assert!(received == expected, "{} bytes arrived", received.len());
    let forward = &report.paths[0].forward;
    assert_eq!(forward.dropped_error, 1, "{report}");
    assert!(
        forward.offered_bytes > 2_000_000 && forward.dropped_system == 0,
        "{report}"
    );
    // How much longer is up to the machine.
    assert!(
        median >= 20.0,
        "median round trip {median:.3} ms of 20 ms; {report}"
    );
}
