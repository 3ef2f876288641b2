// SPDX-License-Identifier: Apache-2.0
#include "operator/reconcile/accept.h"

#include "common/base/mem.h"
#include "operator/api/object_decode.h"
#include "operator/reconcile/reason.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#define TEMPLATE "\"template\":{\"spec\":{\"containers\":[{\"name\":\"worker\",\"image\":\"a\"}]}}"
#define PLAIN "\"runtime\":\"Plain\","
#define WORKER(text) "\"worker\":{" text "},"
#define MODULE "\"module\":\"/m.so\""
#define MESH "\"meshes\":[{\"name\":\"train\",\"dims\":[{\"name\":\"pp\",\"size\":2},{\"name\":\"dp\",\"size\":2}]}]"
#define AGENT_POD(text) "\"template\":{\"spec\":{" text "}}"
#define ARGS_ONLY AGENT_POD("\"containers\":[{\"name\":\"worker\",\"args\":[\"/train\"]}]")
#define POD(text) PLAIN "\"template\":{\"spec\":{" text "}}"

#define GPUS(of, n) "{\"name\":\"g\",\"resources\":{" of ":{\"nvidia.com/gpu\":" n "}}}"
#define GPU_POD(of, n) AGENT_POD("\"containers\":[{\"name\":\"a\"}," GPUS(of, n) "]")

static bool accepts(const char *spec, struct arena *a, struct refusal *ret, uint64_t *ret_hash)
{
    const struct object *o;
    struct err err = ERR_INIT;
    const char *json = arena_printf(a, "{\"metadata\":{\"name\":\"g\"},\"spec\":{%s}}", spec);
    if (object_decode(KIND_WORKERGROUP, json, strlen(json), &o, &err) < 0)
        fail_msg("%s", err.msg);
    *ret = (struct refusal){0};
    struct template_facts facts;
    bool ok = group_accept(workergroup_of(o), a, ret, &facts);
    *ret_hash = ok ? facts.hash : 0;
    object_unref(o);
    return ok;
}

static void a_plain_template_is_accepted(void **state)
{
    struct arena a = ARENA_INIT;
    struct refusal r;
    uint64_t hash = 0, other = 0;
    (void)state;
    assert_true(accepts(PLAIN TEMPLATE, &a, &r, &hash));
    // FNV-1a of {"spec":{"containers":[{"image":"a","name":"worker"}]}}. If a new version computed another hash, its
    // upgrade would restart every group.
    assert_true(hash == 0x62a03d7c94fa32e7u);
    assert_true(accepts(POD("\"restartPolicy\":\"Never\",\"containers\":[{\"name\":\"worker\",\"env\":[{\"name\":"
                            "\"NCCL_DEBUG\",\"value\":\"INFO\"}]}]"),
                        &a, &r, &other));
    assert_true(hash != other);
    assert_true(accepts("\"template\":{\"spec\":{\"containers\":[{\"image\":\"a\",\"name\":\"worker\"}]}}," PLAIN
                        "\"maxRestarts\":9",
                        &a, &r, &other));
    assert_true(hash == other); // the order of members and everything outside the template do not count
    arena_done(&a);
}

static void an_agent_needs_something_to_run(void **state)
{
    static const char *const specs[] = {
        WORKER(MODULE) TEMPLATE,
        WORKER("\"command\":[\"/train\"]") TEMPLATE,
        AGENT_POD("\"containers\":[{\"name\":\"worker\",\"command\":[\"/train\"]}]"),
        "\"replicas\":2,\"workersPerReplica\":2," WORKER(MODULE "," MESH) TEMPLATE,
        "\"restartPolicy\":\"Worker\"," WORKER(MODULE) TEMPLATE,
        WORKER(MODULE) AGENT_POD("\"containers\":[{\"name\":\"a\",\"volumeMounts\":[{\"mountPath\":\"/cadre2\"}]}]"),
        WORKER(MODULE ",\"gpus\":4") TEMPLATE, // GPUs of a device that is not known here
        WORKER(MODULE ",\"gpus\":2") GPU_POD("\"limits\"", "2"),
        WORKER(MODULE ",\"gpus\":1")
            AGENT_POD("\"containers\":[{\"name\":\"a\"}],\"initContainers\":[" GPUS("\"limits\"", "1") "]"),
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(specs); i++) {
        struct arena a = ARENA_INIT;
        struct refusal r;
        uint64_t hash;
        if (!accepts(specs[i], &a, &r, &hash))
            fail_msg("%s: %s", specs[i], r.message);
        arena_done(&a);
    }
}

static void what_is_refused_is_named(void **state)
{
    static const struct {
        const char *spec, *reason, *says;
    } cases[] = {
        {TEMPLATE, REASON_COMMAND_REQUIRED, "set module, python or command in spec.worker"},
        {ARGS_ONLY, REASON_COMMAND_REQUIRED, "args alone are not enough"},
        {WORKER("") "\"workersPerReplica\":2," TEMPLATE, REASON_COMMAND_REQUIRED, "nothing says what to run"},
        {"\"replicas\":3," WORKER(MODULE "," MESH) TEMPLATE, REASON_MESH_MISMATCH,
         "mesh train (pp 2 x dp 2) do not multiply to the world size of 3 (3 replicas of 1 workers)"},
        {WORKER(MODULE ",\"env\":[{\"name\":\"RANK\",\"value\":\"1\"}]") TEMPLATE, REASON_RESERVED_ENV,
         "spec.worker.env sets RANK"},
        {WORKER(MODULE) AGENT_POD("\"volumes\":[{\"name\":\"a\"},{\"name\":\"cadre-token\"}],"
                                  "\"containers\":[{\"name\":\"a\"}]"),
         REASON_INVALID_TEMPLATE, "spec.template.spec.volumes[1].name belongs to cadre-agent"},
        {WORKER(MODULE) AGENT_POD("\"containers\":[{\"name\":\"a\"},{\"name\":\"cadre-agent\"}]"),
         REASON_INVALID_TEMPLATE, "spec.template.spec.containers[1].name belongs to cadre-agent"},
        {WORKER(MODULE) AGENT_POD("\"containers\":[{\"name\":\"a\",\"volumeMounts\":[{\"mountPath\":\"/cadre/\"}]}]"),
         REASON_INVALID_TEMPLATE, "containers[0].volumeMounts[0].mountPath belongs to"},
        {WORKER(MODULE ",\"gpus\":4") GPU_POD("\"limits\"", "2"), REASON_INVALID_TEMPLATE,
         "spec.worker.gpus is 4, but a pod of spec.template requests 2 nvidia.com/gpu: lower gpus, or raise the "
         "limits"},
        {WORKER(MODULE ",\"gpus\":2") GPU_POD("\"requests\"", "\"1\""), REASON_INVALID_TEMPLATE,
         "requests 1 nvidia.com/gpu"},
        {PLAIN "\"worker\":{}," TEMPLATE, REASON_NOT_SUPPORTED, "spec.worker"},
        {PLAIN "\"placement\":{\"groups\":[{\"name\":\"pool\"}]}", REASON_COMMAND_REQUIRED, "nothing says what to run"},
        {"\"placement\":{\"groups\":[{\"name\":\"pool\"}]}," TEMPLATE, REASON_INVALID_TEMPLATE, "exclude each other"},
        {PLAIN "\"placement\":{\"podPer\":\"Node\"}," TEMPLATE, REASON_NOT_SUPPORTED, "spec.placement.podPer"},
        {PLAIN "\"restartPolicy\":\"Worker\"," TEMPLATE, REASON_NOT_SUPPORTED, "spec.restartPolicy"},
        {PLAIN "\"replicas\":1", REASON_INVALID_TEMPLATE, "spec.template is missing"},
        {POD("\"containers\":[]"), REASON_INVALID_TEMPLATE, "spec.template.spec.containers"},
        {POD("\"containers\":[{\"name\":\"a\",\"env\":{}}]"), REASON_INVALID_TEMPLATE,
         "spec.template.spec.containers[0].env"},
        {POD("\"restartPolicy\":\"Always\",\"containers\":[{\"name\":\"a\"}]"), REASON_INVALID_TEMPLATE,
         "spec.template.spec.restartPolicy is set"},
        {POD("\"nodeName\":\"n1\",\"containers\":[{\"name\":\"a\"}]"), REASON_INVALID_TEMPLATE,
         "spec.template.spec.nodeName is set: Cadre chooses the nodes"},
        {POD("\"containers\":[{\"name\":\"a\",\"env\":[{\"name\":\"CADRE_X\",\"value\":\"\"}]}]"), REASON_RESERVED_ENV,
         "container a sets CADRE_X"},
        {POD("\"containers\":[{\"name\":\"a\"}],\"initContainers\":[{\"name\":\"i\",\"env\":[{\"name\":\"RANK\"}]}]"),
         REASON_RESERVED_ENV, "container i sets RANK"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct arena a = ARENA_INIT;
        struct refusal r;
        uint64_t hash;
        assert_false(accepts(cases[i].spec, &a, &r, &hash));
        assert_string_equal(r.reason, cases[i].reason);
        if (!strstr(r.message, cases[i].says))
            fail_msg("\"%s\" does not say \"%s\"", r.message, cases[i].says);
        if (strstr(r.message, "spec.template: spec.template"))
            fail_msg("\"%s\" says it twice", r.message);
        arena_done(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plain_template_is_accepted),
        cmocka_unit_test(an_agent_needs_something_to_run),
        cmocka_unit_test(what_is_refused_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
