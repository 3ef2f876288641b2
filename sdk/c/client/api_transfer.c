// SPDX-License-Identifier: Apache-2.0
// cadre_client_transfer(): two steps, each a call to the ranks of both groups, which do the rest (cadre/transfer.h).
#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/base/json_writer.h"
#include "common/base/mem.h"
#include "common/base/rand.h"
#include "common/base/str.h"
#include "common/wire/ref.h"
#include "sdk/c/client/client_fault.h"
#include "sdk/c/client/settings.h"
#include "sdk/c/include/cadre/client.h"
#include "sdk/c/include/cadre/transfer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TIMEOUT_MS = 600 * 1000,
    SLICE_MS = 100,
    LATER_MS = 15 * 1000, // the ranks report which rank is late, and need this much time for it
    GRACE_MS = 10 * 1000, // after a first error: all ranks except those that stand still answer at once, or have ended
    RANKS_MAX = 4096,
};
enum side { SOURCE, TARGET };

struct transfer {
    cadre_client *client;
    cadre_client_transfer_options o;
    int64_t end;
    char id[REF_ID_SIZE];
    size_t worlds[2];
    char contacts[REF_ID_SIZE]; // id of connections that all ranks of both groups still have; "" = there are none
    // Calls of the step. Those before n_open are not answered yet.
    uint64_t *open;
    size_t n_open;
    char *sides; // for the call with this id: an index into `all`
    uint64_t *all;
    size_t n_all;
    int64_t give_up; // 0 = nothing has failed
    cadre_client_error error;
    uint64_t bytes, direct, nccl;
    size_t arrived;
    char *problems;
};

static int64_t now_ms(void)
{
    return clock_mono_ms(&clock_system);
}

static const char *group_of(const struct transfer *t, enum side side)
{
    return side == SOURCE ? t->o.source : t->o.target;
}

// The name without its namespace: both groups are in the same one.
static const char *name_of(const struct transfer *t, enum side side)
{
    const char *group = group_of(t, side), *slash = strrchr(group, '/');
    return slash ? slash + 1 : group;
}

// Calls

static enum side side_of(const struct transfer *t, uint64_t id)
{
    size_t i = 0;
    while (t->all[i] != id)
        i++;
    return (enum side)t->sides[i];
}

static bool start(struct transfer *t, enum side side, int64_t rank, const char *args)
{
    cadre_client_request r;
    uint64_t id;
    cadre_client_request_init(&r, CADRE_WEIGHTS_METHOD);
    r.group = group_of(t, side);
    r.role = side == SOURCE ? t->o.source_role : t->o.target_role;
    r.via = t->o.via;
    r.rank = rank;
    r.args = (cadre_client_json){args, strlen(args)};
    r.timeout_ms = MAX(t->end - now_ms(), (int64_t)1) + LATER_MS;
    r.keep = 1;
    if (cadre_client_start(t->client, &r, &id, &t->error) != CADRE_CLIENT_OK) {
        t->give_up = now_ms();
        return false;
    }
    t->open[t->n_open++] = id;
    t->sides[t->n_all] = (char)side;
    t->all[t->n_all++] = id;
    return true;
}

static void begin_step(struct transfer *t, size_t n)
{
    t->n_open = t->n_all = 0;
    t->open = xrealloc(t->open, n, sizeof *t->open);
    t->all = xrealloc(t->all, n, sizeof *t->all);
    t->sides = xrealloc(t->sides, n, 1);
}

// An error with a process's exit code says more than the errors of ranks that only miss that process.
static void take_error(struct transfer *t, const cadre_client_error *error)
{
    bool knows = error->exit_code >= 0, knew = t->error.exit_code >= 0;
    if (!t->give_up || (knows && !knew))
        t->error = *error;
    if (!t->give_up)
        t->give_up = now_ms() + GRACE_MS;
}

typedef void (*take_fn)(struct transfer *t, enum side side, cadre_client_json result);

static void take(struct transfer *t, uint64_t id, take_fn take_result)
{
    cadre_client_json result;
    cadre_client_error error;
    void *memory = NULL;
    if (cadre_client_take(t->client, id, 0, &result, &memory, &error) != CADRE_CLIENT_OK)
        take_error(t, &error);
    else
        take_result(t, side_of(t, id), result);
    cadre_client_give_back(t->client, memory);
}

static void cancel_all(struct transfer *t)
{
    for (size_t i = 0; i < t->n_open; i++) {
        (void)cadre_client_cancel(t->client, t->open[i]);
        cadre_client_forget(t->client, t->open[i]);
    }
    t->n_open = 0;
}

static void cancel_if_wanted(struct transfer *t)
{
    struct err err = ERR_INIT;
    if (!t->o.canceled || !t->o.canceled(t->o.ctx))
        return;
    err_set(&err, ERR_CANCELED, "canceled; ranks of %s that have all of their new weights may take them",
            name_of(t, TARGET));
    (void)fault_return(&t->error, &err);
    t->give_up = now_ms();
}

static void end_step(struct transfer *t, take_fn take_result)
{
    while (t->n_open && (!t->give_up || now_ms() < t->give_up)) {
        size_t ready = 0;
        cadre_client_error error;
        if (cadre_client_wait_for(t->client, t->open, t->n_open, 1, SLICE_MS, &ready, &error) != CADRE_CLIENT_OK) {
            take_error(t, &error);
            break;
        }
        if (ready) {
            take(t, t->open[0], take_result);
            t->open[0] = t->open[--t->n_open];
        } else {
            cancel_if_wanted(t);
        }
    }
    cancel_all(t);
}

// The steps

// Takes the answer of one rank. The first answer sets the contacts. They can be used if all other ranks have the same.
static void take_begun(struct transfer *t, enum side side, cadre_client_json result)
{
    _cleanup_(arena_done) struct arena a = ARENA_INIT;
    const char *contacts = json_str(json_get(json_read(result.text, result.len, &a), "contacts"), &a);
    bool is_first = !t->worlds[SOURCE] && !t->worlds[TARGET];
    if (is_first)
        snprintf(t->contacts, sizeof t->contacts, "%s", contacts ? contacts : "");
    else if (!contacts || !str_eq(contacts, t->contacts))
        t->contacts[0] = '\0';
    t->worlds[side]++;
}

static void take_world(struct transfer *t, enum side side, cadre_client_json result)
{
    cadre_client_json item;
    while (cadre_client_list_next(&result, &item) == 1)
        take_begun(t, side, item);
}

static void take_problems(struct transfer *t, const struct json *list, struct arena *a)
{
    struct buf text = BUF_INIT(SIZE_MAX);
    if (t->problems || !json_count(list))
        return;
    buf_printf(&text, "the weights of %s do not fit %s: ", name_of(t, SOURCE), name_of(t, TARGET));
    JSON_FOREACH(item, list)
        buf_printf(&text, "%s%s", item == list->child ? "" : "; ", json_str(item, a));
    t->problems = buf_take(&text);
}

static void take_moved(struct transfer *t, enum side side, cadre_client_json result)
{
    _cleanup_(arena_done) struct arena a = ARENA_INIT;
    const struct json *root = json_read(result.text, result.len, &a);
    int64_t bytes = 0, direct = 0, nccl = 0;
    take_problems(t, json_get(root, "problems"), &a);
    if (side == TARGET && json_i64(json_get(root, "bytes"), &bytes)) {
        (void)json_i64(json_get(root, "direct"), &direct);
        (void)json_i64(json_get(root, "nccl"), &nccl);
        t->bytes += (uint64_t)bytes;
        t->direct += (uint64_t)direct;
        t->nccl += (uint64_t)nccl;
        t->arrived++;
    }
}

static void begin(struct transfer *t)
{
    char args[64];
    snprintf(args, sizeof args, "{\"step\":\"begin\",\"id\":\"%s\"}", t->id);
    begin_step(t, 2);
    if (start(t, SOURCE, -1, args))
        (void)start(t, TARGET, -1, args);
    end_step(t, take_world);
}

static void write_args(const struct transfer *t, enum side side, struct json_writer *w)
{
    *w = WRITER_INIT;
    writer_object(w, NULL);
    writer_str(w, "step", "move");
    writer_str(w, "id", t->id);
    writer_bool(w, "sends", side == SOURCE);
    writer_str(w, "source", name_of(t, SOURCE));
    writer_i64(w, "sources", (int64_t)t->worlds[SOURCE]);
    writer_str(w, "target", name_of(t, TARGET));
    writer_i64(w, "targets", (int64_t)t->worlds[TARGET]);
    if (t->contacts[0])
        writer_str(w, "contacts", t->contacts);
    writer_i64(w, "limitMs", MAX(t->end - now_ms(), (int64_t)1));
    if (t->o.n_names)
        writer_strs(w, "names", t->o.names, t->o.n_names);
    writer_object_end(w);
}

// Each rank gets its own call. If one call fails, the others are canceled.
static void move(struct transfer *t)
{
    bool good = true;
    begin_step(t, t->worlds[SOURCE] + t->worlds[TARGET]);
    for (int side = TARGET; side >= SOURCE; side--) { // the targets first: the ranks meet there
        _cleanup_(writer_done) struct json_writer w;
        write_args(t, (enum side)side, &w);
        for (size_t rank = 0; good && rank < t->worlds[side]; rank++)
            good = start(t, (enum side)side, (int64_t)rank, buf_str(&w.buf));
    }
    end_step(t, take_moved);
}

static int check(const struct transfer *t, struct err *err)
{
    if (str_empty(t->o.source) || str_empty(t->o.target))
        return err_set(err, ERR_INVALID, "a transfer needs a source and a target");
    if (str_eq(name_of(t, SOURCE), name_of(t, TARGET)))
        return err_set(err, ERR_INVALID,
                       "%s cannot send weights to itself, also not to another of its roles: the same "
                       "processes would send and receive",
                       name_of(t, SOURCE));
    if (t->o.timeout_ms < 0)
        return err_set(err, ERR_INVALID, "a transfer with a negative timeout; 0 is the default");
    return 0;
}

static cadre_client_code finish(struct transfer *t, cadre_client_transferred *ret, cadre_client_error *error)
{
    struct err err = ERR_INIT;
    size_t len = strlen(t->error.message);
    snprintf(ret->version, sizeof ret->version, "%s", t->id);
    ret->bytes = t->bytes;
    ret->direct = t->direct;
    ret->nccl = t->nccl;
    if (t->give_up) {
        if (t->arrived)
            snprintf(t->error.message + len, sizeof t->error.message - len,
                     "; %zu of %zu ranks of %s say that they have the new weights: transfer again", t->arrived,
                     t->worlds[TARGET], name_of(t, TARGET));
        free(t->problems);
        if (error)
            *error = t->error;
        return t->error.code;
    }
    if (!t->problems)
        return CADRE_CLIENT_OK;
    err_set(&err, ERR_INVALID, "%s", t->problems);
    ret->problems = t->problems;
    return fault_return(error, &err);
}

cadre_client_code cadre_client_transfer(cadre_client *c, const cadre_client_transfer_options *options,
                                        cadre_client_transferred *ret, cadre_client_error *error)
{
    struct transfer t = {.client = c};
    struct err err = ERR_INIT;
    struct rand rand;
    *ret = (cadre_client_transferred){.bytes = 0};
    if (settings_copy_sized(&t.o, sizeof t.o, options, "cadre_client_transfer_options", &err) < 0 ||
        check(&t, &err) < 0)
        return fault_return(error, &err);
    rand_seed_system(&rand);
    ref_id_write(rand_u64(&rand), t.id);
    t.end = now_ms() + (t.o.timeout_ms ? t.o.timeout_ms : TIMEOUT_MS);
    begin(&t);
    for (int side = SOURCE; side <= TARGET && !t.give_up; side++)
        if (!t.worlds[side] || t.worlds[side] > RANKS_MAX) {
            err_set(&err, ERR_INVALID, "%s has %zu ranks; a transfer is between groups of 1 to %d",
                    name_of(&t, (enum side)side), t.worlds[side], RANKS_MAX);
            t.give_up = now_ms();
            (void)fault_return(&t.error, &err);
        }
    if (!t.give_up)
        move(&t);
    free(t.open);
    free(t.all);
    free(t.sides);
    return finish(&t, ret, error);
}
