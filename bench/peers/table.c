// SPDX-License-Identifier: Apache-2.0
#include "bench/peers/table.h"

#include "common/base/mem.h"

#include <stdio.h>

struct row {
    const char *what, *unit;
    double scale; // of a value, to the unit
    int digits;
};

static void cell(const struct row *r, const struct samples *values, const struct samples *floor)
{
    struct samples ratios = {0};
    if (floor)
        samples_ratios(values, floor, &ratios);
    if (!values->n)
        printf(" |");
    else if (ratios.n)
        printf(" %.*f%s (%.2fx) |", r->digits, samples_median(values) * r->scale, r->unit, samples_median(&ratios));
    else
        printf(" %.*f%s |", r->digits, samples_median(values) * r->scale, r->unit);
}

static void append(struct samples *to, const struct samples *from)
{
    for (size_t i = 0; i < from->n; i++)
        samples_add(to, from->values[i]);
}

typedef void (*pick_fn)(const struct world *w, const struct measures *m, size_t which, struct samples *ret);

// The floor's column: all of its trials, whosever turn they were in.
static void print_row(const struct row *r, const struct world *w, const struct plan *plan, const struct trials *trials,
                      size_t n, pick_fn pick, size_t which)
{
    struct samples all = {0}, own, floor;
    for (size_t i = 0; i < n; i++) {
        pick(w, &trials[i].floor, which, &floor);
        append(&all, &floor);
    }
    printf("| %d | %s |", plan->groups, r->what);
    cell(r, &all, NULL);
    for (size_t i = 0; i < n; i++) {
        pick(w, &trials[i].own, which, &own);
        pick(w, &trials[i].floor, which, &floor);
        cell(r, &own, &floor);
    }
    printf("\n");
}

enum times { SINGLE, MANY, DELETED, REQUESTS, WEBHOOKS };

static void pick_times(const struct world *w, const struct measures *m, size_t which, struct samples *ret)
{
    (void)w;
    const struct samples *const all[] = {[SINGLE] = &m->single,
                                         [MANY] = &m->many,
                                         [DELETED] = &m->deleted,
                                         [REQUESTS] = &m->requests,
                                         [WEBHOOKS] = &m->webhooks};
    *ret = *all[which];
}

static void pick_cpu(const struct world *w, const struct measures *m, size_t which, struct samples *ret)
{
    (void)w;
    *ret = m->cpu[which];
}

static void pick_total_cpu(const struct world *w, const struct measures *m, size_t which, struct samples *ret)
{
    (void)which;
    measures_total_cpu(w, m, ret);
}

static void print_cpu(const struct world *w, const struct plan *plan, const struct trials *trials, size_t n)
{
    char name[32], what[64];
    print_row(&(struct row){"CPU of all components", " s", 1, 1}, w, plan, trials, n, pick_total_cpu, 0);
    for (size_t i = 0; i + 1 < w->n_components; i++) {
        snprintf(what, sizeof what, "... %s", proc_name(w->components[i], name, sizeof name));
        print_row(&(struct row){what, " s", 1, 1}, w, plan, trials, n, pick_cpu, i);
    }
}

static void print_head(const struct trials *trials, size_t n)
{
    printf("| groups | | %s |", system_pinned.title);
    for (size_t i = 0; i < n; i++)
        printf(" %s |", trials[i].system->title);
    printf("\n|---:|---|---:|");
    for (size_t i = 0; i < n; i++)
        printf("---:|");
    printf("\n");
}

static void print_manager_row(const char *what, const char *unit, int digits, const struct plan *plan,
                              const struct trials *trials, size_t n, double (*value)(const struct trials *t))
{
    printf("| %d | %s | |", plan->groups, what);
    for (size_t i = 0; i < n; i++)
        if (trials[i].program)
            printf(" %.*f%s |", digits, value(&trials[i]), unit);
        else
            printf(" |");
    printf("\n");
}

static double restart_ms(const struct trials *t)
{
    return samples_median(&t->restart);
}

static double idle_mib(const struct trials *t)
{
    return t->idle.rss;
}

static double peak_mib(const struct trials *t)
{
    return t->peak.rss;
}

void table_print(const struct world *w, const struct plan *plan, const struct trials *trials, size_t n)
{
    size_t manager = w->n_components - 1;
    print_head(trials, n);
    print_row(&(struct row){"1 group alone, all Running", " ms", 1, 0}, w, plan, trials, n, pick_times, SINGLE);
    print_row(&(struct row){"all groups at once, all Running", " s", 1e-3, 1}, w, plan, trials, n, pick_times, MANY);
    print_cpu(w, plan, trials, n);
    print_row(&(struct row){"... the manager", " s", 1, 2}, w, plan, trials, n, pick_cpu, manager);
    print_row(&(struct row){"API requests a group", "", 1, 0}, w, plan, trials, n, pick_times, REQUESTS);
    print_row(&(struct row){"webhook calls a group", "", 1, 0}, w, plan, trials, n, pick_times, WEBHOOKS);
    if (plan->restarts)
        print_manager_row("restart of one among them", " ms", 0, plan, trials, n, restart_ms);
    print_row(&(struct row){"all groups deleted, all pods gone", " s", 1e-3, 1}, w, plan, trials, n, pick_times,
              DELETED);
    print_manager_row("memory of the manager, idle (RSS)", " MiB", 0, plan, trials, n, idle_mib);
    print_manager_row("memory of the manager, peak (RSS)", " MiB", 0, plan, trials, n, peak_mib);
}
