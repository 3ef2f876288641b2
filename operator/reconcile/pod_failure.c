// SPDX-License-Identifier: Apache-2.0
#include "operator/reconcile/pod_failure.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/reconcile/reason.h"

enum { EXIT_SIGKILL = 137, EXIT_SIGTERM = 143 };

// The container that made the pod fail: the first one that ended with an exit code other than 0.
static const struct container_status *culprit(const struct pod *p)
{
    const struct container_status *first = NULL;
    for (size_t i = 0; i < p->n_containers; i++) {
        const struct container_status *s = &p->containers[i];
        if (s->terminated && s->exit_code != 0 && (!first || s->finished_ms < first->finished_ms))
            first = s;
    }
    return first;
}

static bool has_sidecars(const struct pod *p)
{
    int n = 0;
    for (size_t i = 0; i < p->n_containers; i++)
        n += !p->containers[i].init;
    return n > 1;
}

static bool was_killed(const struct container_status *s)
{
    return s->terminated && !s->init && (s->exit_code == EXIT_SIGTERM || s->exit_code == EXIT_SIGKILL) &&
           str_eq(s->reason, FAILURE_ERROR);
}

int64_t pod_failure_killed_ms(const struct pod *p)
{
    int64_t first_ms = 0;
    for (size_t i = 0; has_sidecars(p) && i < p->n_containers; i++)
        if (was_killed(&p->containers[i]) && (!first_ms || p->containers[i].finished_ms < first_ms))
            first_ms = p->containers[i].finished_ms;
    return first_ms;
}

bool pod_failure_of_sidecar(const struct pod *p, int64_t killed_left_ms, int64_t *ret_ms)
{
    for (size_t i = 0; has_sidecars(p) && i < p->n_containers; i++) {
        const struct container_status *s = &p->containers[i];
        if (s->init || !s->terminated || !s->exit_code)
            continue;
        if (!was_killed(s) || killed_left_ms <= 0)
            return true;
        *ret_ms = killed_left_ms;
    }
    return false;
}

int64_t pod_failure_ms(const struct pod *p, int64_t now_ms)
{
    const struct container_status *s = culprit(p);
    return s && s->finished_ms ? MIN(s->finished_ms, now_ms) : now_ms;
}

struct group_failure pod_failure_describe(const struct pod *p, bool lost, bool deleted, int64_t now_ms, struct arena *a)
{
    const struct container_status *s = culprit(p);
    struct group_failure f = {
        .pod = p->obj.meta.name,
        .node = p->node,
        .exit_code = s ? s->exit_code : -1,
        .time_ms = pod_failure_ms(p, now_ms),
        .reason = s && s->reason ? s->reason
                  : p->reason    ? p->reason
                                 : FAILURE_ERROR,
        .message = s && s->message ? s->message : p->message,
    };
    if (s && has_sidecars(p))
        f.message = arena_printf(a, "container %s%s%s", s->name, f.message ? ": " : "", f.message ? f.message : "");
    if (p->disruption) {
        f.reason = p->disruption;
        f.message = p->message;
    } else if (lost) {
        f.reason = FAILURE_NODE_LOST;
        f.message = "the node has been silent for longer than placement.nodeLostSeconds, or is gone";
    } else if (deleted) {
        f.reason = FAILURE_POD_DELETED;
        f.message = "somebody else deleted the pod";
    }
    return f;
}
