// SPDX-License-Identifier: Apache-2.0
#include "operator/agents/devices.h"

#include "common/base/mem.h"
#include "common/base/str.h"

#include <inttypes.h>
#include <string.h>

static const char empty_body[] = "{}"; // most heartbeats are empty

void devices_done(struct devices *d)
{
    arena_done(&d->memory);
    d->gpus = NULL;
    d->n = 0;
}

static bool same_ranks(const struct gpu *a, const struct gpu *b)
{
    bool same = a->n_ranks == b->n_ranks;
    for (size_t i = 0; same && i < a->n_ranks; i++)
        same = a->ranks[i].rank == b->ranks[i].rank && str_eq(a->ranks[i].group, b->ranks[i].group);
    return same;
}

// Compares what decisions use: which GPUs are lost, and their ranks.
static bool same_losses(const struct gpu *a, size_t n_a, const struct gpu *b, size_t n_b)
{
    size_t i = 0, k = 0;
    for (;;) {
        while (i < n_a && !a[i].lost)
            i++;
        while (k < n_b && !b[k].lost)
            k++;
        if (i == n_a || k == n_b)
            return i == n_a && k == n_b;
        if (!str_eq(a[i].uuid, b[k].uuid) || !same_ranks(&a[i++], &b[k++]))
            return false;
    }
}

int devices_learn(struct devices *d, const char *body, size_t len, bool *ret_changed, struct err *err)
{
    struct arena memory = ARENA_INIT;
    struct json *root = NULL;
    struct gpu *gpus = NULL;
    size_t n = 0;
    *ret_changed = false;
    if (len <= strlen(empty_body))
        return 0;
    static const char *const prune[] = {"groups", NULL}; // of a HELLO
    int r = json_parse(body, len, prune, &memory, &root, err);
    const struct json *list = r == 0 ? json_get(root, "gpus") : NULL;
    if (r == 0 && list)
        r = gpu_read_list(list, &memory, &gpus, &n, err);
    if (r == 0 && list) {
        *ret_changed = !same_losses(d->gpus, d->n, gpus, n);
        devices_done(d);
        d->gpus = gpu_copy_list(gpus, n, &d->memory); // the JSON tree needs much more memory than its content
        d->n = n;
    }
    arena_done(&memory);
    return r;
}

// Returns the index of the rank in the ranks of this GPU, or -1. Rank -1 stands for any rank of the group.
static int has(const struct gpu *g, const char *group_uid, int32_t rank)
{
    for (size_t i = 0; i < g->n_ranks; i++)
        if ((rank < 0 || g->ranks[i].rank == rank) && str_eq(g->ranks[i].group, group_uid))
            return (int)i;
    return -1;
}

struct agent_gpu devices_lost(const struct devices *d, const char *group_uid, struct arena *a)
{
    for (size_t i = 0; i < d->n; i++) {
        const struct gpu *g = &d->gpus[i];
        int at = g->lost ? has(g, group_uid, -1) : -1;
        if (at >= 0)
            return (struct agent_gpu){.uuid = arena_strdup(a, g->uuid),
                                      .name = arena_strdup(a, g->name),
                                      .xid = MAX(g->values[GPU_XID], (int64_t)0),
                                      .rank = g->ranks[at].rank};
    }
    return (struct agent_gpu){0};
}

bool devices_any_lost(const struct devices *d)
{
    size_t i = 0;
    while (i < d->n && !d->gpus[i].lost)
        i++;
    return i < d->n;
}

const char *devices_of_rank(const struct devices *d, const char *group_uid, int32_t rank, struct arena *a)
{
    struct json_writer w = WRITER_INIT;
    bool any = false;
    writer_list(&w, NULL);
    for (size_t i = 0; i < d->n; i++) {
        struct gpu g = d->gpus[i];
        if (has(&g, group_uid, rank) < 0)
            continue;
        any = true;
        g.n_ranks = 0;
        gpu_write(&w, &g);
    }
    writer_list_end(&w);
    const char *text = writer_finish(&w, a);
    return any ? text : "";
}

static const struct family {
    const char *name, *help;
    enum gpu_value value; // GPU_VALUES = whether it is lost
    int64_t unit;
} families[DEVICES_FAMILIES] = {
    {"DCGM_FI_DEV_GPU_TEMP", "temperature of the GPU, in degrees Celsius", GPU_TEMPERATURE, 1},
    {"DCGM_FI_DEV_GPU_UTIL", "utilization of the GPU in percent", GPU_UTILIZATION, 1},
    {"DCGM_FI_DEV_POWER_USAGE", "power in watts", GPU_POWER, 1000},
    {"DCGM_FI_DEV_FB_USED", "memory that is in use, in MiB", GPU_USED_BYTES, 1 << 20},
    {"DCGM_FI_DEV_FB_TOTAL", "memory that the GPU has, in MiB", GPU_MEMORY_BYTES, 1 << 20},
    {"DCGM_FI_DEV_XID_ERRORS", "the last Xid that the driver has reported, 0 = none", GPU_XID, 1},
    {"DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", "corrected ECC errors since the driver was loaded", GPU_ECC_CORRECTED, 1},
    {"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "uncorrected ECC errors since the driver was loaded", GPU_ECC_UNCORRECTED, 1},
    {"cadre_gpu_lost", "1 if the GPU fell off the bus, else 0", GPU_VALUES, 1},
};

void devices_family(int family, struct buf *out)
{
    buf_printf(out, "# HELP %s %s\n# TYPE %s gauge\n", families[family].name, families[family].help,
               families[family].name);
}

// Texts of the driver come through a pod. They must not end a label.
static void put_label(struct buf *out, const char *key, const char *value)
{
    buf_printf(out, ",%s=\"", key);
    for (; *value; value++)
        buf_putc(out, *value == '"' || *value == '\\' || (unsigned char)*value < ' ' ? '_' : *value);
    buf_putc(out, '"');
}

void devices_series(const struct devices *d, int family, const char *labels, struct buf *out)
{
    const struct family *f = &families[family];
    for (size_t i = 0; i < d->n; i++) {
        const struct gpu *g = &d->gpus[i];
        int64_t value = f->value == GPU_VALUES ? g->lost : g->values[f->value];
        if (value == GPU_UNKNOWN)
            continue;
        buf_printf(out, "%s{%s,gpu=\"%" PRId32 "\"", f->name, labels, g->index);
        put_label(out, "UUID", g->uuid);
        put_label(out, "modelName", g->name);
        buf_printf(out, "} %" PRId64 "\n", value / f->unit);
    }
}
