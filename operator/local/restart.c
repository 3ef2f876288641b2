// SPDX-License-Identifier: Apache-2.0
#include "operator/local/restart.h"

#include "operator/reconcile/wait.h"

static const struct failure_rule *rule_of(const struct workergroup_spec *s, int exit_code)
{
    for (size_t i = 0; i < s->n_failure_rules; i++)
        for (size_t k = 0; k < s->failure_rules[i].n_exit_codes; k++)
            if (s->failure_rules[i].exit_codes[k] == exit_code)
                return &s->failure_rules[i];
    return NULL;
}

int64_t restart_after(struct restarts *r, const struct workergroup_spec *s, int exit_code, const char **ret_why)
{
    const struct failure_rule *rule = rule_of(s, exit_code);
    bool counts = !rule || rule->action != FAILURE_IGNORE;
    *ret_why = NULL;
    if (exit_code == 0)
        return -1;
    if (rule && rule->action == FAILURE_FAIL)
        *ret_why = "failurePolicy says Fail";
    else if (s->restart_policy == RESTART_NEVER && !rule)
        *ret_why = "restartPolicy is Never";
    else if (counts && r->counted >= s->max_restarts)
        *ret_why = s->max_restarts ? "maxRestarts is used up" : "maxRestarts is 0";
    if (*ret_why)
        return -1;
    r->counted += counts;
    return wait_backoff_ms((int64_t)s->backoff_initial_s * 1000, (int64_t)s->backoff_max_s * 1000, ++r->tries, r->seed);
}
