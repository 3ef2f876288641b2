// SPDX-License-Identifier: Apache-2.0
#include "operator/reconcile/gang_pods.h"

#include "common/base/map.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/reconcile/gang_manifest.h"
#include "operator/reconcile/ranges.h"
#include "operator/reconcile/reason.h"
#include "operator/reconcile/wait.h"

#include <string.h>

enum { TEXT_ENOUGH = 1000, STATUS_LOST_MS = 60 * 1000 };

const char *pod_place(const struct pod *p)
{
    return p->node ? p->node : p->pin;
}

bool pod_node_gone(const struct cluster *cluster, const struct pod *p, int32_t node_lost_s, int64_t now_ms,
                   int64_t *ret_ms)
{
    if (!p->node)
        return false;
    const struct node *n = cluster_node(cluster, p->node);
    if (!n)
        return true;
    if (n->ready)
        return false;
    int64_t limit = (int64_t)node_lost_s * 1000;
    int64_t left = cluster_silent_ms(cluster, p->node) + limit - now_ms;
    if (left > 0 && ret_ms)
        *ret_ms = MIN(left, limit); // if the clock was put back, the wait must not become longer
    return left <= 0;
}

static const char *stuck_reason(const char *waiting)
{
    static const struct {
        const char *waiting, *reason;
    } table[] = {
        {"ErrImagePull", REASON_IMAGE},
        {"ImagePullBackOff", REASON_IMAGE},
        {"InvalidImageName", REASON_IMAGE},
        {"ErrImageNeverPull", REASON_IMAGE},
        {"ImageInspectError", REASON_IMAGE},
        {"CreateContainerConfigError", REASON_CONTAINER_CONFIG},
        {"CreateContainerError", REASON_CONTAINER_CONFIG},
        {"RunContainerError", REASON_CONTAINER_CONFIG},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        if (str_eq(waiting, table[i].waiting))
            return table[i].reason;
    return NULL;
}

// The first container of the pod that waits for something that will not come by itself, and the reason (reason.h) for
// that; NULL if there is none.
static const struct container_status *find_stuck(const struct pod *p, const char **ret_reason)
{
    for (size_t i = 0; i < p->n_containers; i++) {
        const struct container_status *s = &p->containers[i];
        const char *reason = s->waiting ? stuck_reason(s->reason) : NULL;
        if (reason) {
            *ret_reason = reason;
            return s;
        }
    }
    return NULL;
}

void gang_pods_look_again(struct gang_pods *pods, int64_t ms)
{
    pods->look_again_ms = pods->look_again_ms < 0 ? ms : MIN(pods->look_again_ms, ms);
}

static bool is_ready(struct gang_pods *pods, const struct gang_view *v, const struct pod *p)
{
    int64_t left = 0;
    if (!p->ready || p->phase != POD_RUNNING)
        return false;
    bool silent = p->node && cluster_silent(v->cluster, p->node, v->now_ms, &left);
    if (left > 0)
        gang_pods_look_again(pods, left);
    return !silent;
}

void gang_pods_look_ahead(struct gang_pods *pods, const struct gang_view *v)
{
    int32_t attempt = pods->attempt, incarnation = pods->incarnation;
    int64_t newest_ms = 0;
    bool found = false;
    for (size_t i = 0; i < v->n_pods; i++) {
        int32_t its_attempt = pod_label_number(v->pods[i], LABEL_ATTEMPT);
        int32_t its_incarnation = pod_label_number(v->pods[i], LABEL_INCARNATION);
        if (its_attempt <= pods->attempt && its_incarnation <= pods->incarnation)
            continue;
        found = true;
        attempt = MAX(attempt, its_attempt);
        incarnation = MAX(incarnation, its_incarnation);
        newest_ms = MAX(newest_ms, v->pods[i]->obj.meta.created_ms);
    }
    // If the API server's clock is ahead, its pods would stay young for too long.
    int64_t left = wait_of(v->memory, WAIT_STATUS, newest_ms, newest_ms, STATUS_LOST_MS, v->now_ms, &pods->status);
    pods->from_the_future = found && v->now_ms - newest_ms < STATUS_LOST_MS && left > 0;
    if (pods->from_the_future)
        return;
    pods->attempt = attempt;
    pods->incarnation = incarnation;
}

void gang_pods_count(struct gang_pods *pods, const struct gang_view *v, const struct pod *p)
{
    pods->existing++;
    pods->bound += p->node != NULL;
    pods->ready += is_ready(pods, v, p);
    pods->newest_ms = MAX(pods->newest_ms, p->obj.meta.created_ms);
    if (!p->node && p->unschedulable && !pods->unschedulable)
        pods->unschedulable = p;
    const struct container_status *s = pods->stuck ? NULL : find_stuck(p, &pods->stuck_reason);
    if (!s)
        return;
    pods->stuck = p;
    pods->stuck_container = s;
}

size_t gang_pods_placements(const struct pod *const *of, int32_t n, struct arena *a, struct node_ranges **ret)
{
    struct map by_node = MAP_INIT;
    struct ranges *ranges = arena_array(a, (size_t)n, sizeof *ranges);
    size_t nodes = 0;
    *ret = arena_array(a, (size_t)n, sizeof **ret);
    for (int32_t i = 0; i < n; i++) {
        const char *node = of[i] ? pod_place(of[i]) : NULL;
        struct ranges *r = node ? map_get(&by_node, node) : NULL;
        if (!node)
            continue;
        if (!r) {
            (*ret)[nodes].node = node;
            r = &ranges[nodes++];
            *r = RANGES_INIT;
            map_set(&by_node, node, r);
        }
        ranges_add(r, i);
    }
    for (size_t i = 0; i < nodes; i++)
        (*ret)[i].ranges = ranges_take(&ranges[i], a);
    map_done(&by_node);
    return nodes;
}

const char *gang_pods_placements_text(const char *word, const struct node_ranges *items, size_t n, struct arena *a)
{
    const char *text = "";
    for (size_t i = 0; i < n && strlen(text) < TEXT_ENOUGH; i++)
        text = arena_printf(a, "%s%s%s%s on %s", text, i ? ", " : word, i ? "" : " ", items[i].ranges, items[i].node);
    return text;
}
