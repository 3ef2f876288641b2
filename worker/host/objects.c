// SPDX-License-Identifier: Apache-2.0
#include "worker/host/objects.h"

#include "common/base/arena.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/rand.h"
#include "common/base/str.h"
#include "common/wire/batch.h"
#include "common/wire/body_list.h"
#include "common/wire/ref.h"
#include "worker/host/object_server.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct objects *objects_new(const struct objects_config *config, struct err *why)
{
    struct objects *o = xcalloc(1, sizeof *o);
    struct rand rand;
    rand_seed_system(&rand);
    o->config = *config;
    o->store = object_store_new(config->store_bytes, rand_u64(&rand));
    if (config->group)
        o->server = object_server_new(&(struct object_server_config){config->loop, o->store, config->rendezvous,
                                                                     config->device, config->local, config->port},
                                      why);
    return o;
}

void objects_free(struct objects *o)
{
    if (!o)
        return;
    object_server_free(o->server);
    object_store_free(o->store);
    free(o);
}

int objects_port(const struct objects *o)
{
    return o->server ? object_server_port(o->server) : 0;
}

void objects_secret(struct objects *o, const char *secret)
{
    if (o->server)
        object_server_secret(o->server, secret);
}

bool objects_is_own(const struct objects *o, const char *uid, uint32_t attempt, uint32_t rank)
{
    return rank == o->config.rank && attempt == o->config.attempt && str_eq(uid, o->config.group);
}

enum ref_kind objects_kind(const struct kept_object *kept)
{
    const char *data = kept->blob->data + kept->offset;
    size_t len = kept->blob->len - kept->offset;
    return batch_is_safetensors(data, len) ? REF_BATCH : body_list_is(data, len) ? REF_BODIES : REF_JSON;
}

static int describe(const struct kept_object *o, char *out, size_t size)
{
    char id[REF_ID_SIZE];
    ref_id_write(o->id, id);
    return snprintf(out, size, "{\"id\":\"%s\",\"bytes\":%zu,\"kind\":\"%c\"}", id, o->len, objects_kind(o));
}

static int check_named(const struct objects *o, struct err *err)
{
    return o->config.group
               ? 0
               : err_set(err, ERR_INVALID, "this process belongs to no WorkerGroup, so it cannot keep objects");
}

int objects_keep(struct objects *o, const void *owner, bool pinned, struct buf *body, struct region *values,
                 struct err *err)
{
    const struct kept_object *kept;
    char text[96];
    int r = check_named(o, err);
    if (r < 0)
        return r;
    size_t len = body->len;
    char *data = buf_take(body);
    struct blob *blob = blob_adopt(data ? xrealloc(data, MAX(len, (size_t)1), 1) : xmalloc(1), len);
    r = object_store_put(o->store, &(struct kept_object){.blob = blob, .values = values, .pinned = pinned}, owner,
                         &kept, err);
    blob_unref(blob);
    if (r == 0)
        (void)buf_append(body, text, (size_t)describe(kept, text, sizeof text));
    return r;
}

// The methods

bool objects_method(const struct call_head *head)
{
    return head->method_len > 7 && memcmp(head->method, "object.", 7) == 0;
}

static int put(struct objects *o, const void *owner, bool pinned, struct blob *body, const struct record_call *call,
               struct objects_answer *ret, struct err *err)
{
    const struct kept_object *kept;
    int r = check_named(o, err);
    if (r == 0 && !blob_recharge(body, NULL)) // the store counts its bytes from now on
        r = ERR_INTERNAL;
    if (r == 0)
        r = object_store_put(
            o->store,
            &(struct kept_object){.blob = body, .offset = (size_t)(call->args - body->data), .pinned = pinned}, owner,
            &kept, err);
    if (r == 0)
        ret->len = (size_t)describe(kept, ret->text, sizeof ret->text);
    return r;
}

// Finds the part of a reference that is in this process. *ret is NULL if there is none.
static int find_part(const struct objects *o, const struct record_call *call, struct arena *a, struct ref_part **ret,
                     struct err *err)
{
    struct ref_found f;
    struct ref ref;
    *ret = NULL;
    if (!ref_is(call->args, call->args_len, &f))
        return err_set(err, ERR_INVALID, "the argument must be one reference: {\"$ref\": \"...\"}");
    int r = ref_parse(f.text, f.text_len, a, &ref, err);
    for (uint32_t i = 0; r == 0 && i < ref.n; i++)
        if (objects_is_own(o, ref.uid, ref.parts[i].attempt, ref.parts[i].rank))
            *ret = &ref.parts[i];
    return r;
}

static int of_part(struct objects *o, const struct call_head *head, const struct ref_part *part,
                   struct objects_answer *ret, struct err *err)
{
    const struct kept_object *kept = object_store_get(o->store, part->id);
    if (call_head_method_is(head, "object.free")) {
        ret->len = (size_t)snprintf(ret->text, sizeof ret->text, "%s",
                                    object_store_drop(o->store, part->id) ? "true" : "false");
        return 0;
    }
    if (!kept)
        return err_set(err, ERR_NOT_FOUND, "the object no longer exists: it was freed, or its session has ended");
    if (call_head_method_is(head, "object.pin")) {
        (void)object_store_pin(o->store, part->id);
        ret->len = (size_t)snprintf(ret->text, sizeof ret->text, "true");
        return 0;
    }
    *ret = (struct objects_answer){.blob = blob_ref(kept->blob),
                                   .offset = kept->offset,
                                   .len = kept->blob->len - kept->offset,
                                   .values = kept->values ? region_ref(kept->values) : NULL};
    return 0;
}

int objects_serve(struct objects *o, const void *owner, const struct call_head *head, struct blob *body,
                  const struct record_call *call, struct objects_answer *ret, struct err *err)
{
    _cleanup_(arena_done) struct arena a = ARENA_INIT;
    struct ref_part *part = NULL;
    *ret = (struct objects_answer){.blob = NULL};
    if (call_head_method_is(head, "object.put"))
        return put(o, owner, head->pin, body, call, ret, err);
    if (!call_head_method_is(head, "object.get") && !call_head_method_is(head, "object.pin") &&
        !call_head_method_is(head, "object.free"))
        return err_set(err, ERR_NOT_FOUND,
                       "%.*s does not exist; there are object.put, object.get, object.pin and object.free",
                       (int)head->method_len, head->method);
    int r = find_part(o, call, &a, &part, err);
    if (r == 0 && part)
        r = of_part(o, head, part, ret, err);
    return r;
}

void objects_release(struct objects *o, const char *json, size_t len)
{
    _cleanup_(arena_done) struct arena a = ARENA_INIT;
    const struct json *root = json_read(json, len, &a);
    const char *text = json_str(json_get(root, "id"), &a);
    uint64_t id;
    const struct kept_object *kept =
        text && ref_id_read(text, strlen(text), &id) ? object_store_get(o->store, id) : NULL;
    if (kept && (!kept->pinned || json_is_true(json_get(root, "pinned"))))
        (void)object_store_drop(o->store, id);
}
