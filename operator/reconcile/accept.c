// SPDX-License-Identifier: Apache-2.0
#include "operator/reconcile/accept.h"

#include "common/base/mem.h"
#include "operator/api/bundle.h"
#include "operator/api/podtemplate.h"
#include "operator/reconcile/names.h"
#include "operator/reconcile/reason.h"

// A field that the API defines but this version does not implement is refused, never ignored.
static const char *unsupported(const struct workergroup_spec *s)
{
    if (s->runtime == RUNTIME_PLAIN && s->has_worker)
        return "spec.worker is for the runtime Agent: give the container a command, or set spec.runtime to Agent";
    if (s->gang.pod_per == POD_PER_NODE)
        return "spec.placement.podPer Node is not supported for a WorkerGroup by this version: leave it out";
    if (s->runtime == RUNTIME_PLAIN && s->restart_policy == RESTART_WORKER)
        return "spec.restartPolicy Worker is for the runtime Agent: use Group or Never";
    return NULL;
}

static bool refuse(struct refusal *ret, const char *reason, const char *message)
{
    *ret = (struct refusal){reason, message};
    return false;
}

static bool refuse_env(struct refusal *ret, const char *where, const char *name, struct arena *a)
{
    return refuse(
        ret, REASON_RESERVED_ENV,
        arena_printf(a, "%s sets %s, which Cadre sets: remove it from env, and use Cadre's value", where, name));
}

static bool judge_meshes(const struct workergroup *wg, struct arena *a, struct refusal *ret)
{
    int64_t world = group_world_size(wg);
    for (size_t i = 0; i < wg->spec.worker.n_meshes; i++) {
        const struct mesh_spec *m = &wg->spec.worker.meshes[i];
        int64_t product = 1;
        const char *text = "";
        for (size_t k = 0; k < m->n_dims; k++) {
            product =
                MIN(product * m->dims[k].size, INT64_C(1) << 40); // large enough to be wrong, and it cannot overflow
            text = arena_printf(a, "%s%s%s %d", text, k ? " x " : "", m->dims[k].name, m->dims[k].size);
        }
        if (product != world)
            return refuse(ret, REASON_MESH_MISMATCH,
                          arena_printf(a,
                                       "spec.worker.meshes: the sizes of mesh %s (%s) do not multiply to the world "
                                       "size of %d (%d replicas of %d workers)",
                                       m->name, text, (int)world, wg->spec.replicas, wg->spec.workers_per_replica));
    }
    return true;
}

static bool judge_taken(const struct template_facts *facts, struct arena *a, struct refusal *ret)
{
    return !facts->taken ||
           refuse(ret, REASON_INVALID_TEMPLATE,
                  arena_printf(a, "%s belongs to cadre-agent, which runs in the pod: use another name", facts->taken));
}

// Finds mistakes about GPUs before the start. Otherwise every process would report the mistake and end, until the
// restarts are used up.
static bool judge_gpus(const struct workergroup *wg, const struct template_facts *facts, struct arena *a,
                       struct refusal *ret)
{
    int32_t wanted = wg->spec.worker.gpus;
    return !facts->gpus || wanted <= facts->gpus ||
           refuse(ret, REASON_INVALID_TEMPLATE,
                  arena_printf(a,
                               "spec.worker.gpus is %d, but a pod of spec.template requests %lld nvidia.com/gpu: lower "
                               "gpus, or raise the limits of the container",
                               wanted, (long long)facts->gpus));
}

static bool judge_agent(const struct workergroup *wg, const struct template_facts *facts, struct arena *a,
                        struct refusal *ret)
{
    const struct worker_spec *s = &wg->spec.worker;
    for (size_t i = 0; i < s->n_env; i++)
        if (template_reserves(reserved_env, s->env[i].name))
            return refuse_env(ret, "spec.worker.env", s->env[i].name, a);
    if (!s->module && !s->python && !s->n_command && !facts->has_command)
        return refuse(
            ret, REASON_COMMAND_REQUIRED,
            "nothing says what to run: set module, python or command in spec.worker, or command in the first container "
            "of spec.template (the operator does not know the command of the image, and args alone are not enough)");
    return judge_taken(facts, a, ret) && judge_gpus(wg, facts, a, ret) && judge_meshes(wg, a, ret);
}

static bool judge_template(const char *template_json, struct arena *scratch, struct arena *a, struct refusal *ret,
                           struct template_facts *facts)
{
    struct err err = ERR_INIT;
    if (template_inspect(template_json, reserved_env, scratch, facts, &err) < 0)
        return refuse(ret, REASON_INVALID_TEMPLATE, arena_strdup(a, err.msg));
    if (facts->reserved_env)
        return refuse_env(ret, arena_printf(scratch, "container %s", facts->reserved_env_container),
                          facts->reserved_env, a);
    if (facts->owned)
        return refuse(ret, REASON_INVALID_TEMPLATE, arena_printf(a, "%s is set: %s", facts->owned, facts->owned_why));
    return true;
}

// On bundles, the pods exist before the group, so their text cannot contain anything of the group.
static bool judge_bundled(const struct workergroup *wg, struct arena *a, struct refusal *ret)
{
    const struct worker_spec *s = &wg->spec.worker;
    if (wg->spec.template_json)
        return refuse(ret, REASON_INVALID_TEMPLATE, "spec.template and spec.placement.groups exclude each other");
    for (size_t i = 0; i < s->n_env; i++)
        if (s->env[i].value_from)
            return refuse(ret, REASON_NOT_SUPPORTED,
                          arena_printf(a,
                                       "spec.worker.env: %s has a valueFrom, which only a container can have: put it "
                                       "into the template of the PlacementGroup; workers inherit its environment",
                                       s->env[i].name));
    return true;
}

bool group_accept(const struct workergroup *wg, struct arena *a, struct refusal *ret, struct template_facts *ret_facts)
{
    const char *what = unsupported(&wg->spec);
    if (what)
        return refuse(ret, REASON_NOT_SUPPORTED, what);
    if (wg->spec.n_placement_groups) {
        *ret_facts = (struct template_facts){0};
        return judge_bundled(wg, a, ret) && judge_agent(wg, ret_facts, a, ret);
    }
    if (!wg->spec.template_json)
        return refuse(ret, REASON_INVALID_TEMPLATE, "spec.template is missing");
    struct arena scratch = ARENA_INIT;
    struct template_facts facts;
    bool ok = judge_template(wg->spec.template_json, &scratch, a, ret, &facts) &&
              (wg->spec.runtime != RUNTIME_AGENT || judge_agent(wg, &facts, a, ret));
    arena_done(&scratch);
    *ret_facts =
        (struct template_facts){.hash = facts.hash, .has_command = facts.has_command, .grace_s = facts.grace_s};
    return ok;
}

bool group_accept_local(const struct workergroup *wg, struct arena *a, struct refusal *ret)
{
    struct arena scratch = ARENA_INIT;
    struct template_facts facts = {0};
    bool ok = (!wg->spec.template_json || judge_template(wg->spec.template_json, &scratch, a, ret, &facts)) &&
              judge_agent(wg, &facts, a, ret);
    arena_done(&scratch);
    return ok;
}

bool placementgroup_accept(const struct placementgroup *plg, struct arena *a, struct refusal *ret,
                           struct template_facts *ret_facts)
{
    struct arena scratch = ARENA_INIT;
    struct template_facts facts = {0};
    struct err err = ERR_INIT;
    const char *json;
    bool ok = bundle_template(plg->spec.template_json, &scratch, &json, &err) == 0
                  ? judge_template(json, &scratch, a, ret, &facts) && judge_taken(&facts, a, ret)
                  : refuse(ret, REASON_INVALID_TEMPLATE, arena_strdup(a, err.msg));
    arena_done(&scratch);
    *ret_facts = (struct template_facts){.hash = facts.hash};
    return ok;
}
