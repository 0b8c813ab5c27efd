"""A bare Debian in a folder: what debootstrap calls its minimum, of the release and from the mirror of this machine."""
import contextlib, os, pathlib, re, shutil, subprocess, tempfile

from cluster import ROOT, say

FOLDER = ROOT / "target" / "debian-root"
# One that dpkg asks for nothing, in English.
ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8", "HOME": "/root"}


class Missing(Exception):
    """Why there can be no such root on this machine."""


class NotPermitted(Missing):
    """This user may not make one, and no package would change that."""


def mirror():
    """Address, release and component that apt itself installs from; written down nowhere."""
    release = pathlib.Path("/etc/os-release").read_text()
    code_name = re.search(r"(?m)^VERSION_CODENAME=(\w+)", release)
    if not code_name or not re.search(r"(?m)^ID=debian$", release):
        raise Missing("this is not Debian")
    listing = ["apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT)", "Identifier: Packages"]
    for line in subprocess.run(listing, capture_output=True, text=True).stdout.splitlines():
        address, name, component = line.split()
        if (name, component) == (code_name.group(1), "main"):
            return address, name
    raise Missing("apt has no source for this release; run apt-get update")


def debootstrap():
    """debootstrap's folder: the system's, or unpacked from its package, which installs nothing."""
    if shutil.which("debootstrap"):
        return pathlib.Path("/usr/share/debootstrap"), shutil.which("debootstrap")
    unpacked = FOLDER / "debootstrap"
    program = unpacked / "usr" / "sbin" / "debootstrap"
    if not program.exists():
        shutil.rmtree(unpacked, ignore_errors=True)
        unpacked.mkdir(parents=True)
        fetch = "apt-get download -qq debootstrap || { apt-get update -qq && apt-get download -qq debootstrap; }"
        done = subprocess.run(["sh", "-ec", f"{{ {fetch}; }} && dpkg -x debootstrap_*.deb . && rm debootstrap_*.deb"], cwd=unpacked, capture_output=True, text=True)
        if done.returncode:
            raise Missing(f"debootstrap cannot be had: {done.stderr.strip()[-300:]}")
    return unpacked / "usr" / "share" / "debootstrap", program


def base():
    """The root as debootstrap makes it, as a tarball that is made once."""
    if os.getuid() != 0:
        raise NotPermitted("only root can make one")
    if subprocess.run(["unshare", "--mount", "--propagation", "private", "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True).returncode:
        raise NotPermitted("this machine does not let root mount")
    address, release = mirror()
    packed = FOLDER / f"{release}.tar"
    if packed.exists():
        return packed
    scripts, program = debootstrap()
    say(f"debian-root: installing a bare Debian {release} (once)")
    with tempfile.TemporaryDirectory(prefix="quarterdeck-root-") as folder:
        command = [program, "--variant=minbase", release, f"{folder}/root", address]
        done = subprocess.run(command, env=os.environ | {"DEBOOTSTRAP_DIR": str(scripts)}, capture_output=True, text=True)
        if done.returncode:
            raise Missing(f"debootstrap failed: {(done.stdout + done.stderr).strip()[-600:]}")
        shutil.rmtree(f"{folder}/root/var/cache/apt/archives", ignore_errors=True)
        partial = packed.with_suffix(".partial")
        subprocess.run(["tar", "--numeric-owner", "--exclude=./dev/*", "-C", f"{folder}/root", "-cf", partial, "."], check=True)
        partial.rename(packed)
    return packed


class Root:
    """One such Debian, unpacked."""

    def __init__(self, folder):
        self.folder = folder

    def path(self, name):
        return self.folder / name.lstrip("/")

    def run(self, *command, check=True):
        """A command as root inside, with the devices that programs take for granted."""
        done = subprocess.run([*self.enter(), *command], env=ENVIRONMENT, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if check and done.returncode:
            raise SystemExit(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def enter(self, setup=""):
        """The beginning of a command that runs inside, in mounts of its own which end with it."""
        script = f'mount --bind "$1" "$1"; for device in null zero random urandom; do : >>"$1/dev/$device"; mount --bind "/dev/$device" "$1/dev/$device"; done; mount -t proc proc "$1/proc"; {setup} root=$1; shift; exec chroot "$root" "$@"'
        return ["unshare", "--mount", "--propagation", "private", "sh", "-ec", script, "sh", str(self.folder)]

    def enter_read_only(self, writable, user):
        """The same as an ordinary user who can write below `writable` and /tmp alone."""
        mounts = f'mount --bind "$1{writable}" "$1{writable}"; mount -t tmpfs tmpfs "$1/tmp"; mount -o remount,bind,ro "$1";'
        return [*self.enter(mounts), "setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"]


@contextlib.contextmanager
def fresh_root():
    packed = base()
    with tempfile.TemporaryDirectory(prefix="quarterdeck-root-") as folder:
        os.chmod(folder, 0o755)
        root = pathlib.Path(folder) / "root"
        root.mkdir()
        subprocess.run(["tar", "--numeric-owner", "-C", root, "-xf", packed], check=True)
        yield Root(root)
