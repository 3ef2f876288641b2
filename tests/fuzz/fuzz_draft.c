// SPDX-License-Identifier: Apache-2.0
// A group as a client asks for it. 'n': the name of one; else one to be created, in no other namespace than the
// client's, as JSON that can be read again.
#include "operator/api/draft.h"

#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/str.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void check_manifest(const struct draft *d, struct arena *a)
{
    struct err err = ERR_INIT;
    struct json *root;
    must(json_parse(d->manifest, strlen(d->manifest), NULL, a, &root, &err) == 0);
    const struct json *metadata = json_get(root, "metadata");
    const char *ns = json_str(json_get(metadata, "namespace"), a);
    must(!ns || str_eq(ns, "ml"));
    must(d->name && str_eq(json_str(json_get(metadata, "name"), a), d->name));
    must(d->kind == KIND_WORKERGROUP || d->kind == KIND_PLACEMENTGROUP);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a = ARENA_INIT;
    struct err err = ERR_INIT;
    struct draft d;
    enum kind kind;
    const char *name;
    char *text = strndup((const char *)data, size);
    if (text[0] == 'n')
        must(draft_read_name(text + 1, "group.delete", &a, &kind, &name, &err) < 0 ? err.msg[0] : name[0]);
    else if (draft_read(text, "ml", "alice", 1800000000000, &a, &d, &err) < 0)
        must((err.code == ERR_INVALID || err.code == ERR_FORBIDDEN || err.code == ERR_LIMIT) && err.msg[0]);
    else
        check_manifest(&d, &a);
    free(text);
    arena_done(&a);
    return 0;
}
