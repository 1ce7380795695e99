"""A server of ssh in the right namespace of an emulated network, and how to reach it; all keys are its own."""

import os
import shutil
import subprocess
import time
from pathlib import Path

import network

PORT = 2222


def version() -> str:
    return subprocess.run(["ssh", "-V"], capture_output=True, text=True, check=False).stderr.strip()


class Server:
    """Listens from now on. `folder` holds what belongs to it."""

    def __init__(self, net: network.Network, folder: Path):
        for name in ("host", "user"):
            keygen = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
            subprocess.run(keygen, check=True)
        os.makedirs("/run/sshd", exist_ok=True)
        configuration = folder / "sshd_config"
        configuration.write_text(
            f"Port {PORT}\nListenAddress {network.address(1)}\nHostKey {folder / 'host'}\nStrictModes no\n"
            f"AuthorizedKeysFile {folder / 'user'}.pub\nPidFile none\nUsePAM no\nPasswordAuthentication no\nSubsystem sftp internal-sftp\n"
        )
        net.inside(1, [shutil.which("sshd"), "-D", "-f", str(configuration)])
        time.sleep(1)
        self.inside = ["ip", "netns", "exec", net.namespaces[0]]
        self.options = ["-p", str(PORT), "-i", str(folder / "user"), "-o", "StrictHostKeyChecking=no"]
        self.options += ["-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR"]
        self.user = f"root@{network.address(1)}"

    def command(self, *options: str) -> list[str]:
        """ssh with what it needs, before user and command."""
        return ["ssh", *self.options, *options]
