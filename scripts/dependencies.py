"""What the program is made of: every crate that is compiled into it or that builds it, as Cargo resolves them for this machine."""
import functools, hashlib, json, pathlib, re, subprocess, tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = "quarterdeck"


class Crate:
    """One package of the graph, with what its manifest says."""

    def __init__(self, package, checksum):
        self.id, self.name, self.version = package["id"], package["name"], package["version"]
        self.folder = pathlib.Path(package["manifest_path"]).parent
        # The slash is how the field was written before it became an expression.
        self.licence = (package["license"] or "").replace("/", " OR ")
        self.licence_file = package["license_file"]
        self.authors, self.repository, self.description = package["authors"], package["repository"], package["description"]
        self.checksum, self.is_ours = checksum, package["source"] is None
        self.is_macro = any("proc-macro" in target["kind"] for target in package["targets"])
        self.needs, self.is_linked = [], False

    def __str__(self):
        return f"{self.name} {self.version}"


def output(*command):
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


@functools.cache
def toolchain():
    """The compiler's version and the machine that it compiles for."""
    lines = dict(line.split(": ", 1) for line in output("rustc", "-vV").splitlines() if ": " in line)
    return lines["release"], lines["host"]


def named(edges):
    """Name and version of everything below the program along these edges, with the features that it is built with."""
    lines = output("cargo", "tree", "--locked", "-p", PROGRAM, "-e", edges, "--target", toolchain()[1], "--prefix", "none", "--format", "{p}")
    return {tuple(re.match(r"(\S+) v(\S+)", line).groups()) for line in lines.splitlines()}


def crates():
    """Every crate of the program, itself first, then by name; `is_linked` tells those whose code is in it from those that build it."""
    metadata = json.loads(output("cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", toolchain()[1]))
    locked = tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    checksums = {(entry["name"], entry["version"]): entry.get("checksum") for entry in locked}
    wanted = named("normal,build")
    found = {}
    for package in metadata["packages"]:
        key = package["name"], package["version"]
        if key in wanted:
            found[package["id"]] = Crate(package, checksums.get(key))
    missing = wanted - {(crate.name, crate.version) for crate in found.values()}
    if missing:
        raise SystemExit(f"cargo tree names what cargo metadata does not: {sorted(missing)}")
    for node in metadata["resolve"]["nodes"]:
        if node["id"] in found:
            needed = [(found[edge["pkg"]], {kind["kind"] for kind in edge["dep_kinds"]}) for edge in node["deps"] if edge["pkg"] in found]
            found[node["id"]].needs = [(crate, kinds) for crate, kinds in needed if kinds - {"dev"}]
    program = next(crate for crate in found.values() if crate.name == PROGRAM)
    pending = [program]
    while pending:
        crate = pending.pop()
        if not crate.is_linked:
            crate.is_linked = True
            # A macro runs in the compiler, and so does all that it needs.
            pending += [needed for needed, kinds in crate.needs if None in kinds and not needed.is_macro]
    # Its C is compiled into the engine of JavaScript, by a build script.
    next(crate for crate in found.values() if crate.name == "rquickjs-sys").is_linked = True
    return sorted(found.values(), key=lambda crate: (crate is not program, crate.name, crate.version))


def sha256(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
