"""The configurations and commands in the documents, and helpers that run them.

A ```toml block is complete if it has a [[listener]]. Any other block is a fragment: completed() adds a listener, an upstream,
a route, and the rules to which alerts refer. A block with [[key]] is a file of API keys, which the configurations on the same
page use."""

import collections
import os
import pathlib
import re
import subprocess

from harness import make_certificate

TREE = pathlib.Path(os.environ.get("WEIR_SOURCE", "."))
PAGES = [TREE / "README.md", TREE / "docker/README.md", *sorted((TREE / "docs").rglob("*.md"))]
SECRETS = {"WEIR_JWT_SECRET": "an example secret of more than 64 octets, as the longest hash of HS512 asks for",
           "WEIR_KEY_SECRET": "0123456789abcdef0123456789abcdef", "WEIR_ADMIN_TOKEN": "0123456789abcdef", "WEIR_ASK_TOKEN": "0123456789abcdef",
           "REDIS_PASSWORD": "p/a@s:s", "SENTINEL_PASSWORD": "s", "WEBHOOK_TOKEN": "t"}

Block = collections.namedtuple("Block", "page line language text")


def blocks(page, *languages):
    """Returns the fenced blocks of a page in these languages, each with its line number."""
    text = page.read_text()
    for found in re.finditer(r"^```(\w+)\n(.*?)^```$", text, re.M | re.S):
        if found[1] in languages:
            yield Block(page, text.count("\n", 0, found.start()) + 1, found[1], found[2])


def place(block):
    return f"{block.page.relative_to(TREE)}:{block.line}"


def is_keys_file(block):
    return re.search(r"^\[\[key\]\]", block.text, re.M) is not None


def is_whole(block):
    return re.search(r"^\[\[listener\]\]", block.text, re.M) is not None


def completed(text):
    """Returns the fragment and the tables to which it refers."""
    names = {table: set(re.findall(rf'^\[\[{table}\]\][^[]*?^name = "(.*?)"', text, re.M | re.S)) for table in ("rule", "upstream")}
    if not re.search(r"^\[\[listener\]\]", text, re.M):
        text += '\n[[listener]]\naddress = "127.0.0.1:0"\n'
    for rule in sorted(set(re.findall(r'^rule = "(.*?)"', text, re.M)) - names["rule"]):
        text += f'\n[[rule]]\nname = "{rule}"\nkey = ["ip"]\nlimit = "1/s"\n'
    if not re.search(r"^\[\[route\]\]", text, re.M):
        text += f'\n[[route]]\nupstream = "{min(names["upstream"], default="api")}"\n'
    for upstream in sorted(set(re.findall(r'^upstream = "(.*?)"', text, re.M)) - names["upstream"]):
        text += f'\n[[upstream]]\nname = "{upstream}"\nservers = ["127.0.0.1:9001"]\n'
    if re.search(r'^store = "redis"', text, re.M) and "[state" not in text:
        text += '\n[state]\nstore = "redis"\nredis = { url = "redis://127.0.0.1:6379" }\n'
    return text


def in_its_folder(text):
    """Returns the configuration with each file name changed to a file in the test's own folder."""
    return re.sub(r'"/(?:etc|var/log|var/lib)/weir/([^"]*)"', r'"\1"', text)


# A JWK set with the key of RFC 8037, appendix A.2.
KEY_SET = '{"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}'


def files_of(text, keys, folder):
    """Returns the contents of the files that a configuration names, by file name. A certificate is for localhost, or for the host
    in its file's name."""
    found = {}
    for name in re.findall(r'"([\w.-]+\.(?:crt|key|pem))"', text):
        stem = name.rpartition(".")[0]
        if f"{stem}.crt" not in found:
            found |= make_certificate(folder, stem, host=stem if "." in stem else "localhost", days=400)
        if name.endswith(".pem"):  # the public key that verifies tokens
            made = subprocess.run(["openssl", "genrsa", "2048"], check=True, capture_output=True).stdout
            found[name] = subprocess.run(["openssl", "rsa", "-pubout"], input=made, check=True, capture_output=True).stdout
    for name in re.findall(r'jwks = "([\w.-]+)"', text):
        found[name] = KEY_SET
    for name in re.findall(r'"([\w.-]+\.mmdb)"', text):
        found[name] = (TREE / "config/examples/countries.mmdb").read_bytes()
    if '"keys.toml"' in text:
        found["keys.toml"] = keys or (TREE / "config/examples/keys.toml").read_text()
    return found


def keys_of(page):
    return "".join(block.text for block in blocks(page, "toml") if is_keys_file(block))


def on_free_ports(text, server, redis=None):
    """Returns the configuration, changed so that listeners use free ports and `server` replaces all servers."""
    text = re.sub(r'(^\[\[listener\]\][^\n]*\naddress = )"[^"]*"', r'\1"127.0.0.1:0"', text, flags=re.M)
    text = re.sub(r'(^\[admin\][^\n]*\naddress = )"[^"]*"', r'\1"127.0.0.1:0"', text, flags=re.M)
    text = re.sub(r"^servers = (\[.*\]|\[\n(?:  .*\n)*\])$", f'servers = ["{server}"]', text, flags=re.M)
    if redis:  # adds Redis, with a timeout that is long enough for a slow machine
        text = re.sub(r'"(redis)://[^"/]*', rf'"\1://127.0.0.1:{redis.port}', text)
        text = text.replace("[state.redis]\n", '[state.redis]\ntimeout = "20s"\n')
    return text


def commands(block):
    """Returns the commands of a ```console block with the output shown for each, as [(command, output)]."""
    shown = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            shown.append((line[2:], []))
        elif shown:
            shown[-1][1].append(line)
    return shown
