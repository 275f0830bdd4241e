#!/usr/bin/env python3
"""Rewrites the documents that contain the binary's own texts.

These are config/weir.schema.json, the keys in docs/configuration.md and packaging/man/weir.toml.5, and the commands in
packaging/man/weir.8. Marks in the documents show where the texts go. With --check, writes nothing, shows the differences and exits
with 1 if there are any. `./dev reference` builds weir and runs this."""

import argparse
import difflib
import json
import pathlib
import re
import subprocess
import sys

TREE = pathlib.Path(__file__).resolve().parent.parent
KINDS = ("duration", "size", "rate", "limit", "address")  # definitions that are texts, not tables
BEGIN, END = "made by ./dev reference: begin", "made by ./dev reference: end"


def referred(shape):
    """Returns the name of the definition that a shape refers to; None if the shape is no reference."""
    inner = shape.get("allOf", [shape])[0]
    return inner["$ref"].removeprefix("#/definitions/") if "$ref" in inner else None


class Table:
    """A table of keys. `places`: the names that the table may have in TOML; the first of them is the name in
    the documents."""

    def __init__(self, name, schema):
        self.name, self.places = name, []
        self.required = schema.get("required", [])
        self.keys = schema["properties"]

    def rows(self, describe):
        """Returns the key, type, default and purpose of each key."""
        for key, shape in self.keys.items():
            default = "required" if key in self.required else spelled(shape["default"]) if "default" in shape else ""
            yield key, describe(shape), default, shape.get("description", "")


def tables_of(schema):
    """Returns all tables in order, each with its places."""
    found = {"": Table("", schema)}
    found.update((name, Table(name, entry)) for name, entry in schema["definitions"].items() if "properties" in entry)

    def visit(shape, path, many):
        name = referred(shape)
        if name in found:
            found[name].places.append(f"[[{path}]]" if many else f"[{path}]")
        for alternative in shape.get("anyOf", []):
            visit(alternative, path, many)
        if "items" in shape:
            visit(shape["items"], path, True)
        if isinstance(shape.get("additionalProperties"), dict):
            visit(shape["additionalProperties"], path + ".NAME", many)

    for name, table in found.items():
        for key, shape in table.keys.items():
            visit(shape, f"{name}.{key}" if name else key, False)
    return [table for table in found.values() if table.name]


def spelled(value):
    """Returns the value in TOML syntax."""
    if isinstance(value, list):
        return "[" + ", ".join(map(spelled, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def type_of(shape, link):
    """Returns the type in words. `link` returns the text for the name of a definition."""
    name = referred(shape)
    if name:
        return link(name)
    if "enum" in shape:
        return " or ".join(filter(None, (", ".join(map(spelled, shape["enum"][:-1])), spelled(shape["enum"][-1]))))
    if "anyOf" in shape:
        return " or ".join(type_of(one, link) for one in shape["anyOf"] if referred(one) != "environment")
    kind = shape["type"]
    if kind in ("integer", "number"):
        return f"{'whole number' if kind == 'integer' else 'number'}, {shape['minimum']:_} to {shape['maximum']:_}"
    if kind == "array":
        inner = type_of(shape["items"], link)
        return f"list of {inner.replace('text', 'texts')}" if inner == "text" else f"list of: {inner}"
    if kind == "object":
        return f"table of names, each {type_of(shape['additionalProperties'], link)}"
    return {"boolean": "true or false", "string": "text"}[kind]


# Markdown.

def anchor(table):
    return re.sub(r"[^a-z0-9_-]", "", table.places[0].lower())


def markdown(schema):
    tables = tables_of(schema)
    anchors = {table.name: anchor(table) for table in tables}
    link = lambda name: name if name in KINDS else f"[table](#{anchors[name]})"  # noqa: E731
    lines = ["| kind | what it takes |", "|---|---|"]
    lines += [f"| {name} | {schema['definitions'][name]['description']} |" for name in KINDS]
    for table in tables:
        lines += ["", f"## `{table.places[0]}`", ""]
        if table.places[1:]:
            lines += ["Likewise " + ", ".join(f"`{place}`" for place in table.places[1:]) + ".", ""]
        lines += ["| key | type | default | what it is for |", "|---|---|---|---|"]
        for key, kind, default, about in table.rows(lambda shape: type_of(shape, link)):
            shown = default if default in ("", "required") else f"`{default}`"
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in (f"`{key}`", kind, shown, about)) + " |")
    return lines


# Manual pages.

def roff(text):
    return re.sub(r"^([.'])", r"\\&\1", text.replace("\\", "\\e").replace("-", "\\-"))


def manual_of_keys(schema):
    tables = tables_of(schema)
    homes = {table.name: table.places[0] for table in tables}
    lines = []
    for table in tables:
        lines.append(f'.SS "{roff(table.places[0])}"')
        if table.places[1:]:
            lines.append(roff("Likewise " + ", ".join(table.places[1:]) + "."))
        for key, kind, default, about in table.rows(lambda shape: type_of(shape, lambda name: homes.get(name, name))):
            lines += [".TP", f".BR {roff(key)} \" (" + roff(kind).replace('"', '""') + ')"']
            said = about + ("." if about else "")
            if default:
                said += " Required." if default == "required" else f" Default: {default}"
            lines.append(roff(said))
    return lines


def help_of(weir, *command):
    text = subprocess.run([weir, *command, "--help"], capture_output=True, text=True, check=True).stdout
    return re.findall(r"^ {2,8}(\S.*?)(?: {2,}(.*))?$((?:\n {10,}.*)*)", text, re.M), text


def entries(weir, *command):
    """Returns (option or command, description) for each entry of a help text."""
    found, _ = help_of(weir, *command)
    return [(typed, " ".join((about + " " + more).split())) for typed, about, more in found]


def commands_of(weir, *above):
    """Returns (words of the command, description) for each command, and for subcommands after their command."""
    _, text = help_of(weir, *above)
    below = text.partition("\nSubcommands:\n")[2]
    for name, about in entries(weir, *above):
        if re.search(rf"^  {re.escape(name)} ", below, re.M):
            yield (*above, name), about
            yield from commands_of(weir, *above, name)


class Argument:
    """An option or positional argument, from a help line such as `-c,--config FILE REQUIRED` or `logs LOG ... REQUIRED`."""

    def __init__(self, typed, about):
        self.required = typed.endswith(" REQUIRED")
        self.names, _, value = typed.removesuffix(" REQUIRED").partition(" ")
        self.value, _, check = value.partition(":")
        between = re.fullmatch(r"\w+ in \[(\S+) - (\S+)\]", check)
        self.about = about + (f", {between[1]} to {between[2]}" if between else "")
        self.is_option = self.names.startswith("-")
        self.may_be_bare = False  # true if the value may be given without the option's name

    def typed(self):
        """Returns the argument as a synopsis shows it."""
        words = values(self.value)
        if self.is_option:
            name = f"\\fB{roff(self.names.rpartition(',')[2])}\\fR"
            words = " ".join(filter(None, (f"[{name}]" if self.may_be_bare else name, words)))
        return words if self.required else f"[{words}]"

    def entry(self):
        """Returns the argument as a list of arguments shows it."""
        names = ", ".join(f"\\fB{roff(name)}\\fR" for name in self.names.split(",")) if self.is_option else ""
        return [".TP", " ".join(filter(None, (names, values(self.value)))), roff(self.about + ".")]


def values(text):
    """Returns the text with placeholders such as FILE in italics."""
    return re.sub(r"[A-Z]+", r"\\fI\g<0>\\fR", roff(text))


def arguments_of(weir, command):
    """Returns the arguments of a command, positional ones first."""
    _, text = help_of(weir, *command)
    below = text.partition("\nSubcommands:\n")[2]
    found = [Argument(*one) for one in entries(weir, *command)
             if "--help" not in one[0] and not re.search(rf"^  {re.escape(one[0])} ", below, re.M)]
    for bare in [one for one in found if one.names == one.value == "FILE"]:
        found.remove(bare)
        next(one for one in found if one.is_option and one.value == "FILE").may_be_bare = True
    return sorted(found, key=lambda one: one.is_option)


def synopsis_of_commands(weir):
    lines = []
    for command, _ in commands_of(weir):
        if "\nSubcommands:\n" in help_of(weir, *command)[1]:
            continue
        arguments = sorted(arguments_of(weir, command), key=lambda one: (not one.is_option, not one.required))
        lines += [" ".join([f"\\fBweir {roff(' '.join(command))}\\fR", *(one.typed() for one in arguments)]), ".br"]
    return lines


def manual_of_commands(weir):
    lines = []
    for command, about in commands_of(weir):
        arguments = arguments_of(weir, command)
        head = [f"\\fBweir {roff(' '.join(command))}\\fR", *(one.typed() for one in arguments if not one.is_option)]
        lines += [".TP", " ".join(head), roff(about[:1].upper() + about[1:] + ".")]
        if arguments:
            lines += [".RS", *(line for one in arguments for line in one.entry()), ".RE"]
    return lines


# Files.

def between(path, *parts):
    """Returns the text of a file with each part between its two marks, in the order of the marks."""
    lines, text, left = (TREE / path).read_text().split("\n"), [], iter(parts)
    marks = [(number, BEGIN in line) for number, line in enumerate(lines, 1) if BEGIN in line or END in line]
    if [begins for _, begins in marks] != [True, False] * len(parts):
        found = "; ".join(f"line {number}: {'begin' if begins else 'end'}" for number, begins in marks) or "none"
        sys.exit(f'{path}: expected {len(parts)} times "{BEGIN}" and "{END}" in turn; found {found}')
    kept = True
    for line in lines:
        kept = kept or END in line
        if kept:
            text.append(line)
        if BEGIN in line:
            text += next(left)
            kept = False
    return "\n".join(text)


def made(weir):
    """Returns the text that each file should have."""
    text = subprocess.run([weir, "schema"], capture_output=True, text=True, check=True).stdout
    schema = json.loads(text)
    return {"config/weir.schema.json": text,
            "docs/configuration.md": between("docs/configuration.md", ["", *markdown(schema), ""]),
            "packaging/man/weir.toml.5": between("packaging/man/weir.toml.5", manual_of_keys(schema)),
            "packaging/man/weir.8": between("packaging/man/weir.8", synopsis_of_commands(weir), manual_of_commands(weir))}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--weir", default=str(TREE / "build/weir"))
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    stale = 0
    for path, text in made(options.weir).items():
        file = TREE / path
        old = file.read_text() if file.exists() else ""
        if old == text:
            continue
        stale += 1
        if options.check:
            sys.stdout.writelines(list(difflib.unified_diff(old.splitlines(True), text.splitlines(True), path, f"{path}, as weir says"))[:60])
        else:
            file.write_text(text)
            print(f"renewed {path}")
    if options.check and stale:
        print("\nThe binary says otherwise. To renew these files: ./dev reference")
    return 1 if options.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
