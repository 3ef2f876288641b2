// SPDX-License-Identifier: Apache-2.0
#include "operator/reconcile/bundles.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/reconcile/ranges.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { SHAPES_TEXT_MAX = 256 * 1024 };

static uint64_t shape_hash(const struct amounts *resources, const struct labels *selector)
{
    struct buf b = BUF_INIT(1 << 20);
    for (size_t i = 0; i < resources->n; i++)
        buf_printf(&b, "%s=%" PRId64 "\n", resources->items[i].name, resources->items[i].milli);
    for (size_t i = 0; i < selector->n; i++)
        buf_printf(&b, "%s:%s\n", selector->items[i].key, selector->items[i].value);
    uint64_t hash = str_hash(buf_str(&b), b.len);
    buf_done(&b);
    return hash;
}

static size_t find_shape(const struct bundles *b, uint64_t hash)
{
    size_t i = 0;
    while (i < b->n_shapes && b->shapes[i].hash != hash)
        i++;
    return i;
}

int64_t bundles_count(const struct placementgroup_spec *s)
{
    int64_t n = 0;
    for (size_t i = 0; i < s->n_bundles; i++)
        n += s->bundles[i].count;
    return n;
}

int bundles_expand(const struct placementgroup_spec *s, struct arena *a, struct bundles *ret, struct err *err)
{
    int64_t n = bundles_count(s), gpus = 0;
    *ret = (struct bundles){0};
    if (!n || n > BUNDLES_MAX)
        return err_set(err, ERR_LIMIT, "spec.bundles: a PlacementGroup has 1 to %d bundles, not %lld", BUNDLES_MAX,
                       (long long)n);
    ret->shapes = arena_array(a, s->n_bundles, sizeof *ret->shapes);
    ret->shape = arena_array(a, (size_t)n, sizeof *ret->shape);
    for (size_t i = 0; i < s->n_bundles; i++) {
        const struct bundle_spec *x = &s->bundles[i];
        struct bundle_shape shape = {.node_selector = &x->node_selector};
        if (amounts_decode(x->resources_json, a, &shape.resources, err) < 0)
            return err_wrap(err, "spec.bundles[%zu].resources", i);
        shape.hash = shape_hash(&shape.resources, &x->node_selector);
        size_t at = find_shape(ret, shape.hash);
        if (at == ret->n_shapes)
            ret->shapes[ret->n_shapes++] = shape;
        for (int32_t k = 0; k < x->count; k++)
            ret->shape[ret->n++] = at;
        gpus = MIN(gpus + MIN(amounts_get(&shape.resources, RESOURCE_GPU_NAME) / 1000, (int64_t)INT32_MAX) * x->count,
                   (int64_t)INT32_MAX);
    }
    ret->gpus = (int32_t)gpus;
    return 0;
}

static int check_amount(const struct amount *x, int32_t bundle, struct err *err)
{
    static const char *const native[] = {"cpu", "memory", "ephemeral-storage"};
    bool known = str_starts(x->name, "hugepages-"), extended = strchr(x->name, '/');
    for (size_t i = 0; i < ARRAY_LEN(native); i++)
        known = known || str_eq(x->name, native[i]);
    if (!known && !extended)
        return err_set(err, ERR_INVALID,
                       "spec.bundles: bundle %d asks for %s, which no container can have: use cpu, memory, "
                       "ephemeral-storage, hugepages-<size> or a full name such as nvidia.com/gpu",
                       bundle, x->name);
    if (!known && x->milli % 1000)
        return err_set(err, ERR_INVALID, "spec.bundles: bundle %d requests %lldm of %s, which must be a whole number",
                       bundle, (long long)x->milli, x->name);
    return 0;
}

int bundles_check(const struct bundles *b, struct err *err)
{
    int r = 0;
    size_t seen = 0; // shapes are numbered in the order in which they first appear
    for (int32_t i = 0; i < b->n && seen < b->n_shapes && r == 0; i++) {
        if (b->shape[i] != seen)
            continue;
        const struct amounts *all = &b->shapes[seen++].resources;
        for (size_t k = 0; k < all->n && r == 0; k++)
            r = check_amount(&all->items[k], i, err);
    }
    return r;
}

// Names with a domain of Kubernetes itself are not devices.
static bool is_device(const struct amount *x)
{
    static const char own[] = "kubernetes.io";
    const char *slash = strchr(x->name, '/');
    size_t len = slash ? (size_t)(slash - x->name) : 0, own_len = strlen(own);
    bool ours = len >= own_len && strncmp(slash - own_len, own, own_len) == 0 &&
                (len == own_len || x->name[len - own_len - 1] == '.');
    return slash && x->milli > 0 && !ours && !str_eq(x->name, RESOURCE_GPU_NAME);
}

const struct amount *bundle_other_device(const struct bundle_shape *s)
{
    for (size_t i = 0; i < s->resources.n; i++)
        if (is_device(&s->resources.items[i]))
            return &s->resources.items[i];
    return NULL;
}

static void add_labels(struct labels *to, const struct labels *from, struct arena *a)
{
    struct label *items = arena_array(a, to->n + from->n, sizeof *items);
    size_t n = to->n;
    if (n)
        memcpy(items, to->items, n * sizeof *items);
    for (size_t i = 0; i < from->n; i++)
        if (!labels_get(to, from->items[i].key))
            items[n++] = from->items[i];
    struct labels sum = {items, n};
    for (size_t i = 1; i < sum.n; i++) // there are few, and they are nearly sorted
        for (size_t k = i; k && strcmp(items[k - 1].key, items[k].key) > 0; k--) {
            struct label swapped = items[k];
            items[k] = items[k - 1];
            items[k - 1] = swapped;
        }
    *to = sum;
}

void bundles_sum(const struct bundles *b, const int32_t *items, size_t n, struct arena *a, struct bundle_sum *ret)
{
    *ret = (struct bundle_sum){0};
    for (size_t i = 0; i < n; i++) {
        const struct bundle_shape *shape = bundle_shape(b, items[i]);
        amounts_add(&ret->resources, &shape->resources, a);
        if (i == 0 || shape != bundle_shape(b, items[i - 1]))
            add_labels(&ret->node_selector, shape->node_selector, a);
    }
}

const char *bundles_text(const int32_t *items, size_t n, struct arena *a)
{
    struct ranges r = RANGES_INIT;
    for (size_t i = 0; i < n; i++)
        ranges_add(&r, items[i]);
    return ranges_take(&r, a);
}

const char *bundles_shapes_text(const struct bundles *b, const int32_t *items, size_t n, struct arena *a)
{
    struct buf text = BUF_INIT(SHAPES_TEXT_MAX);
    for (size_t i = 0, next; i < n; i = next) {
        uint64_t hash = bundle_shape(b, items[i])->hash;
        for (next = i + 1; next < n && bundle_shape(b, items[next])->hash == hash;)
            next++;
        buf_printf(&text, "%s%016" PRIx64 "*%zu", i ? "," : "", hash, next - i);
    }
    const char *s = arena_strdup(a, buf_str(&text));
    buf_done(&text);
    return s;
}

// Reads one hash after the other, each as often as its count says.
struct shape_reader {
    const char *text;
    uint64_t hash;
    unsigned long long left;
};

static bool next_shape(struct shape_reader *r, uint64_t *ret)
{
    if (!r->left) {
        char *end;
        r->hash = strtoull(r->text, &end, 16);
        if (end == r->text || *end != '*')
            return false;
        r->left = strtoull(end + 1, &end, 10);
        r->text = *end == ',' ? end + 1 : end;
        if (!r->left)
            return false;
    }
    r->left--;
    *ret = r->hash;
    return true;
}

// Returns how many of these bundles exist in the PlacementGroup; -1: the text cannot be read.
static int64_t count_items(const char *text, int32_t n)
{
    int32_t first, last, before = -1;
    int64_t count = 0;
    for (; ranges_next(&text, &first, &last); before = last) {
        if (first <= before)
            return -1;
        count += MAX(0, MIN(last, n - 1) - first + 1);
    }
    return text ? count : -1;
}

bool bundles_of_pod(const struct bundles *b, const struct pod *p, struct arena *a, int32_t **ret, size_t *ret_n,
                    bool *ret_same)
{
    const char *text = labels_get(&p->obj.meta.annotations, ANNOTATION_BUNDLES);
    const char *shapes = labels_get(&p->obj.meta.annotations, ANNOTATION_SHAPES);
    struct shape_reader reader = {.text = shapes ? shapes : ""};
    int32_t first, last;
    int64_t count = count_items(text, b->n);
    *ret = arena_array(a, (size_t)MAX(count, INT64_C(0)), sizeof **ret);
    *ret_n = 0;
    *ret_same = true;
    while (count >= 0 && ranges_next(&text, &first, &last)) {
        for (int32_t i = first; i <= MIN(last, b->n - 1); i++) {
            uint64_t hash = 0;
            *ret_same = *ret_same && next_shape(&reader, &hash) && hash == bundle_shape(b, i)->hash;
            (*ret)[(*ret_n)++] = i;
        }
    }
    return count >= 0;
}
