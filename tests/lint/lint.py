#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The house rules that a compiler does not check (docs/style.md, docs/architecture.md: layers, confinement, banned functions, headers).

    lint.py               every file of the tree that git does not ignore
    lint.py --self-test   proves that each rule can fail, and that clean files pass
    lint.py --shellcheck  runs shellcheck on the shell scripts; exit 77 (skipped) where it is not installed

Prints `file:line: rule: what is wrong` for each finding and exits 1 if there is one.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# Folder -> folders whose headers it may include, besides its own. The static libraries of CMake link the same way.
BASE = {"common/base"}
API = BASE | {"operator/api"}
KUBE = API | {"operator/kube"}
RUNTIME = KUBE | {"operator/runtime"}
PLACEMENT = API | {"operator/placement"}
PUBLIC = {"sdk/c/include"}  # of its headers: numbers and names that others have, too
WIRE = BASE | {"common/wire"}
WS = WIRE | {"common/ws"}
TRANSFER = WIRE | {"common/transfer"}
AGENTS = WIRE | {"operator/agents"}
RECONCILE = PLACEMENT | AGENTS | {"operator/reconcile"}
PROXY = WIRE | {"operator/proxy"}
GATEWAY = WS | AGENTS | PROXY | {"operator/gateway"}
SDK = WS | PUBLIC | {"sdk/c"}
LAYERS = {
    "common/base": BASE,
    "common/wire": WIRE | PUBLIC,
    "common/ws": WS,
    "common/transfer": TRANSFER,
    "operator/api": API,
    "operator/kube": KUBE,
    "operator/runtime": RUNTIME,
    "operator/placement": PLACEMENT,
    "operator/reconcile": RECONCILE,
    "operator/agents": AGENTS,
    "operator/proxy": PROXY,  # pure; operator/gateway binds it to sockets
    "operator/gateway": GATEWAY,  # knows no Kubernetes: operator/identity and operator/wiring identify its peers
    "operator/identity": RUNTIME | {"operator/identity", "operator/gateway"},
    "operator/exec": RECONCILE | RUNTIME | PROXY | {"operator/exec"},
    "worker/agent": WS | {"worker/agent"},
    "worker/device": WIRE | {"worker/device"},
    "worker/collective": WIRE | PUBLIC | {"worker/collective", "worker/device"},
    "worker/transfer": TRANSFER | PUBLIC | {"worker/collective", "worker/device", "worker/transfer"},
    "worker/host": WS | TRANSFER | PUBLIC | {"worker/collective", "worker/device", "worker/host", "worker/transfer"},
    "sdk/c": SDK,
    "cli": SDK | {"cli"},
    "operator/wiring": BASE | {"operator/wiring", "operator/proxy"},  # the command line; the rest of it sees all, as main.c does
}
SEES_ALL = ("operator/main.c", "operator/wiring/agent_pod.", "operator/wiring/binding.", "operator/wiring/call_metrics.", "operator/wiring/meshes.", "operator/wiring/provision.", "operator/wiring/session_objects.", "operator/local/", "tests/", "bench/")
STANDS_ALONE = ("examples/", "sdk/c/include/")  # what a user copies or installs builds without our tree

# Header -> the only places that may include it.
CONFINED = {
    "cjson/cJSON.h": ("cli/", "operator/local/", "examples/", "tests/", "bench/"),  # off the hot path: docs/adr/0005
    "cJSON.h": ("cli/", "operator/local/", "examples/", "tests/", "bench/"),
    "curl/curl.h": ("operator/kube/http.c", "operator/kube/http_pool.", "cli/"),
    "libwebsockets.h": ("common/ws/ws_server",),
    "yaml.h": ("operator/api/yaml.c", "tests/"),
    "uv.h": ("common/base/loop.c", "common/base/loop_resolve.c"),
}

BANNED = {
    "strcpy": "arena_strdup or xstrdup",
    "strcat": "buf_puts",
    "sprintf": "snprintf or arena_printf",
    "vsprintf": "vsnprintf or arena_vprintf",
    "strtok": "strchr or strcspn",
    "atoi": "str_to_i64",
    "atol": "str_to_i64",
    "sscanf": "a parser that checks its input",
    "gets": "fgets",
    "alloca": "an arena",
    "system": "posix_spawn",
    "popen": "posix_spawn",
}

# Word -> where it is refused, what to say instead. Part of an identifier counts, too.
DOCS = ("CHANGELOG.md", "CONTRIBUTING.md", "README.md", "SECURITY.md", "bench/README.md", "charts/", "crds/", "docs/")
CALLS = ("operator/gateway/", "operator/proxy/", "operator/local/", "operator/identity/", "cli/", "sdk/", "worker/", "examples/")
RETIRED = (
    # On the wire the role is still "controller", and verl has a package of that name.
    (r'(?<!group_)(?<!single_)(?<!["a-z])controller(?!\w*\\?"|, agent)', CALLS, "client; a controller is a loop that reconciles"),
    (r"errand", ("",), "group change"),
    (r"(?<![a-z])(?:seat(?!-)|berth|crew|census|tenancy|keeper)", (*DOCS, "operator/", "worker/", "tests/unit/"), "the word of the glossary (docs/architecture.md)"),
    (r"(?i)(?<![a-z])deal_|struct deal\b|dealing out|(?<![a-z])deal(?:s|t)?[ _](?:[a-z]+[ _])?out(?![a-z])", ("",),
     "split, distribute, or dispatch plan"),
    (r"(?i)(?<![a-z])cut(?:s|ting)?[_ ](?:and[_ ]join|batch|columns|meta|pieces|rows|tensors)", ("",), "split"),
    (r"(?<![a-z])(?:desk|porch|lookout|turnstile|teller|mishap|reins)(?![a-z])", (*DOCS, "operator/", "common/", "worker/", "sdk/"),
     "what it is or does"),
    (r"(?<![a-z])(?:party|neighbor|standby)(?![a-z])", ("worker/transfer/",), "participant, local sender, back buffer"),
    (r"(?<![a-z])tee(?![a-z])", ("operator/local/",), "output"),
    # The protocol has kept it: a member of PLACE, and the text of a key.
    (r'meeting(?!/v1)(?!\\?")(?!`)', (*DOCS, "common/", "operator/", "worker/"), "rendezvous"),
    (r"lender|lending|borrower|(?<![a-z])(?:borrow|guest)(?![a-z])", (*DOCS, "worker/"), "object server, object fetch, peer"),
    (r"(?i)lobby", (*DOCS, "operator/", "sdk/"), "bootstrap group"),
    (r"(?i)sighting|sighter", (*DOCS, "common/", "operator/"), "report"),
    (r"(?i)reservation", ("",), "PlacementGroup, or bundles"),
    (r"(?i)(?<![a-z])(?:births?|crowd|glance|outlet|shun(?:s|ned)?|stretch(?:es)?|territory|tolls?|trials?|wards?)(?![a-z])",
     (*DOCS, "common/", "operator/", "worker/", "tests/unit/operator/", "tests/unit/worker/"), "the word of the glossary (docs/architecture.md)"),
    (r"(?i)(?<![a-z])stall(?:s|ed)?(?![a-z])",
     (*DOCS, "operator/proxy/", "common/wire/", "common/ws/", "worker/host/", "tests/unit/operator/proxy/"), "park, or pause"),
    (r"(?i)(?<![a-z])(?:archivist|blame[ds]?|greet(?:s|ed|ings?)?|hurr(?:y|ies)|last_words|lifelines?|seekers?|spare|story)(?![a-z])",
     (*DOCS, "cli/", "common/", "operator/", "sdk/c/", "worker/"), "what it is or does"),
    (r"(?i)(?<![a-z])(?:openings?|sites?)(?![a-z])", ("operator/placement/",), "node, or candidate"),
    (r"struct (?:kept|known|own|returned|said|told)\b", ("",), "a noun"),
)

# Parts of a call that only some files may use: pattern, files. All others call the functions of these files.
CALLERS = ("operator/proxy/", "tests/unit/operator/proxy/")
PRIVATE = (
    (r"\bstruct args\b|(?:->|\.)args\s*\.", ("operator/proxy/args.c", "operator/proxy/call.h")),
    (r"\bstruct (?:answer|rank_result)\b|(?:->|\.)(?:answer|result)\s*\.", ("operator/proxy/answer.c", "operator/proxy/call.h")),
    (r"(?:->|\.)sending\b", ("operator/proxy/call.c",)),
)

# Phrases that make a sentence hard to read, in documents, comments and messages. A comment may break inside of one.
GAP = r"(?:[ \t]|\n[ \t]*(?://|#|\*)?[ \t]*)+"
HARD = (
    (r"\b(?:of|by)" + GAP + r"which\b", "two sentences"),
    (r"\b(?:that|those)" + GAP + r"of\b", "the noun"),
    (r"\bwhoever\b", "who it is"),
    (r"\bsuch" + GAP + r"that\b", "so that, or two sentences"),
    (r"(?-i:\b(?:Nor|Never|Nowhere|Only" + GAP + r"then|So))" + GAP + r"(?:is|are|does|do|has|have|can)\b(?!" + GAP + "to)",
     "the subject first"),
    (r"(?-i:(?m:^[ \t]*//[ \t](?:What|Who|Whose|Of)[ \t](?!to do)))", "a noun or a verb first"),
)
# The beginning of a comment with # or of a docstring; not in Markdown, where # is a heading. A question may be one, too.
HARD_FIRST = (r"(?-i:(?m:^[ \t]*(?:#[ \t]|\"{3})(?:What|Who|Whose|Of)[ \t](?!to do)(?![^\n]*\?(?:\"{3})?$)))",
              "a noun or a verb first")

# In these folders the files that include each other form no circle, so that each can be read after those that it uses. A
# header and the source of the same name count as one.
NO_CIRCLES = ("cli/", "common/", "operator/", "sdk/c/", "worker/")

# A noun is a pair of files, and no two nouns have one name. A source without a header of its own implements one that
# many share: the commands of cli/verbs.h, and the public headers of sdk/c/include.
NOUNS = ("cli/", "common/", "operator/", "sdk/c/client/", "worker/")
HEADERLESS = re.compile(r"(?:.*/)?main\.c|cli/verb_\w+\.c|sdk/c/client/api\w*\.c|worker/host/(?:communicator|program|transfer)\.c")

MAX_COLUMNS = 120
C_SUFFIXES = (".c", ".h", ".cc", ".cu")
CODE_SUFFIXES = C_SUFFIXES + (".sh", ".py")
# It is in all of these.
PROSE = re.compile(r"\.(?:c|h|cc|cu|sh|py|md|ya?ml|svg|cmake|[1-9])$|(?:^|/)(?:Makefile|CMakeLists\.txt|Containerfile)$")
LICENSED_SUFFIXES = CODE_SUFFIXES + (".cmake", ".yaml", ".yml")
LICENSED_NAMES = ("CMakeLists.txt", "Makefile", "Containerfile")
UNFINISHED = re.compile(r"\b(" + "TO" + "DO|FIX" + "ME)\\b")
# Comments, strings and character constants: what looks like a call in there is none.
NOT_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.M)
CALL = re.compile(r"(?<![\w.>])(" + "|".join(BANNED) + r")[ \t]*\(")


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def blank(match):
    return re.sub(r"[^\n]", " ", match.group(0))


def layer_of(path):
    if path.startswith("sdk/c/include/"):
        return "sdk/c/include"
    parts = path.split("/")
    return "/".join(parts[:2]) if len(parts) > 2 else os.path.dirname(path)


def check_include_path(path, name, exists):
    if path.startswith(STANDS_ALONE):
        if "/" in name or not exists(os.path.join(os.path.dirname(path), name)):
            yield "layer", f'what users copy must build alone, without "{name}": it has the headers of its own folder only'
        return
    if not exists(name):
        yield "include", f'"{name}" is not a path from the root of the tree'
        return
    if path.startswith(SEES_ALL):
        return
    layer = layer_of(path)
    if layer not in LAYERS:
        yield "layer", f"folder {layer} is not in the table of tests/lint/lint.py: say there what it may include"
    elif layer_of(name) not in LAYERS[layer]:
        yield "layer", f'{layer} must not include "{name}"'


def check_includes(path, text, exists):
    for m in INCLUDE.finditer(text):
        name, line = m.group(2), line_of(text, m.start(1))
        if m.group(1) == '"':
            for rule, what in check_include_path(path, name, exists):
                yield line, rule, what
        places = CONFINED.get(name)
        if places and not path.startswith(places):
            yield line, "confined", f"{name} belongs into {' and '.join(places)} only"


def check_guard(path, text):
    """Public headers have guards, for compilers of users; all others #pragma once."""
    stem = re.sub(r"\W", "_", os.path.basename(path)).upper()
    m = re.search(r"^#ifndef (\w+)\n#define (\w+)$", text, re.M)
    if "/include/cadre/" not in path:
        if not re.search(r"^#pragma once$", text, re.M) or m:
            yield 1, "guard", "no #pragma once"
    elif not m or m.group(1) != m.group(2) or not text.rstrip().endswith("#endif"):
        yield 1, "guard", "no include guard"
    elif not (m.group(1).startswith("CADRE_") and m.group(1).endswith("_" + stem)):
        yield line_of(text, m.start()), "guard", f"include guard {m.group(1)} is not CADRE_..._{stem}"


def is_prose(path):
    return PROSE.search(path) and path != "tests/lint/lint.py"


def check_words(path, text):
    for pattern, places, instead in RETIRED if is_prose(path) else ():
        if path.startswith(places):
            for m in re.finditer(pattern, text):
                yield line_of(text, m.start()), "word", f"{m.group(0)}: say {instead}"


def check_phrases(path, text):
    if is_prose(path):
        for pattern, instead in HARD if path.endswith(".md") else (*HARD, HARD_FIRST):
            for m in re.finditer(pattern, text, re.I):
                yield line_of(text, m.start()), "phrase", f"{' '.join(m.group(0).split())}: say {instead} (docs/style.md)"


def check_private(path, code):
    if path.startswith(CALLERS):
        for pattern, files in PRIVATE:
            for m in re.finditer(pattern, code) if path not in files else ():
                yield line_of(code, m.start()), "private", f"{m.group(0)}: only {' and '.join(files)} may use it"


def check_c(path, text, exists):
    yield from check_includes(path, text, exists)
    code = NOT_CODE.sub(blank, text)
    yield from check_private(path, code)
    for m in CALL.finditer(code):
        yield line_of(code, m.start()), "banned", f"{m.group(1)}: use {BANNED[m.group(1)]}"
    for i, line in enumerate(text.split("\n"), 1):
        if "\t" in line:
            yield i, "blank", "tab"
        if line != line.rstrip():
            yield i, "blank", "trailing blanks"
        if len(line) > MAX_COLUMNS:
            yield i, "columns", f"{len(line)} columns, at most {MAX_COLUMNS}"
    if path.endswith(".h"):
        yield from check_guard(path, text)


def circles(texts):
    """Names of the files of one folder that include each other in a circle. `texts`: path without suffix -> its texts."""
    uses = {a: {b for name in INCLUDE.findall(text) if (b := os.path.splitext(name[1])[0]) in texts and b != a}
            for a, text in texts.items()}
    while free := [a for a in uses if not uses[a]]:  # a file that uses no other is in no circle
        for a in free:
            del uses[a]
        uses = {a: bs - set(free) for a, bs in uses.items()}
    return sorted(uses)


def check_circles(sources):
    """Findings (path, rule, what) for each folder of NO_CIRCLES. `sources`: path -> text."""
    for folder in NO_CIRCLES:
        texts = {}
        for path, text in sources.items():
            if path.startswith(folder) and path.endswith((".c", ".h")):
                name = os.path.splitext(path)[0]
                texts[name] = texts.get(name, "") + text
        if found := circles(texts):
            yield folder, "circle", f"these include each other, or a file that does: {', '.join(map(os.path.basename, found))}"


def check_nouns(sources):
    """Findings (path, rule, what) for sources without a header, and for headers that have the same name."""
    seen = {}
    for path in sorted(p for p in sources if p.startswith(NOUNS)):
        name, suffix = os.path.splitext(path)
        if suffix == ".c" and name + ".h" not in sources and not HEADERLESS.fullmatch(path):
            yield path, "noun", f"{os.path.basename(name)}.h is missing: a source has a header of its own, or is part of another noun"
        if suffix == ".h" and (other := seen.setdefault(os.path.basename(path), path)) != path:
            yield path, "noun", f"{other} has the same name: one noun, one name"


def is_licensed(path, text):
    return path.endswith(LICENSED_SUFFIXES) or os.path.basename(path) in LICENSED_NAMES or text.startswith("#!")


def check(path, text, exists):
    """Yields (line, rule, what) for each finding in one file; `exists` tells whether a path of the tree is a file."""
    if is_licensed(path, text) and "SPDX-License-Identifier: Apache-2.0" not in "\n".join(text.split("\n")[:3]):
        yield 1, "spdx", "no SPDX-License-Identifier: Apache-2.0 in the first lines"
    for m in UNFINISHED.finditer(text):
        yield line_of(text, m.start()), "unfinished", f"{m.group(1)}: do it, or open an issue"
    yield from check_phrases(path, text)
    yield from check_words(path, text)
    if path.endswith(C_SUFFIXES):
        yield from check_c(path, text, exists)


def tree():
    """Every file that git tracks or would track; without git (a tarball) every file."""
    git = subprocess.run(["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                         capture_output=True, check=False)
    if git.returncode == 0:
        found = git.stdout.decode().split("\0")
    else:
        found = [os.path.relpath(os.path.join(d, f), ROOT) for d, _, files in os.walk(ROOT) for f in files
                 if not os.path.relpath(d, ROOT).startswith(("build", ".git"))]
    return sorted(p for p in set(found) if os.path.isfile(os.path.join(ROOT, p)))


def read_text(path):
    with open(os.path.join(ROOT, path), "rb") as f:
        data = f.read()
    return None if b"\0" in data[:4096] else data.decode("utf-8", "replace")


def lint_tree():
    findings = 0
    sources = {}
    for path in tree():
        text = read_text(path)
        if text is None or path == "LICENSE" or path.startswith("tests/fuzz/corpus/"):
            continue
        for line, rule, what in check(path, text, lambda name: os.path.isfile(os.path.join(ROOT, name))):
            print(f"{path}:{line}: {rule}: {what}")
            findings += 1
        sources[path] = text
    for path, rule, what in check_circles(sources):
        print(f"{path}:0: {rule}: {what}")
        findings += 1
    for path, rule, what in check_nouns(sources):
        print(f"{path}:0: {rule}: {what}")
        findings += 1
    return 1 if findings else 0


def shellcheck():
    tool = shutil.which("shellcheck")
    if not tool:
        print("SKIPPED: shellcheck is not installed")
        return 77
    texts = ((p, read_text(p)) for p in tree())
    scripts = [p for p, t in texts if t and (p.endswith(".sh") or re.match(r"#!.*\b(ba|da)?sh\b", t))]
    return subprocess.run([tool, "-x", "-S", "warning", *scripts], cwd=ROOT, check=False).returncode if scripts else 0


C_HEAD = "// SPDX-License-Identifier: Apache-2.0\n"
SELF_TEST = [  # (path, text, the rules that must be found, in order)
    ("operator/kube/a.c", C_HEAD + '#include "operator/api/object.h"\n#include <string.h>\n', []),
    ("operator/exec/a.c", C_HEAD + '#include "operator/runtime/store.h"\n', []),
    ("operator/main.c", C_HEAD + '#include "operator/exec/executor.h"\n', []),
    ("tests/unit/test_a.c", C_HEAD + '#include "operator/kube/http.h"\n', []),
    ("operator/api/a.c", C_HEAD + '#include "operator/kube/kube_request.h"\n', ["layer"]),
    ("operator/placement/a.c", C_HEAD + '#include "operator/kube/kube_client.h"\n', ["layer"]),
    ("operator/reconcile/a.c", C_HEAD + '#include "operator/runtime/store.h"\n', ["layer"]),
    ("operator/runtime/a.c", C_HEAD + '  #  include "operator/exec/executor.h"\n', ["layer"]),
    ("common/base/a.c", C_HEAD + '#include "operator/api/object.h"\n', ["layer"]),
    ("operator/wiring/operator_options.c", C_HEAD + '#include "operator/wiring/operator_options.h"\n#include "operator/api/object.h"\n', ["layer"]),
    ("sdk/python/cadre/a.py", "# SPDX-License-Identifier: Apache-2.0\nerrand = 1\n", ["word"]),
    ("operator/gateway/a.c", C_HEAD + "int controller_open(void); // of a controller\n", ["word", "word"]),
    ("operator/gateway/a.c", C_HEAD + 'const char a[] = "{\\"role\\":\\"controller\\"}", b[] = "controller";\n', []),
    ("operator/runtime/a.c", C_HEAD + "int controller_open(void);\n", []),
    ("operator/proxy/a.c", C_HEAD + "struct errand *e;\nint x = group_seats();\n", ["word", "word"]),
    ("operator/proxy/a.c", C_HEAD + "int proxy_seat_of; // SEAT-free\n", ["word"]),
    ("worker/agent/a.c", C_HEAD + "struct keeper *k;\n", ["word"]),
    ("tests/unit/operator/gateway/test_a.c", C_HEAD + "struct peer keeper;\n", ["word"]),
    ("operator/proxy/a.c", C_HEAD + "// Dealing out. It deals them out, and is dealt_out.\n", ["word"] * 3),
    ("common/loop.c", C_HEAD + "// It was dealt with; a line that is cut and kept.\n", []),
    ("bench/a.c", C_HEAD + "int reservations; // of a Reservation\n", ["word", "word"]),
    ("tests/fuzz/a.c", C_HEAD + "int cut_and_join(void); // cuts rows\n", ["word", "word"]),
    ("tests/unit/operator/proxy/test_a.c", C_HEAD + "#define STALL_TEST(fn) installs(fn)\n", ["word"]),
    ("operator/proxy/a.c", C_HEAD + "size_t n = c->args.want + c->answer.parked + rank->result.len;\n", ["private"] * 3),
    ("operator/proxy/a.c", C_HEAD + "struct args *a; // of c->args.want\nstruct answer *b; struct rank_result *r;\n", ["private"] * 3),
    ("operator/proxy/result.c", C_HEAD + "bool b = c->ranks[0].sending.whole, d = rank->sending.whole;\n", ["private"] * 2),
    ("operator/proxy/args.c", C_HEAD + "c->args.want = c->answer.parked;\n", ["private"]),
    ("operator/proxy/answer.c", C_HEAD + "rank->result.len = c->answer.parked;\n", []),
    ("operator/proxy/split.c", C_HEAD + "size_t n = p->parts->args - p->parts->args_len, answer = p.args;\n", []),
    ("operator/gateway/a.c", C_HEAD + "struct answer { int args; } result = {.args = 1};\n", []),
    ("operator/novel/a.c", C_HEAD + '#include "common/base/err.h"\n', ["layer"]),
    ("examples/x/a.c", C_HEAD + '#include "common/base/err.h"\n', ["layer"]),
    ("examples/x/a.c", C_HEAD + '#include "missing.h"\n', ["layer"]),
    ("examples/x/a.c", C_HEAD + '#include "b.h"\n', []),
    ("common/wire/a.c", C_HEAD + '#include "sdk/c/include/cadre/b.h"\n', []),
    ("common/wire/a.c", C_HEAD + '#include "sdk/c/client/b.h"\n', ["layer"]),
    ("operator/kube/a.c", C_HEAD + '#include "missing.h"\n', ["include"]),
    ("tests/unit/test_a.c", C_HEAD + "#include <cjson/cJSON.h>\n", []),
    ("cli/a.c", C_HEAD + "#include <cjson/cJSON.h>\n", []),
    ("examples/x/a.c", C_HEAD + "#include <cjson/cJSON.h>\n", []),
    ("operator/local/a.c", C_HEAD + "#include <cjson/cJSON.h>\n", []),
    ("operator/proxy/a.c", C_HEAD + "#include <cjson/cJSON.h>\n", ["confined"]),
    ("common/base/json.c", C_HEAD + "#include <cjson/cJSON.h>\n", ["confined"]),
    ("common/wire/a.c", C_HEAD + "#include <cJSON.h>\n", ["confined"]),
    ("operator/kube/kube_client.c", C_HEAD + "#include <curl/curl.h>\n", ["confined"]),
    ("operator/kube/http.c", C_HEAD + "#include <curl/curl.h>\n", []),
    ("common/ws/ws_client.c", C_HEAD + "#include <libwebsockets.h>\n", ["confined"]),
    ("operator/kube/http.c", C_HEAD + "#include <yaml.h>\n", ["confined"]),
    ("operator/runtime/health.c", C_HEAD + "#include <uv.h>\n", ["confined"]),
    *[("operator/api/a.c", C_HEAD + f"void f(void)\n{{\n    {name}(x);\n}}\n", ["banned"]) for name in BANNED],
    ("operator/api/a.c", C_HEAD + 'snprintf(b, n, "strcpy(x)"); // gets(x)\n/* system\n (x) popen(y) */ p->system(x);\n', []),
    ("operator/api/a.c", C_HEAD + "char c = '\"'; strcpy(a, b); c = '\"';\n", ["banned"]),
    ("operator/api/a.c", "int x;\n", ["spdx"]),
    ("deploy/a.sh", "#!/bin/sh\necho\n", ["spdx"]),
    ("deploy/tool", "#!/bin/sh\n# SPDX-License-Identifier: Apache-2.0\n", []),
    ("deploy/a.yaml", "kind: Pod\n", ["spdx"]),
    ("bench/CMakeLists.txt", "project(x)\n", ["spdx"]),
    ("docs/a.md", "no header needed\n", []),
    ("docs/a.md", "A reservation.\nIts seats. A stall; a third party, a web site, a controller.\n", ["word"] * 3),
    ("docs/images/a.svg", "<text>errands</text>\n", ["word"]),
    ("docs/man/a.1", "an errand\n", ["word"]),
    ("examples/a.yaml", "# SPDX-License-Identifier: Apache-2.0\n# An errand\n", ["word"]),
    ("docs/a.json", "an errand\n", []),
    ("docs/a.md", "TO" + "DO later\n", ["unfinished"]),
    ("docs/a.md", "A call, the ranks of\nwhich end. The name is that of a pod.\n", ["phrase", "phrase"]),
    ("docs/a.md", "Those of a pod, and those\nof a group, but not those that are of no use.\n", ["phrase", "phrase"]),
    ("docs/a.md", "Nor does it. It is done only then. So is that. Whoever reads, by which. So as to.\n", ["phrase"] * 4),
    ("operator/api/a.c", C_HEAD + "// It is such\n// that nobody sees it.\n", ["phrase"]),
    ("operator/api/a.c", C_HEAD + "// What it reads.\nint x; // Of a pod\n// What to do then.\n", ["phrase"]),
    ("bench/a.py", "# SPDX-License-Identifier: Apache-2.0\n" + '"""Of a pod."""\n    # Who reads.\nx = 1  # What\n', ["phrase"] * 2),
    ("docs/a.md", "# What a call costs\n", []),
    ("bench/a.sh", "# SPDX-License-Identifier: Apache-2.0\n# What is missing?\n# What it reads.\n", ["phrase"]),
    ("common/wire/a.c", C_HEAD + "struct spare *s = archive_seeker_of(hurries);\nstruct told *t;\n", ["word"] * 4),
    ("operator/placement/a.c", C_HEAD + "struct site *s = SITE_GPU; // history of websites\n", ["word"] * 2),
    ("operator/api/a.json", "such that of which\n", []),
    ("operator/api/a.c", C_HEAD + "// FIX" + "ME\n", ["unfinished"]),
    ("operator/api/a.c", C_HEAD + "\tint x;\n", ["blank"]),
    ("operator/api/a.c", C_HEAD + "int x; \n", ["blank"]),
    ("operator/api/a.c", C_HEAD + "//" + "x" * MAX_COLUMNS + "\n", ["columns"]),
    ("operator/api/a.c", C_HEAD + "//" + "é" * (MAX_COLUMNS - 2) + "\n", []),
    ("operator/api/a.h", C_HEAD + "#pragma once\n", []),
    ("operator/api/a.h", C_HEAD + "#ifndef CADRE_API_A_H\n#define CADRE_API_A_H\n#endif\n", ["guard"]),
    ("sdk/c/include/cadre/a.h", C_HEAD + "#ifndef CADRE_A_H\n#define CADRE_A_H\n#endif\n", []),
    ("sdk/c/include/cadre/a.h", C_HEAD + "#ifndef CADRE_B_H\n#define CADRE_B_H\n#endif\n", ["guard"]),
    ("sdk/c/include/cadre/a.h", C_HEAD + "#ifndef CADRE_A_H\n#define CADRE_A\n#endif\n", ["guard"]),
    ("operator/api/a.h", C_HEAD + "int x;\n", ["guard"]),
]

SELF_TEST_CIRCLES = [  # ({path: text}, the files that must be found)
    ({"operator/proxy/a.c": '#include "operator/proxy/a.h"\n#include "operator/proxy/b.h"\n',
      "operator/proxy/b.c": '#include "operator/proxy/b.h"\n', "operator/proxy/b.h": ""}, []),
    ({"operator/proxy/a.c": '#include "operator/proxy/b.h"\n', "operator/proxy/b.h": '#include "operator/proxy/c.h"\n',
      "operator/proxy/c.c": '#include "operator/proxy/a.h"\n', "operator/proxy/d.c": ""}, ["a, b, c"]),
    ({"bench/a.c": '#include "bench/b.h"\n', "bench/b.c": '#include "bench/a.h"\n'}, []),
]


SELF_TEST_NOUNS = [  # (paths, those that must be found)
    (["operator/api/a.c", "operator/api/a.h", "operator/main.c", "cli/verb_a.c", "tests/unit/a.h", "sdk/c/client/api_a.c"], []),
    (["operator/api/a.c", "operator/api/b.h"], ["operator/api/a.c"]),
    (["operator/api/a.h", "worker/host/a.h"], ["worker/host/a.h"]),
]


def self_test():
    failed = 0
    for path, text, want in SELF_TEST:
        got = [rule for _, rule, _ in check(path, text, lambda name: "/" in name and "missing" not in name)]
        if got != want:
            print(f"self-test: {path}: {text[len(C_HEAD):][:60]!r}: found {got}, expected {want}")
            failed += 1
    for sources, want in SELF_TEST_CIRCLES:
        got = [what.split(": ")[1] for _, _, what in check_circles(sources)]
        if got != want:
            print(f"self-test: circles of {sources}: found {got}, expected {want}")
            failed += 1
    for paths, want in SELF_TEST_NOUNS:
        got = [path for path, _, _ in check_nouns(dict.fromkeys(paths, ""))]
        if got != want:
            print(f"self-test: nouns of {paths}: found {got}, expected {want}")
            failed += 1
    cases = len(SELF_TEST) + len(SELF_TEST_CIRCLES) + len(SELF_TEST_NOUNS)
    print(f"self-test: {cases - failed} of {cases} passed")
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(description="Checks the house rules of this tree.")
    parser.add_argument("--self-test", action="store_true", help="prove that each rule can fail")
    parser.add_argument("--shellcheck", action="store_true", help="run shellcheck on the shell scripts")
    args = parser.parse_args()
    return self_test() if args.self_test else shellcheck() if args.shellcheck else lint_tree()


if __name__ == "__main__":
    sys.exit(main())
