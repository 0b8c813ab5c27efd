"""The Debian package: the tarball's files where Debian has them, a user, a unit, and two files that operators edit."""
import gzip, hashlib, os, re, shutil, subprocess

from dependencies import ROOT

# The package of each library that the program may need; any other one is a mistake.
LIBRARIES = {"libc.so.6": "libc6", "libm.so.6": "libc6", "ld-linux-x86-64.so.2": "libc6", "ld-linux-aarch64.so.1": "libc6", "libgcc_s.so.1": "libgcc-s1"}
# Who is responsible for the package that is handed out says so, as with Debian's own tools.
NAME, ADDRESS = os.environ.get("DEBFULLNAME", "Quarterdeck packagers"), os.environ.get("DEBEMAIL", "packagers@quarterdeck.invalid")
DESCRIPTION = """tool runtime for text and voice agents
 Quarterdeck runs the tools of an assistant that people write to and speak to,
 and decides in code what the model may do: eleven gates stand between a call
 and its handler, and what changes something waits for the user's approval.
 .
 The package has the server with its web page, a sample of tools and records,
 and a systemd unit. The service is not enabled by the installation."""
COPYRIGHT = """Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: Quarterdeck

Files: *
Copyright: {holders}
License: Expat or Apache-2.0

License: Expat
{expat}

License: Apache-2.0
 The text is in /usr/share/common-licenses/Apache-2.0.

Comment: The program contains libraries of others; their licences are in
 /usr/share/doc/quarterdeck/{notices}.gz, and a list of them in
 /usr/share/doc/quarterdeck/sbom.cdx.json.gz.
"""


def dependencies(program):
    """What the dynamic linker will ask for, with the oldest C library that has every symbol."""
    def read(flag):
        return subprocess.run(["readelf", "--wide", flag, program], check=True, capture_output=True, text=True).stdout

    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", read("--dynamic"))
    unknown = [name for name in needed if name not in LIBRARIES]
    if unknown:
        raise SystemExit(f"package: the program needs libraries that a bare Debian may not have: {', '.join(unknown)}")
    symbols = re.findall(r"\bGLIBC_(\d+(?:\.\d+)+)", read("--version-info"))
    newest = max(symbols, key=lambda version: [int(part) for part in version.split(".")])
    packages = {LIBRARIES[name] for name in needed} - {"libc6"}
    return ", ".join([f"libc6 (>= {newest})", *sorted(packages), "passwd"])


def copyright_text(notices):
    licence = (ROOT / "LICENSE-MIT").read_text()
    holders = re.search(r"(?m)^Copyright \(c\) (.*)$", licence).group(1)
    body = licence.split("\n\n", 2)[2].strip()
    return COPYRIGHT.format(holders=holders, notices=notices, expat="\n".join(f" {line}" if line.strip() else " ." for line in body.splitlines()))


def compress(source, target):
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(gzip.compress(source.read_bytes(), 9, mtime=0))


def place(source, root, shells, notices):
    """Files of the tarball to where Debian's policy wants them."""
    def copy(path, target):
        (root / target).parent.mkdir(parents=True, exist_ok=True)
        copied = shutil.copytree if path.is_dir() else shutil.copyfile
        copied(path, root / target)

    for part in ("tools", "kb", "prompts"):
        copy(source / part, f"usr/share/quarterdeck/{part}")
    copy(source / "quarterdeck", "usr/bin/quarterdeck")
    for unit in (source / "systemd").iterdir():
        copy(unit, f"usr/lib/systemd/system/{unit.name}")
    for path in shells.values():
        copy(source / "completions" / path.rsplit("/", 1)[1], path)
    for page in (source / "man").iterdir():
        compress(page, root / "usr/share/man/man1" / f"{page.name}.gz")
    documents = root / "usr/share/doc/quarterdeck"
    documents.mkdir(parents=True)
    for page in [source / "README.md", source / "quarterdeck.example.toml", *(source / "docs").glob("*.md")]:
        shutil.copyfile(page, documents / page.name)
    compress(source / "CHANGELOG.md", documents / "changelog.gz")
    compress(source / notices, documents / f"{notices}.gz")
    compress(source / "sbom.cdx.json", documents / "sbom.cdx.json.gz")
    (documents / "copyright").write_text(copyright_text(notices))
    for name in ("quarterdeck.toml", "environment"):
        copy(ROOT / "deploy" / "debian" / name, f"etc/quarterdeck/{name}")


def control(root, program, version, architecture):
    """The package's own files: what it is, what it holds, what is edited, and what is done when it comes and goes."""
    own = root / "DEBIAN"
    files = sorted(path for path in root.rglob("*") if path.is_file())
    own.mkdir()
    # In KiB, each file rounded up and each folder counted as one, as Debian's tools do.
    size = sum((path.stat().st_size + 1023) // 1024 if path.is_file() else 1 for path in root.rglob("*"))
    fields = {
        "Package": "quarterdeck", "Version": version, "Architecture": architecture, "Maintainer": f"{NAME} <{ADDRESS}>",
        "Installed-Size": size, "Depends": dependencies(program), "Section": "net", "Priority": "optional", "Description": DESCRIPTION,
    }
    (own / "control").write_text("".join(f"{name}: {value}\n" for name, value in fields.items()))
    etc = root / "etc"
    (own / "conffiles").write_text("".join(f"/{path.relative_to(root)}\n" for path in files if path.is_relative_to(etc)))
    sums = "".join(f"{hashlib.md5(path.read_bytes()).hexdigest()}  {path.relative_to(root)}\n" for path in files if not path.is_relative_to(etc))
    (own / "md5sums").write_text(sums)
    for name in ("postinst", "prerm", "postrm"):
        shutil.copyfile(ROOT / "deploy" / "debian" / name, own / name)


def modes(root, when):
    programs = [root / "usr/bin/quarterdeck", *(root / "DEBIAN" / name for name in ("postinst", "prerm", "postrm"))]
    for path in [root, *root.rglob("*")]:
        path.chmod(0o755 if path.is_dir() or path in programs else 0o644)
    # It is for secrets.
    (root / "etc/quarterdeck/environment").chmod(0o600)
    for path in [*root.rglob("*"), root]:
        os.utime(path, (when, when))


def pack(source, program, out, version, when, level, shells, notices):
    """Packs the tarball's folder as a Debian package into `out`."""
    root = out / "debian"
    root.mkdir()
    place(source, root, shells, notices)
    architecture = subprocess.run(["dpkg", "--print-architecture"], check=True, capture_output=True, text=True).stdout.strip()
    control(root, program, version, architecture)
    modes(root, when)
    package = out / f"quarterdeck_{version}_{architecture}.deb"
    # xz is what every dpkg reads.
    command = ["dpkg-deb", "--root-owner-group", "-Zxz", f"-z{level}", "--build", root, package]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=os.environ | {"SOURCE_DATE_EPOCH": str(when)})
    shutil.rmtree(root)
    return package
