"""Writes the licences of everything in the program to one file.

usage: scripts/licences.py FILE

Each text stands there once, with the crates that it belongs to. A crate whose package has no such file gets that of a crate from
the same repository under the same licence, or of any crate under it where the text names no authors, or else the standard text of
a licence that it declares, with its authors; one for which there is none of these ends the script."""
import pathlib, re, sys

from dependencies import ROOT, crates, toolchain

# Also below the top: vendored C sources and tables bring theirs.
NAME = re.compile(r"(licen[cs]e|copying|unlicense|notice|copyright)([-_.].*)?$", re.IGNORECASE)
NO_TEXT = {".rs", ".yml", ".yaml", ".toml", ".json", ".py", ".js", ".c", ".h", ".sh"}
ELSEWHERE = {".git", ".github", "target", "tests", "test", "test_data", "benches", "examples"}
RULE = "=" * 100
# The names of our own files, which are the standard texts.
STANDARD = {"Apache-2.0": "LICENSE-APACHE", "MIT": "LICENSE-MIT"}

# Licences whose text is the same for everybody.
WITHOUT_AUTHORS = {"Apache-2.0 WITH LLVM-exception"}


def texts(crate):
    """The files of a crate that say under which terms it may be used."""
    found = [crate.folder / crate.licence_file] if crate.licence_file else []
    for path in sorted(crate.folder.rglob("*")):
        below = path.relative_to(crate.folder).parts[:-1]
        if NAME.fullmatch(path.name) and path.suffix.lower() not in NO_TEXT and not ELSEWHERE & set(below) and path.is_file():
            found.append(path)
    return [path.read_text(errors="replace") for path in dict.fromkeys(found)]


def standard(licence, authors):
    """The standard text of one of the licences that an expression leaves the choice of, or None."""
    choices = {choice.strip(" ()") for choice in licence.split(" OR ")}
    for name, file in STANDARD.items():
        if name in choices:
            text = (ROOT / file).read_text()
            return re.sub(r"(?m)^Copyright \(c\).*$", f"Copyright (c) {authors}", text) if name == "MIT" else text
    return None


def collect(every):
    """Texts with the crates that each belongs to, and what is missing."""
    owners, missing = {}, []
    found = {crate.id: texts(crate) for crate in every}
    siblings = {(crate.repository, crate.licence): found[crate.id] for crate in every if crate.repository and found[crate.id]}
    same = {crate.licence: found[crate.id] for crate in every if crate.licence in WITHOUT_AUTHORS and len(found[crate.id]) == 1}
    for crate in every:
        own = found[crate.id] or siblings.get((crate.repository, crate.licence)) or same.get(crate.licence, [])
        if not own:
            text = standard(crate.licence, ", ".join(crate.authors) or f"the authors of {crate.name}")
            own = [text] if text else []
        if not own or not crate.licence and not crate.licence_file:
            missing.append(f"{crate} ({crate.licence or 'no licence declared'})")
        for text in own:
            # Line ends and spaces at them are no difference.
            plain = "\n".join(line.rstrip() for line in text.strip().splitlines())
            owners.setdefault(plain, []).append(str(crate))
    return owners, missing


def write(path):
    every = [crate for crate in crates() if not crate.is_ours]
    owners, missing = collect(every)
    if missing:
        raise SystemExit("licences: no text for " + "; ".join(missing))
    release = f"rust-std {toolchain()[0]}"
    owners.setdefault(standard("MIT", "The Rust Project Developers").strip(), []).append(release)
    index = [f"{crate} — {crate.licence or 'see its text'}" for crate in every] + [f"{release} — MIT OR Apache-2.0"]
    parts = [
        "What Quarterdeck is made of, and under which terms. SQLite and the time zone database are in the public domain.",
        "\n".join(index),
        *(f"{RULE}\n{', '.join(sorted(names))}\n{RULE}\n\n{text}" for text, names in sorted(owners.items(), key=lambda item: (-len(item[1]), item[0]))),
    ]
    pathlib.Path(path).write_text("\n\n".join(parts) + "\n")
    return len(every), len(owners)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    count, different = write(sys.argv[1])
    print(f"licences: {count} crates, {different} texts", file=sys.stderr)
