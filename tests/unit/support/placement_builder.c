// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/support/placement_builder.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/api/pod_constraints.h"
#include "operator/api/quantity.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char POD_OF_ALL[] = "used";
enum { PRIORITY_OF_ALL = 2000000000 };

// Splits off the next word of *text (which it changes); NULL at the end.
static char *next_word(char **text)
{
    char *word;
    while ((word = strsep(text, " ")) && !*word)
        ;
    return word;
}

// Cuts "key=value" in two; the value is "" where there is no '='.
static char *cut(char *word, char at)
{
    char *value = strchr(word, at);
    if (!value)
        return word + strlen(word);
    *value = '\0';
    return value + 1;
}

static bool is_amount(const char *name)
{
    static const char *const known[] = {"gpu", "cpu", "memory", "pods"};
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (str_eq(name, known[i]))
            return true;
    return strchr(name, '/');
}

static void add_amount(struct resources *to, const char *name, const char *value, struct arena *a)
{
    struct err err = ERR_INIT;
    struct resource r = {.id = resource_id(str_eq(name, "gpu") ? RESOURCE_GPU_NAME : name)};
    if (quantity_parse(value, &r.milli, &err) < 0)
        fail_msg("%s=%s: %s", name, value, err.msg);
    resources_add(to, &(struct resources){&r, 1}, a);
}

struct resources build_amounts(const char *amounts, struct arena *a)
{
    struct resources r = {0};
    char *text = arena_strdup(a, amounts);
    for (char *word; (word = next_word(&text));) {
        char *value = cut(word, '=');
        add_amount(&r, word, value, a);
    }
    return r;
}

// An object of that size in an arena of its own, as the decoder makes them.
static void *build_object(enum kind kind, size_t size, const char *name)
{
    struct arena arena = ARENA_INIT;
    struct object *o = arena_alloc(&arena, size);
    o->refs = 1;
    o->kind = kind;
    o->meta.name = arena_strdup(&arena, name);
    o->meta.ns = kind == KIND_NODE ? "" : "ml";
    o->arena = arena;
    return o;
}

struct pod *build_pod(const char *name, const char *node, const char *amounts)
{
    struct pod *p = build_object(KIND_POD, sizeof *p, name);
    p->node = arena_strdup(&p->obj.arena, node);
    p->priority = PRIORITY_OF_ALL;
    p->phase = POD_RUNNING;
    p->requests = build_amounts(amounts, &p->obj.arena);
    return p;
}

static void add_label(struct labels *to, const char *key, const char *value, struct arena *a)
{
    struct label *items = arena_array(a, to->n + 1, sizeof *items);
    size_t i = 0, k = 0;
    while (i < to->n && strcmp(to->items[i].key, key) < 0)
        items[k++] = to->items[i++];
    items[k++] = (struct label){key, value};
    while (i < to->n)
        items[k++] = to->items[i++];
    *to = (struct labels){items, k};
}

static void add_taint(struct node *n, char *text)
{
    struct taint *taints = arena_array(&n->obj.arena, n->n_taints + 1, sizeof *taints);
    for (size_t i = 0; i < n->n_taints; i++)
        taints[i] = n->taints[i];
    struct taint *t = &taints[n->n_taints++];
    t->effect = cut(text, ':');
    t->value = cut(text, '=');
    t->key = text;
    n->taints = taints;
}

struct node *build_node(const char *name, const char *words)
{
    struct node *n = build_object(KIND_NODE, sizeof *n, name);
    struct arena *a = &n->obj.arena;
    n->ready = true;
    bool says_pods = false;
    char *text = arena_strdup(a, words);
    for (char *word; (word = next_word(&text));) {
        if (str_starts(word, "used."))
            continue;
        char *value = cut(word, '=');
        says_pods |= str_eq(word, "pods");
        if (str_eq(word, "cordoned"))
            n->unschedulable = true;
        else if (str_eq(word, "notready"))
            n->ready = false;
        else if (str_eq(word, "taint"))
            add_taint(n, value);
        else if (is_amount(word))
            add_amount(&n->allocatable, word, value, a);
        else
            add_label(&n->obj.meta.labels, word, value, a);
    }
    if (!says_pods)
        add_amount(&n->allocatable, "pods", "110", a);
    return n;
}

static void add_node(struct world *w, const char *name, char *words)
{
    struct node *n = build_node(name, words);
    cluster_set_node(w->cluster, n);
    object_unref(&n->obj);

    struct pod *p = build_pod(arena_printf(&w->arena, "%s-%s", POD_OF_ALL, name), name, "");
    for (char *word; (word = next_word(&words));) {
        char *value = cut(word, '=');
        if (str_starts(word, "used."))
            add_amount(&p->requests, word + strlen("used."), value, &p->obj.arena);
    }
    if (p->requests.n)
        cluster_set_pod(w->cluster, p);
    object_unref(&p->obj);
}

static void add_pod(struct world *w, const char *name, char *words)
{
    struct pod *p = build_pod(name, NULL, "pods=1");
    struct arena *a = &p->obj.arena;
    p->priority = 0;
    for (char *word; (word = next_word(&words));) {
        int64_t number = 0;
        char *value = cut(word, '=');
        str_to_i64(value, &number);
        if (str_eq(word, "on"))
            p->node = arena_strdup(a, value);
        else if (str_eq(word, "pin"))
            p->pin = arena_strdup(a, value);
        else if (str_eq(word, "priority"))
            p->priority = (int32_t)number;
        else if (str_eq(word, "age"))
            p->obj.meta.created_ms = -number * 1000;
        else if (str_eq(word, "group"))
            p->obj.meta.owner =
                (struct owner){"cadre.dev/v1alpha1", "WorkerGroup", arena_strdup(a, value), arena_strdup(a, value)};
        else
            add_amount(&p->requests, word, value, a);
    }
    cluster_set_pod(w->cluster, p);
    object_unref(&p->obj);
}

static void add_toleration(struct pod_constraints *c, char *text, struct arena *a)
{
    struct toleration *all = arena_array(a, c->n_tolerations + 1, sizeof *all);
    for (size_t i = 0; i < c->n_tolerations; i++)
        all[i] = c->tolerations[i];
    struct toleration *t = &all[c->n_tolerations++];
    t->effect = cut(text, ':');
    t->value = cut(text, '=');
    t->key = text;
    c->tolerations = all;
}

static void add_bundles(struct world *w, struct world_gang *g, char *words)
{
    int64_t count;
    char *number = next_word(&words);
    if (!g || !str_to_i64(number, &count) || g->gang.n_bundles + (size_t)count > WORLD_BUNDLES)
        fail_msg("bundles without a gang above them, or too many: %s", number);
    struct pod_constraints *c = arena_new(&w->arena, struct pod_constraints);
    c->priority = g->priority;
    c->preempts = !g->patient;
    const char *on = NULL;
    bool says_pods = false;
    for (char *word; (word = next_word(&words));) {
        char *value = cut(word, '=');
        says_pods |= str_eq(word, "pods");
        if (str_eq(word, "on"))
            on = value;
        else if (str_eq(word, "tolerate"))
            add_toleration(c, value, &w->arena);
        else if (str_starts(word, "select."))
            add_label(&c->node_selector, word + strlen("select."), value, &w->arena);
        else
            add_amount(&c->requests, word, value, &w->arena);
    }
    if (!says_pods)
        add_amount(&c->requests, "pods", "1", &w->arena);
    for (int64_t i = 0; i < count; i++)
        g->bundles[g->gang.n_bundles++] = (struct bundle){c, on};
}

static struct world_gang *add_gang(struct world *w, const char *line, char *words)
{
    struct world_gang *g = arena_new(&w->arena, struct world_gang);
    assert_true(w->n_gangs < WORLD_GANGS);
    w->gangs[w->n_gangs++] = g;
    g->line = line;
    g->gang = (struct gang){.bundles = g->bundles, .avoid = g->avoid, .held = g->held, .ns = "ml"};
    const char *name = next_word(&words);
    int strategy = STRATEGY_PACK;
    while (strategy <= STRATEGY_STRICT_SPREAD && !str_eq(name, strategy_name((enum strategy)strategy)))
        strategy++;
    if (strategy > STRATEGY_STRICT_SPREAD)
        fail_msg("no such strategy: %s", name);
    g->gang.strategy = (enum strategy)strategy;
    for (char *word; (word = next_word(&words));) {
        int64_t number = 0;
        char *value = cut(word, '=');
        if (str_eq(word, "key"))
            g->gang.topology_key = value;
        else if (str_eq(word, "uid"))
            g->gang.uid = value;
        else if (str_eq(word, "patient"))
            g->patient = true;
        else if (str_eq(word, "priority") && str_to_i64(value, &number))
            g->priority = (int32_t)number;
        else
            fail_msg("not a word of a gang: %s", word);
    }
    return g;
}

static void read_line(struct world *w, char *line)
{
    struct world_gang *g = w->n_gangs ? w->gangs[w->n_gangs - 1] : NULL;
    const char *whole = arena_strdup(&w->arena, line);
    const char *kind = next_word(&line);
    if (!kind || *kind == '#')
        return;
    if (str_eq(kind, "node")) {
        const char *name = next_word(&line);
        add_node(w, name, line ? line : (char[]){""});
    } else if (str_eq(kind, "pod")) {
        const char *name = next_word(&line);
        add_pod(w, name, line);
    } else if (str_eq(kind, "gang")) {
        add_gang(w, whole, line);
    } else if (str_eq(kind, "bundles")) {
        add_bundles(w, g, line);
    } else if (str_eq(kind, "avoid") && g) {
        for (char *word; (word = next_word(&line));)
            g->avoid[g->gang.n_avoid++] = word;
    } else if (str_eq(kind, "held") && g) {
        for (char *word; (word = next_word(&line));)
            g->held[g->gang.n_held++] = word;
    } else {
        fail_msg("cannot read: %s", whole);
    }
}

struct world *world_new(const char *text)
{
    struct world *w = xcalloc(1, sizeof *w);
    w->cluster = cluster_new();
    char *rest = arena_strdup(&w->arena, text);
    for (char *line; (line = strsep(&rest, "\n"));)
        read_line(w, line);
    return w;
}

void world_free(struct world *w)
{
    cluster_free(w->cluster);
    arena_done(&w->arena);
    free(w);
}

// The bundles on that node as "0-1,3".
static const char *indexes_on(const struct placement *p, size_t n, const char *node, struct arena *a)
{
    const char *text = "";
    for (size_t i = 0, end; i < n; i = end) {
        end = i + 1;
        if (!str_eq(p->nodes[i], node))
            continue;
        while (end < n && str_eq(p->nodes[end], node))
            end++;
        text = arena_printf(a, "%s%s%zu", text, *text ? "," : "", i);
        if (end > i + 1)
            text = arena_printf(a, "%s-%zu", text, end - 1);
    }
    return text;
}

void world_place(struct world *w, const struct world_gang *wg, struct placement *ret)
{
    const struct gang *g = &wg->gang;
    for (size_t i = 0; i < g->n_bundles; i++)
        if (g->bundles[i].fixed_node)
            cluster_assume(w->cluster, "ml", arena_printf(&w->arena, "fixed-%zu", i), g->bundles[i].fixed_node,
                           &g->bundles[i].constraints->requests);
    planner_place(w->cluster, g, &w->arena, ret);
    for (size_t i = 0; i < g->n_bundles; i++)
        cluster_unassume(w->cluster, "ml", arena_printf(&w->arena, "fixed-%zu", i));
}

const char *world_answer(struct world *w, const struct world_gang *wg)
{
    const struct gang *g = &wg->gang;
    struct arena *a = &w->arena;
    struct placement p;
    world_place(w, wg, &p);
    if (p.verdict != VERDICT_PLACED)
        return arena_printf(a, "%s: %s\n%s%s", p.verdict == VERDICT_INFEASIBLE ? "Infeasible" : "Insufficient",
                            p.message, p.details ? p.details : "", p.details ? "\n" : "");
    const char *text = p.n_victims ? arena_printf(a, "Placed, evicts %zu\n", p.n_victims) : "Placed\n";
    for (size_t i = 0; i < g->n_bundles; i++) {
        size_t first = 0;
        while (!str_eq(p.nodes[first], p.nodes[i]))
            first++;
        if (first == i)
            text = arena_printf(a, "%s%s: %s\n", text, p.nodes[i], indexes_on(&p, g->n_bundles, p.nodes[i], a));
    }
    return text;
}

const char *world_answers(struct world *w)
{
    const char *text = "";
    for (size_t i = 0; i < w->n_gangs; i++)
        text =
            arena_printf(&w->arena, "%s%s%s\n%s", text, i ? "\n" : "", w->gangs[i]->line, world_answer(w, w->gangs[i]));
    return text;
}
