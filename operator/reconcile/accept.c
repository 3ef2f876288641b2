// SPDX-License-Identifier: Apache-2.0
#include "operator/reconcile/accept.h"

#include "common/base/str.h"
#include "operator/api/podtemplate.h"
#include "operator/reconcile/names.h"
#include "operator/reconcile/reason.h"

// A field that means something in the API but nothing to this version is refused, never ignored.
static const char *unsupported(const struct workergroup_spec *s)
{
    if (s->n_placement_groups)
        return "spec.placement.groups is not supported by this version: use spec.template";
    if (s->runtime == RUNTIME_AGENT)
        return "spec.runtime Agent (the default) is not supported by this version: set spec.runtime to Plain";
    if (s->has_worker)
        return "spec.worker is not supported by this version: give the container a command and set runtime Plain";
    if (s->pod_per == POD_PER_NODE)
        return "spec.placement.podPer Node is not supported for a WorkerGroup by this version: leave it out";
    if (s->restart_policy == RESTART_WORKER)
        return "spec.restartPolicy Worker is not supported by this version: use Group or Never";
    if (s->success_policy == SUCCESS_RANK_ZERO)
        return "spec.successPolicy RankZero is not supported by this version: use All";
    if (s->n_failure_rules)
        return "spec.failurePolicy.rules is not supported by this version: remove the rules";
    if (s->active_deadline_s >= 0)
        return "spec.activeDeadlineSeconds is not supported by this version: remove it";
    if (s->ttl_s >= 0)
        return "spec.ttlSecondsAfterFinished is not supported by this version: remove it";
    return NULL;
}

static bool refuse(struct refusal *ret, const char *reason, const char *message)
{
    *ret = (struct refusal){reason, message};
    return false;
}

static bool judge(const char *template_json, struct arena *scratch, struct arena *a, struct refusal *ret,
                  uint64_t *ret_hash)
{
    struct template_facts facts;
    struct err err = ERR_INIT;
    if (template_inspect(template_json, reserved_env, scratch, &facts, &err) < 0)
        return refuse(ret, REASON_INVALID_TEMPLATE, arena_strdup(a, err.msg));
    if (facts.reserved_env)
        return refuse(ret, REASON_RESERVED_ENV,
                      arena_printf(a,
                                   "container %s sets %s, which Cadre sets itself: remove it from env and read the "
                                   "value that is there",
                                   facts.reserved_env_container, facts.reserved_env));
    if (facts.owned)
        return refuse(ret, REASON_INVALID_TEMPLATE, arena_printf(a, "%s is set: %s", facts.owned, facts.owned_why));
    *ret_hash = facts.hash;
    return true;
}

bool group_accept(const struct workergroup *wg, struct arena *a, struct refusal *ret, uint64_t *ret_template_hash)
{
    const char *what = unsupported(&wg->spec);
    if (what)
        return refuse(ret, REASON_NOT_SUPPORTED, what);
    if (!wg->spec.template_json)
        return refuse(ret, REASON_INVALID_TEMPLATE, "spec.template is missing");
    struct arena scratch = ARENA_INIT;
    bool ok = judge(wg->spec.template_json, &scratch, a, ret, ret_template_hash);
    arena_done(&scratch);
    return ok;
}
