// SPDX-License-Identifier: Apache-2.0
// The functions of cadre/transfer.h. This file reads what the call of a client says, and lets the ranks meet as
// communicators do. worker/transfer does the rest.
//
//   {"step": "begin", "id": "00c0ffee00c0ffee"}                    -> {"version": "", of the current weights;
//                                                                      "contacts": ""}
//   {"step": "move", "id": ..., "sends": true, "source": "actor", "sources": 4, "target": "rollout", "targets": 2,
//    "names": ["up"], "contacts": "00c0ffee00c0ffed",
//    "limitMs": 60000}                                             -> {"bytes": 1024, "direct": 1024, "nccl": 0,
//                                                                      "copied": 0, "problems": []}
//
// Without "names", all weights move. "contacts" names the transfer whose connections this rank still has; in a move,
// the transfer whose connections all ranks have and should use. It may be missing. The first step makes sure that both
// groups have time before one of them waits for the other. It also makes sure that a transfer does not wait for ranks
// that have begun another one.
#include "sdk/c/include/cadre/transfer.h"

#include "common/base/clock.h"
#include "common/base/json_writer.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "common/wire/mesh.h"
#include "common/wire/ref.h"
#include "worker/host/host_call.h"
#include "worker/host/progress.h"
#include "worker/host/rank_device.h"
#include "worker/host/rendezvous.h"
#include "worker/transfer/reshard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIMIT_MS = 600 * 1000, MEMBERS_MAX = 4096, VERSION_SIZE = REF_ID_SIZE, REFUSAL_SIZE = 512 };

struct cadre_weights {
    struct back_buffer *back_buffer; // NULL = nothing has come yet
    struct idle_connections idle;
    struct nccl_link nccl;
    char refusal[REFUSAL_SIZE]; // why NCCL was not used, as this rank has said last; "" = it has said nothing
    struct progress_part progress;
    uint64_t begun; // 0 = none
    bool arrived;
    char version[VERSION_SIZE];
};

struct transfer_step {
    struct cadre_call *call;
    struct cadre_weights *weights;
    const cadre_weight_list *list;
    struct arena arena;
    struct json *args;
    const char *id_text;
    uint64_t id, known_by;
    bool sends;
    const char *groups[2];
    int64_t worlds[2], limit_ms;
    const char **names; // of the members
};

CADRE_EXPORT cadre_weights *cadre_weights_new(void)
{
    return xcalloc(1, sizeof(struct cadre_weights));
}

CADRE_EXPORT void cadre_weights_free(cadre_weights *w)
{
    if (!w)
        return;
    back_buffer_free(w->back_buffer);
    idle_connections_drop(&w->idle);
    nccl_link_drop(&w->nccl, NULL);
    free(w);
}

CADRE_EXPORT int cadre_weights_arrived(const cadre_weights *w)
{
    return w->arrived;
}

CADRE_EXPORT const char *cadre_weights_version(const cadre_weights *w)
{
    return w->version;
}

// The arguments of the call

static int read_args(struct transfer_step *s, struct err *err)
{
    size_t len;
    const char *text = cadre_args(s->call, &len);
    int r = json_parse(text, len, NULL, &s->arena, &s->args, err);
    s->id_text = r < 0 ? NULL : json_str(json_get(s->args, "id"), &s->arena);
    if (r == 0 && (!s->id_text || !ref_id_read(s->id_text, strlen(s->id_text), &s->id)))
        r = err_set(err, ERR_INVALID, "only cadre_client_transfer() and cadre.transfer() call this method");
    return r;
}

static int read_move(struct transfer_step *s, struct err *err)
{
    const char *contacts = json_str(json_get(s->args, "contacts"), &s->arena);
    s->sends = json_is_true(json_get(s->args, "sends"));
    s->groups[0] = json_str(json_get(s->args, "source"), &s->arena);
    s->groups[1] = json_str(json_get(s->args, "target"), &s->arena);
    if (!json_i64(json_get(s->args, "limitMs"), &s->limit_ms) || s->limit_ms < 1)
        s->limit_ms = LIMIT_MS;
    if ((contacts && !ref_id_read(contacts, strlen(contacts), &s->known_by)) || !s->groups[0] || !s->groups[1] ||
        !json_i64(json_get(s->args, "sources"), &s->worlds[0]) ||
        !json_i64(json_get(s->args, "targets"), &s->worlds[1]))
        return err_set(err, ERR_INVALID, "only cadre_client_transfer() and cadre.transfer() call this method");
    for (int i = 0; i < 2; i++)
        if (s->worlds[i] < 1 || s->worlds[i] > MEMBERS_MAX)
            return err_set(err, ERR_LIMIT, "a transfer is between groups of 1 to %d ranks", MEMBERS_MAX);
    if (s->worlds[!s->sends] != rendezvous_world(s->call->nested.rendezvous))
        return err_set(err, ERR_UNAVAILABLE, "%s has %d ranks now, and had %lld when the transfer began",
                       s->groups[!s->sends], rendezvous_world(s->call->nested.rendezvous),
                       (long long)s->worlds[!s->sends]);
    return 0;
}

// The weights of this rank

static const struct mesh *make_mesh(struct transfer_step *s)
{
    const cadre_weight_list *l = s->list;
    size_t n = MAX(l->n_mesh, (size_t)1);
    struct mesh_dim *dims = arena_array(&s->arena, n, sizeof *dims);
    struct mesh *mesh = arena_new(&s->arena, struct mesh);
    for (size_t i = 0; i < n; i++) {
        dims[i].name = arena_printf(&s->arena, "%zu", i);
        dims[i].size = l->n_mesh ? l->mesh[i] : (uint32_t)s->worlds[!s->sends];
    }
    *mesh = (struct mesh){s->groups[!s->sends], dims, n};
    return mesh;
}

static int add_tensor(struct transfer_step *s, const cadre_weight *w, const struct transfer_side *side,
                      struct transfer_tensor *ret, struct err *err)
{
    size_t mesh_dims = side->mesh->n_dims;
    int *split = arena_array(&s->arena, mesh_dims, sizeof *split);
    for (size_t m = 0; m < mesh_dims; m++)
        split[m] = w->split && s->list->n_mesh ? w->split[m] : -1;
    *ret = (struct transfer_tensor){w->name, 0, w->shape, w->n_dims, split};
    return safetensors_dtype_find(w->dtype, &ret->dtype)
               ? 0
               : err_set(err, ERR_INVALID, "%s of %s has the dtype %s, which does not exist", w->name, side->name,
                         w->dtype ? w->dtype : "(none)");
}

static int narrow(struct transfer_step *s, struct transfer_side *side, struct err *err)
{
    const struct json *list = json_get(s->args, "names");
    const char **names = arena_array(&s->arena, json_count(list), sizeof *names), *missing;
    size_t n = 0;
    if (!list)
        return 0;
    JSON_FOREACH(item, list) {
        names[n] = json_str(item, &s->arena);
        n += names[n] != NULL;
    }
    transfer_side_narrow(side, names, n, &s->arena, &missing);
    return missing ? err_set(err, ERR_INVALID, "%s has no weights '%s'", side->name, missing) : 0;
}

static int describe(struct transfer_step *s, struct transfer_side *ret, struct err *err)
{
    const cadre_weight_list *l = s->list;
    struct transfer_tensor *tensors = arena_array(&s->arena, l->n, sizeof *tensors);
    *ret = (struct transfer_side){s->groups[!s->sends], make_mesh(s), tensors, l->n, NULL};
    if (mesh_check(ret->mesh, (uint32_t)s->worlds[!s->sends], err) < 0)
        return err->code;
    for (size_t i = 0; i < l->n; i++)
        if (add_tensor(s, &l->weights[i], ret, &tensors[i], err) < 0)
            return err->code;
    return narrow(s, ret, err);
}

static int check_dims(const struct transfer_tensor *t, const struct transfer_side *side, struct err *err)
{
    if (t->n_dims > SHARD_DIMS_MAX)
        return err_set(err, ERR_INVALID, "'%s' of %s has %zu dimensions, at most %d", t->name, side->name, t->n_dims,
                       SHARD_DIMS_MAX);
    for (size_t m = 0; m < side->mesh->n_dims; m++)
        if (t->split[m] < -1 || t->split[m] >= (int)t->n_dims)
            return err_set(err, ERR_INVALID,
                           "'%s' of %s has %zu dimensions, and dimension %zu of the mesh splits number %d of them",
                           t->name, side->name, t->n_dims, m, t->split[m]);
    return 0;
}

// Finds the blocks of this rank for these tensors, which may be fewer than all.
static int find_blocks(struct transfer_step *s, const struct transfer_side *side, const struct block **ret,
                       struct err *err)
{
    struct block *blocks = arena_array(&s->arena, side->n, sizeof *blocks);
    uint32_t rank = (uint32_t)rendezvous_rank(s->call->nested.rendezvous);
    for (size_t i = 0, k = 0; i < side->n; i++, k++) {
        const struct transfer_tensor *t = &side->tensors[i];
        struct shard block;
        while (s->list->weights[k].name != t->name)
            k++;
        if (check_dims(t, side, err) < 0)
            return err->code;
        shard_of_rank(side->mesh, t->split, rank, t->shape, t->n_dims, &block);
        const cadre_weight *w = &s->list->weights[k];
        blocks[i] =
            (struct block){w->data, shard_elements(&block) * safetensors_dtype_bits(t->dtype) / 8, w->on_device};
        if (blocks[i].len != w->len || (w->len && !w->data))
            return err_set(err, ERR_INVALID,
                           "'%s': rank %u of %s has a block of %zu bytes, and by its mesh the block has %zu", t->name,
                           rank, side->name, w->data ? w->len : 0, blocks[i].len);
    }
    *ret = blocks;
    return 0;
}

// Rendezvous

static struct rendezvous_list list_of(const struct transfer_step *s, const struct reshard_rendezvous *m, int member,
                                      int index)
{
    int receivers = (int)s->worlds[1];
    return (struct rendezvous_list){.first = member < receivers ? member : member - receivers,
                                    .group = s->groups[member < receivers],
                                    .id = m->id,
                                    .n = m->n,
                                    .index = index,
                                    .limit_ms = m->limit_ms,
                                    .canceled = &s->call->canceled,
                                    .stop = m->stop,
                                    .ctx = m->ctx};
}

static int host(void *ctx, const struct reshard_rendezvous *m, int *links, struct err *err)
{
    const struct transfer_step *s = ctx;
    struct rendezvous_list list = list_of(s, m, 0, 0);
    return rendezvous_meet(s->call->nested.rendezvous, &list, links, err);
}

static int join(void *ctx, const struct reshard_rendezvous *m, int member, int index, int *link, struct err *err)
{
    const struct transfer_step *s = ctx;
    struct rendezvous_list list = list_of(s, m, member, index);
    return rendezvous_meet(s->call->nested.rendezvous, &list, link, err);
}

static void name_members(struct transfer_step *s)
{
    size_t receivers = (size_t)s->worlds[1], n = (size_t)s->worlds[0] + receivers;
    s->names = arena_array(&s->arena, n, sizeof *s->names);
    for (size_t i = 0; i < n; i++)
        s->names[i] =
            arena_printf(&s->arena, "rank %zu of %s", i < receivers ? i : i - receivers, s->groups[i < receivers]);
}

// The steps

static int begin(struct transfer_step *s, struct json_writer *out)
{
    char contacts[REF_ID_SIZE] = "";
    uint64_t id = idle_connections_id(&s->weights->idle);
    if (id)
        ref_id_write(id, contacts);
    s->weights->begun = s->id;
    writer_str(out, "version", s->weights->version);
    writer_str(out, "contacts", contacts);
    return 0;
}

static void write_moved(const struct reshard_result *moved, struct json_writer *out)
{
    const struct mover_bytes *bytes = &moved->bytes;
    writer_i64(out, "bytes", (int64_t)(bytes->direct + bytes->nccl + bytes->sent));
    writer_i64(out, "direct", (int64_t)bytes->direct);
    writer_i64(out, "nccl", (int64_t)bytes->nccl);
    writer_i64(out, "copied", (int64_t)moved->copied);
    writer_strs(out, "problems", moved->problems, moved->n_problems);
}

// Once for each reason: transfers come again and again.
static void say_refusal(struct cadre_weights *w, const char *why)
{
    char text[REFUSAL_SIZE];
    snprintf(text, sizeof text, "%s", why ? why : "");
    if (why && !str_eq(text, w->refusal))
        fprintf(stderr, "cadre-worker: weights move by connections, and not by NCCL: %s\n", why);
    memcpy(w->refusal, text, sizeof text);
}

// Runs inside the GPU, if any weights are there.
static int run(struct transfer_step *s, struct reshard_config *c, struct reshard_result *ret, struct err *err)
{
    struct rank_device *rank = s->call->device.rank;
    struct gpu_copier gpu = {.device = NULL};
    if (!blocks_any_on_device(&c->blocks))
        return reshard(c, &s->arena, ret, err);
    int r = rank ? rank_device_enter(rank, err) : err_set(err, ERR_INVALID, "this rank has no GPU");
    if (r == 0 && (r = rank_device_lend(rank, false, &gpu.copier, err)) < 0)
        rank_device_leave(rank);
    if (r < 0)
        return err_wrap(err, "weights on the device");
    gpu.device = rank_device_of(rank);
    gpu.sweeper = rank_device_sweeper(rank);
    gpu.until_ms = clock_mono_ms(&clock_system) + s->limit_ms;
    c->blocks.gpu = &gpu;
    c->stream = s->list->stream;
    r = reshard(c, &s->arena, ret, err);
    rank_device_leave(rank);
    rank_device_give(rank, gpu.copier);
    return r;
}

// Reads which values this rank sends or receives, and where they lie.
static int read_sides(struct transfer_step *s, struct reshard_config *c, struct err *err)
{
    int r = read_move(s, err);
    if (r == 0 && s->weights->begun != s->id)
        r = err_set(err, ERR_UNAVAILABLE,
                    "this rank has started again since the transfer began, or another transfer has "
                    "begun: start it again");
    s->weights->begun = 0;
    if (r == 0)
        r = describe(s, &c->side, err);
    if (r == 0)
        r = find_blocks(s, &c->side, &c->blocks.list, err);
    c->blocks.n = c->side.n;
    return r;
}

static struct participant_config participant_of(const struct transfer_step *s)
{
    int receivers = (int)s->worlds[1];
    return (struct participant_config){.index =
                                           rendezvous_rank(s->call->nested.rendezvous) + (s->sends ? receivers : 0),
                                       .n_receivers = receivers,
                                       .n_senders = (int)s->worlds[0],
                                       .names = s->names,
                                       .limit_ms = s->limit_ms,
                                       .late_ms = PARTICIPANT_LATE_MS,
                                       .patience_ms = PARTICIPANT_PATIENCE_MS,
                                       .canceled = &s->call->canceled};
}

static int configure(struct transfer_step *s, struct reshard_config *c, struct err *err)
{
    struct cadre_weights *w = s->weights;
    *c = (struct reshard_config){.id = s->id,
                                 .piece_max = RESHARD_PIECE_MAX,
                                 .direct = !str_eq(getenv("CADRE_TRANSFER_DIRECT"), "0"),
                                 .progress = &w->progress.bytes,
                                 .idle = &w->idle,
                                 .nccl = str_eq(getenv("CADRE_TRANSFER_NCCL"), "0") ? NULL : &w->nccl,
                                 .nccl_limit_ms = NCCL_JOIN_MS,
                                 .ways = {host, join, s}};
    int r = read_sides(s, c, err);
    if (r < 0)
        return r;
    window_place(&c->place);
    c->known_by = s->known_by;
    name_members(s);
    if (!s->sends && !w->back_buffer)
        w->back_buffer = back_buffer_new(!str_eq(getenv("CADRE_TRANSFER_SWAP"), "0"));
    c->back_buffer = w->back_buffer;
    memcpy(c->groups, s->groups, sizeof c->groups);
    c->participant = participant_of(s);
    return 0;
}

static int move(struct transfer_step *s, struct json_writer *out, struct err *err)
{
    struct cadre_weights *w = s->weights;
    struct reshard_config c;
    struct reshard_result moved = {.copied = 0};
    int r = configure(s, &c, err);
    if (r < 0)
        return r;
    method_executor_waits();
    if (!s->sends)
        progress_begin(s->call->nested.progress, &w->progress);
    r = run(s, &c, &moved, err);
    if (!s->sends)
        progress_end(s->call->nested.progress, &w->progress);
    say_refusal(w, moved.refusal);
    if (r < 0)
        return r;
    w->arrived = !s->sends && !moved.n_problems;
    if (w->arrived)
        memcpy(w->version, s->id_text, MIN(strlen(s->id_text) + 1, sizeof w->version));
    write_moved(&moved, out);
    return 0;
}

static int take_step(struct transfer_step *s, struct json_writer *out, struct err *err)
{
    int r = read_args(s, err);
    if (r < 0)
        return r;
    writer_object(out, NULL);
    if (json_str_is(json_get(s->args, "step"), "begin"))
        r = begin(s, out);
    else
        r = move(s, out, err);
    writer_object_end(out);
    return r;
}

static cadre_result result_of(int code)
{
    switch (code) {
    case ERR_INVALID:
        return CADRE_INVALID_ARGUMENT;
    case ERR_CANCELED:
        return CADRE_CANCELED;
    case ERR_NOMEM:
        return CADRE_OUT_OF_MEMORY;
    case ERR_TIMEOUT:
    case ERR_GONE:
    case ERR_UNAVAILABLE:
        return CADRE_UNAVAILABLE;
    default:
        return CADRE_ERROR;
    }
}

CADRE_EXPORT cadre_result cadre_weights_move(cadre_weights *w, cadre_call *call, const cadre_weight_list *list)
{
    cadre_weight_list own = {.size = sizeof own};
    struct transfer_step s = {.call = call, .weights = w, .list = &own};
    struct err err = ERR_INIT;
    _cleanup_(writer_done) struct json_writer out = WRITER_INIT;
    if (list)
        memcpy(&own, list, MIN(list->size, sizeof own));
    w->arrived = false;
    if (!call->nested.rendezvous)
        return call_fail(call, CADRE_ERROR, "%s() cannot meet other ranks: this process is of no group", call->method);
    int r = take_step(&s, &out, &err);
    cadre_result result = r < 0 ? call_fail(call, result_of(r), "weights: %s", err.msg)
                                : call_return(call, buf_str(&out.buf), out.buf.len);
    arena_done(&s.arena);
    return result;
}
