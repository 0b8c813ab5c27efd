"""The peers that we are measured against. Their programs are not part of the repository: they are looked for in
../shared/bench, or where QUARTERDECK_PEERS points, and are copied and built below target/."""
import os, pathlib, shutil, socket, subprocess, sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PEERS = pathlib.Path(os.environ.get("QUARTERDECK_PEERS", ROOT.parent / "shared" / "bench"))
BUILT = ROOT / "target" / "dist"


def install(programs=()):
    """A writable copy of the peers with their npm packages and these Rust programs built, or None."""
    if not (PEERS / "node" / "package.json").exists() or not shutil.which("node"):
        return None
    copy = ROOT / "target" / "peers"
    if not copy.exists():
        shutil.copytree(PEERS, copy, copy_function=shutil.copyfile)
    if not (copy / "node" / "node_modules").exists():
        print("installing the peers' packages", file=sys.stderr)
        subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund"], cwd=copy / "node", check=True)
    manifest = copy / "rust" / "Cargo.toml"
    if "[workspace]" not in manifest.read_text():
        # It lies below our own workspace and is no part of it.
        manifest.write_text(manifest.read_text() + "\n[workspace]\n")
    if programs:
        named = [part for program in programs for part in ("--bin", program)]
        subprocess.run(["cargo", "build", "--release", "-q", *named], cwd=copy / "rust", check=True)
    return copy


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def memory_mb(pid):
    """What a process holds in memory."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmRSS"))
