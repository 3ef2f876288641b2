// SPDX-License-Identifier: Apache-2.0
#include "common/wire/gpu.h"

#include <inttypes.h>
#include <string.h>

enum { GROUP_MAX = 63 };

static const char *const names[GPU_VALUES] = {
    [GPU_MEMORY_BYTES] = "memoryBytes",   [GPU_USED_BYTES] = "usedBytes",           [GPU_TEMPERATURE] = "temperature",
    [GPU_UTILIZATION] = "utilization",    [GPU_POWER] = "powerMilliwatts",          [GPU_XID] = "xid",
    [GPU_ECC_CORRECTED] = "eccCorrected", [GPU_ECC_UNCORRECTED] = "eccUncorrected",
};

void gpu_write(struct json_writer *w, const struct gpu *g)
{
    writer_object(w, NULL);
    writer_i64(w, "index", g->index);
    writer_str(w, "uuid", g->uuid);
    writer_str(w, "name", g->name);
    writer_str(w, "state", g->lost ? "Lost" : "Ok");
    for (int i = 0; i < GPU_VALUES; i++)
        if (g->values[i] != GPU_UNKNOWN)
            writer_i64(w, names[i], g->values[i]);
    if (g->n_ranks)
        writer_list(w, "ranks");
    for (size_t i = 0; i < g->n_ranks; i++)
        writer_print(w, NULL, "{'group':%s,'rank':%" PRId64 "}", g->ranks[i].group, (int64_t)g->ranks[i].rank);
    if (g->n_ranks)
        writer_list_end(w);
    writer_object_end(w);
}

static const char *read_text(const struct json *from, const char *name, size_t max, struct arena *a, struct err *err)
{
    const char *s = json_str(json_get(from, name), a);
    if ((!s || !*s || strlen(s) > max) && !err->code)
        err_set(err, ERR_INVALID, "%s of a GPU: not a string of 1 to %zu bytes", name, max);
    return s;
}

static int32_t read_number(const struct json *from, const char *name, int64_t max, struct err *err)
{
    int64_t n = 0;
    if ((!json_i64(json_get(from, name), &n) || n < 0 || n > max) && !err->code)
        err_set(err, ERR_INVALID, "%s of a GPU: not a number in its range", name);
    return (int32_t)n;
}

static void read_ranks(const struct json *list, size_t *left, struct arena *a, struct gpu *g, struct err *err)
{
    size_t n = json_count(list);
    if (list && (list->type != JSON_LIST || n > *left)) {
        err_set(err, ERR_INVALID, "ranks of GPUs: not a list, or more than %d in all", GPU_RANKS_MAX);
        return;
    }
    *left -= n;
    g->ranks = arena_array(a, n, sizeof *g->ranks);
    JSON_FOREACH(v, list)
        g->ranks[g->n_ranks++] = (struct gpu_rank){.group = read_text(v, "group", GROUP_MAX, a, err),
                                                   .rank = read_number(v, "rank", INT32_MAX, err)};
}

static void read_one(const struct json *v, size_t *left, struct arena *a, struct gpu *g, struct err *err)
{
    *g = (struct gpu){.index = read_number(v, "index", GPU_LIST_MAX - 1, err),
                      .uuid = read_text(v, "uuid", GPU_TEXT_MAX, a, err),
                      .name = read_text(v, "name", GPU_TEXT_MAX, a, err),
                      .lost = json_str_is(json_get(v, "state"), "Lost")};
    for (int i = 0; i < GPU_VALUES; i++)
        if (!json_i64(json_get(v, names[i]), &g->values[i]) || g->values[i] < 0)
            g->values[i] = GPU_UNKNOWN;
    read_ranks(json_get(v, "ranks"), left, a, g, err);
}

int gpu_read_list(const struct json *list, struct arena *a, struct gpu **ret, size_t *ret_n, struct err *err)
{
    size_t n = json_count(list), left = GPU_RANKS_MAX;
    *ret_n = 0;
    if (list && list->type != JSON_LIST)
        return err_set(err, ERR_INVALID, "gpus: not a list");
    if (n > GPU_LIST_MAX)
        return err_set(err, ERR_LIMIT, "gpus: %zu, at most %d", n, GPU_LIST_MAX);
    *ret = arena_array(a, n, sizeof **ret);
    JSON_FOREACH(v, list)
        read_one(v, &left, a, &(*ret)[(*ret_n)++], err);
    return err->code;
}

struct gpu *gpu_copy_list(const struct gpu *gpus, size_t n, struct arena *a)
{
    struct gpu *copy = arena_array(a, n, sizeof *copy);
    for (size_t i = 0; i < n; i++) {
        copy[i] = gpus[i];
        copy[i].uuid = arena_strdup(a, gpus[i].uuid);
        copy[i].name = arena_strdup(a, gpus[i].name);
        copy[i].ranks = arena_array(a, gpus[i].n_ranks, sizeof *copy[i].ranks);
        for (size_t k = 0; k < gpus[i].n_ranks; k++)
            copy[i].ranks[k] = (struct gpu_rank){arena_strdup(a, gpus[i].ranks[k].group), gpus[i].ranks[k].rank};
    }
    return copy;
}
