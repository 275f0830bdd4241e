#!/usr/bin/env python3
"""Finds English that readers have to read twice: english.py [PATH...], all tracked files without a PATH.

Looks at Markdown and at the comments of C++, Lua, Python and shell. Reports three faults, each with its file and line. A sentence
has more than 30 words, or begins without its noun ("Who is idle ...", "Of a key ..."). A line of Markdown goes beyond column 100.
Code, tables, headings, links and quoted configuration are not sentences. Exits with 1 if there is a fault."""

import ast
import pathlib
import re
import subprocess
import sys

MOST_WORDS = 30
MOST_COLUMNS = 100
COMMENTS = {".cpp": r"//+<?", ".hpp": r"//+<?", ".lua": "--+", ".py": "#+", ".sh": "#+", "": "#+"}
# Openings without a noun. Questions are allowed.
HEADLESS = re.compile(r"(Who|Whose|Whom|Whoever|Whosoever|What|Whatever|Where nobody|Such a|One that|Those who|That which) [a-z]|Of [a-z]")
SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[`]*[A-Z0-9`/_<-])")
NO_END = re.compile(r"\b(e\.g|i\.e|cf|vs|No|etc|approx|Fig|Sec|bzw)\.$")
WORD = re.compile(r"[A-Za-z0-9][\w'’./:=-]*")


def blocks_of_comments(text, mark):
    """Yields (line, text) for each run of comment lines. A comment after code on the same line is a separate
    run."""
    line_comment = re.compile(rf"^\s*(?:{mark})(?!!)\s?(.*)$")
    trailing = re.compile(rf"\s(?:{mark})\s(.*)$")
    run, start = [], 0
    for number, line in enumerate(text.splitlines(), 1):
        found = line_comment.match(line)
        if found and found.group(1).strip() and not re.match(r"[*-] ", found.group(1)):
            if not run:
                start = number
            run.append(found.group(1))
            continue
        if run:
            yield start, "\n".join(run)
            run = []
        if found:
            if found.group(1).strip():
                run, start = [found.group(1)[2:]], number
        else:
            tail = trailing.search(line)
            if tail and not re.search(r"[\"'][^\"']*$", line[: tail.start()]):
                yield number, tail.group(1)
    if run:
        yield start, "\n".join(run)


def blocks_of_docstrings(text):
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, kinds) and ast.get_docstring(node):
            line = node.body[0].lineno
            for paragraph in re.split(r"\n[ \t]*\n", ast.get_docstring(node, clean=False)):
                yield line, paragraph
                line += paragraph.count("\n") + 2


def lines_of_prose(text):
    """Yields (line number, line) of Markdown. Lines of code, tables, HTML and headings are replaced by ""."""
    fenced = False
    for number, line in enumerate(text.splitlines() + [""], 1):
        fence = re.match(r"\s*(```|~~~)", line)
        if fence:
            fenced = not fenced
        yield number, "" if fence or fenced or re.match(r"\s*(\||#|>|<)| {4,}\S", line) else line


def blocks_of_markdown(text):
    """Yields (line, text) of each paragraph and list item."""
    run, start = [], 0
    for number, line in lines_of_prose(text):
        item = re.match(r"\s*([*+-]|\d+\.)\s+(.*)", line)
        if (item or not line.strip()) and run:
            yield start, "\n".join(run)
            run = []
        if not line.strip():
            continue
        if not run:
            start = number
        run.append(item.group(2) if item else line.strip())


def sentences(block):
    """Yields (lines into the block, sentence)."""
    text = re.sub(r"`[^`]*`", lambda found: "`code`" + "\n" * found.group().count("\n"), block)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    begin = 0
    pieces = []
    for found in SENTENCE_END.finditer(text):
        if NO_END.search(text[begin : found.start()]):
            continue
        pieces.append((begin, text[begin : found.start()]))
        begin = found.end()
    pieces.append((begin, text[begin:]))
    for at, piece in pieces:
        yield text.count("\n", 0, at), " ".join(piece.split())


def faults_of_block(block):
    for below, sentence in sentences(block):
        words = len(WORD.findall(sentence))
        if words > MOST_WORDS:
            yield below, f"{words} words in a sentence: {sentence[:70]} ..."
        if HEADLESS.match(sentence.lstrip("\"'(*_")) and not sentence.rstrip("\"')*_").endswith("?") and words > 3:
            yield below, f"no noun at the beginning: {sentence[:70]} ..."


def faults_of_file(path):
    text = path.read_text(errors="replace")
    if path.suffix == ".md":
        blocks = list(blocks_of_markdown(text))
        for number, line in lines_of_prose(text):
            if len(line) > MOST_COLUMNS and not re.search(r"\]\(|://|^`", line):
                yield number, f"{len(line)} columns"
    elif path.suffix in COMMENTS and (path.suffix or text.startswith("#!")):
        blocks = list(blocks_of_comments(text, COMMENTS[path.suffix]))
        if path.suffix == ".py":
            blocks += blocks_of_docstrings(text)
    else:
        return
    for start, block in blocks:
        for below, fault in faults_of_block(block):
            yield start + below, fault


def chosen(arguments):
    names = subprocess.run(["git", "ls-files", "-z", "--", *arguments], capture_output=True, text=True, check=True).stdout
    return [pathlib.Path(name) for name in names.split("\0") if name]


def main():
    count = 0
    for path in chosen(sys.argv[1:]):
        if not path.is_file():
            continue
        for line, fault in sorted(faults_of_file(path)):
            print(f"{path}:{line}: {fault}")
            count += 1
    return 1 if count else 0


sys.exit(main())
