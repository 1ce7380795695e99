//! TUN devices: IP packets that this host sends, and those it is to receive. No segmentation offload, so the kernel cuts large
//! sends before the device: one read is one packet.

use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU16, Ordering};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tun_rs::{DeviceBuilder, SyncDevice};

/// A device that is to be made.
#[derive(Clone, Debug)]
pub struct TunConfig {
    /// Its name; none: the system chooses one.
    pub name: Option<String>,
    /// The largest packet.
    pub mtu: u16,
    /// Its address here, and how long the prefix of its network is.
    pub address: (IpAddr, u8),
    /// Packets that wait in it; none: what the system gives.
    pub queue_packets: Option<u32>,
}

impl TunConfig {
    /// Makes the device, up and not blocking. It vanishes with what is returned, and so do its routes.
    ///
    /// # Errors
    /// When the system refuses, for want of rights most often.
    pub(crate) fn create(&self) -> io::Result<SyncDevice> {
        let (address, prefix) = self.address;
        let mut builder = DeviceBuilder::new().mtu(self.mtu).enable(true);
        if let Some(name) = &self.name {
            builder = builder.name(name);
        }
        if let Some(packets) = self.queue_packets {
            builder = builder.tx_queue_len(packets);
        }
        let builder = match address {
            IpAddr::V4(address) => builder.ipv4(address, prefix, None),
            IpAddr::V6(address) => builder.ipv6(address, prefix),
        };
        let device = builder.build_sync()?;
        device.set_nonblocking(true)?;
        Ok(device)
    }
}

/// A device in a runtime.
pub struct Tun {
    device: AsyncFd<SyncDevice>,
    name: String,
    mtu: AtomicU16,
}

impl Tun {
    /// Makes one.
    ///
    /// # Errors
    /// When the system refuses, or outside of a runtime with I/O.
    pub fn open(config: &TunConfig) -> io::Result<Self> {
        let device = config.create()?;
        let name = device.name()?;
        #[expect(
            deprecated,
            reason = "its successor is unsafe: the descriptor must stay the same, as that of a device does"
        )]
        let device = AsyncFd::new(device)?;
        Ok(Tun {
            name,
            mtu: AtomicU16::new(config.mtu),
            device,
        })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The largest packet.
    pub fn mtu(&self) -> u16 {
        self.mtu.load(Ordering::Relaxed)
    }

    /// Changes the largest packet.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn set_mtu(&self, mtu: u16) -> io::Result<()> {
        self.device.get_ref().set_mtu(mtu)?;
        self.mtu.store(mtu, Ordering::Relaxed);
        Ok(())
    }

    /// Waits for the next packet that leaves this host, and its length.
    ///
    /// # Errors
    /// When the device is gone.
    pub async fn recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            // A device that is gone is an error and nothing to read.
            let mut ready = self.device.ready(Interest::READABLE | Interest::ERROR).await?;
            if let Ok(received) = ready.try_io(|device| device.get_ref().recv(buffer)) {
                return received;
            }
        }
    }

    /// Hands a packet to this host.
    ///
    /// # Errors
    /// When this host does not take it: the device is down or gone, or this is no packet.
    pub async fn send(&self, packet: &[u8]) -> io::Result<()> {
        loop {
            let mut ready = self.device.writable().await?;
            if let Ok(sent) = ready.try_io(|device| device.get_ref().send(packet)) {
                return sent.map(|_| ());
            }
        }
    }
}
