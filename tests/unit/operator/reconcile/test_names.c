// SPDX-License-Identifier: Apache-2.0
#include "operator/api/object_decode.h"
#include "operator/api/podtemplate.h"
#include "operator/reconcile/names.h"
#include "operator/reconcile/running_spec.h"

#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "tests/unit/support/text_ends.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

static struct workergroup example(void)
{
    return (struct workergroup){
        .obj = {.kind = KIND_WORKERGROUP, .meta = {.name = "llama", .ns = "ml", .uid = "uid-1"}},
        .spec =
            {
                .runtime = RUNTIME_PLAIN,
                .replicas = 3,
                .workers_per_replica = 8,
                .rendezvous_port = 29500,
                .gang.topology_key = "kubernetes.io/hostname",
                .template_json = "{\"metadata\":{\"labels\":{\"team\":\"a\",\"cadre.dev/index\":\"9\"}},\"spec\":{"
                                 "\"containers\":[{\"name\":\"w\",\"env\":[{\"name\":\"MINE\",\"value\":\"1\"}]}]}}",
            },
    };
}

static void names_follow_from_group_index_and_incarnation(void **state)
{
    struct arena a = ARENA_INIT;
    struct workergroup wg = example();
    (void)state;
    assert_string_equal(group_pod_name(&wg, 2, 7, &a), "llama-2-7");
    assert_string_equal(group_master_host(&wg, &a), "llama-0.llama.ml.svc");
    assert_string_equal(group_selector(&wg, &a), "cadre.dev/group=llama");
    assert_int_equal(group_world_size(&wg), 24);
    assert_string_equal(gang_manifest_owner(&wg.obj).uid, "uid-1");
    assert_string_equal(gang_manifest_owner(&wg.obj).kind, "WorkerGroup");
    arena_done(&a);
}

static void what_an_attempt_was_made_from_is_told_from_what_is_asked_for(void **state)
{
    struct arena a = ARENA_INIT;
    struct workergroup wg = example();
    struct mesh_spec_dim dims[] = {{"dp", 24}};
    struct mesh_spec mesh = {.name = "train", .dims = dims, .n_dims = 1};
    (void)state;
    wg.spec.runtime = RUNTIME_AGENT;
    wg.spec.worker.meshes = &mesh;
    wg.spec.worker.n_meshes = 1;
    assert_false(running_spec_worker_differs(&wg, &a)); // no attempt was made yet
    wg.status.revision.worker = group_hash_text(group_worker_hash(&wg), &a);
    assert_false(running_spec_worker_differs(&wg, &a));
    dims[0].size = 23;
    assert_true(running_spec_worker_differs(&wg, &a));
    arena_done(&a);
}

static const struct json *parse(const char *text, struct arena *a)
{
    struct json *root;
    struct err err = ERR_INIT;
    if (json_parse(text, strlen(text), NULL, a, &root, &err) < 0)
        fail_msg("%s", err.msg);
    return root;
}

static const struct json *rendered(const struct workergroup *wg, const struct gang_pod *p, struct arena *a)
{
    const char *body;
    struct err err = ERR_INIT;
    if (group_pod_render(wg, p, a, &body, &err) < 0)
        fail_msg("%s", err.msg);
    return parse(body, a);
}

static const char *member(const struct json *in, const char *name, struct arena *a)
{
    const char *s = json_str(json_get(in, name), a);
    return s ? s : "(none)";
}

static const struct json *env_of(const struct json *pod)
{
    return json_get(json_get(json_get(pod, "spec"), "containers")->child, "env");
}

static void a_pod_is_given_its_place_in_the_group(void **state)
{
    static const struct {
        const char *name, *value;
    } want[] = {
        {"MASTER_ADDR", "llama-0.llama.ml.svc"},
        {"MASTER_PORT", "29500"},
        {"WORLD_SIZE", "24"},
        {"RANK", "16"}, // the first global rank of the pod
        {"LOCAL_RANK", "0"},
        {"LOCAL_WORLD_SIZE", "8"},
        {"NODE_RANK", "2"},
        {"GROUP_RANK", "2"},
        {"NNODES", "3"},
        {"GROUP_NAME", "llama"},
        {"PET_MASTER_ADDR", "llama-0.llama.ml.svc"},
        {"PET_MASTER_PORT", "29500"},
        {"PET_NNODES", "3"},
        {"PET_NODE_RANK", "2"},
        {"PET_NPROC_PER_NODE", "8"},
        {"CADRE_GROUP_UID", "uid-1"},
        {"CADRE_NAMESPACE", "ml"},
        {"CADRE_INDEX", "2"},
        {"CADRE_ATTEMPT", "4"},
        {"CADRE_DEVICE", "0"},
        {"MINE", "1"}, // the user's variables come last, so that they can refer to ours
    };
    struct arena a = ARENA_INIT;
    struct workergroup wg = example();
    (void)state;
    const struct json *env = env_of(rendered(
        &wg, &(struct gang_pod){.index = 2, .attempt = 4, .incarnation = 6, .name = "llama-2-6", .pin = "n1"}, &a));
    assert_int_equal(json_count(env), ARRAY_LEN(want));
    size_t i = 0;
    JSON_FOREACH(item, env) {
        assert_string_equal(member(item, "name", &a), want[i].name);
        assert_string_equal(member(item, "value", &a), want[i].value);
        i++;
    }
    arena_done(&a);
}

static bool is_reserved(const char *name)
{
    for (const char *const *r = reserved_env; *r; r++)
        if (str_eq(name, *r) || (text_ends(*r, "*") && strncmp(name, *r, strlen(*r) - 1) == 0))
            return true;
    return false;
}

static void what_is_for_the_user_to_set_is_not_reserved(void **state)
{
    (void)state;
    assert_false(template_reserves(reserved_env, "CADRE_STORE_BYTES"));
    assert_false(template_reserves(reserved_env, "CADRE_ARCHIVE_WAIT"));
    assert_true(template_reserves(reserved_env, "CADRE_ARCHIVE"));
    assert_false(template_reserves(reserved_env, "CADRE_CALL_BYTES"));
    assert_false(template_reserves(reserved_env, "CADRE_REFERENCE_BYTES"));
    assert_false(template_reserves(reserved_env, "CADRE_OBJECTS_PORT"));
    assert_false(template_reserves(reserved_env, "CADRE_SILENCE_SECONDS"));
    assert_false(template_reserves(reserved_env, "CADRE_COLLECTIVE_DEBUG"));
    assert_false(template_reserves(reserved_env, "CADRE_COLLECTIVE_LIMIT_MS"));
    assert_false(template_reserves(reserved_env, "CADRE_TRANSFER_DIRECT"));
    assert_false(template_reserves(reserved_env, "CADRE_TRANSFER_NCCL"));
    assert_false(template_reserves(reserved_env, "CADRE_TRANSFER_SWAP"));
    assert_true(template_reserves(reserved_env, "CADRE_COLLECTIVE"));
    assert_true(template_reserves(reserved_env, "CADRE_OBJECTS"));
    assert_true(template_reserves(reserved_env, "CADRE_TICKET"));
    assert_true(template_reserves(reserved_env, "RANK"));
    assert_false(template_reserves(reserved_env, "PATH"));
}

static void every_name_that_is_set_is_reserved(void **state)
{
    struct arena a = ARENA_INIT;
    struct workergroup wg = example();
    (void)state;
    JSON_FOREACH(item, env_of(rendered(&wg, &(struct gang_pod){.name = "x"}, &a))) {
        const char *name = member(item, "name", &a);
        if (!str_eq(name, "MINE") && !is_reserved(name))
            fail_msg("%s is set, but a user may set it too", name);
    }
    assert_false(is_reserved("MINE"));
    arena_done(&a);
}

static void a_pod_says_whose_it_is(void **state)
{
    struct arena a = ARENA_INIT;
    struct workergroup wg = example();
    const struct gang_pod p = {
        .index = 2, .attempt = 4, .incarnation = 6, .hash = 0xabc, .name = "llama-2-6", .pin = "n1"};
    (void)state;
    const struct json *pod = rendered(&wg, &p, &a);
    const struct json *metadata = json_get(pod, "metadata"), *labels = json_get(metadata, "labels");
    assert_string_equal(member(metadata, "name", &a), "llama-2-6");
    assert_string_equal(member(metadata, "namespace", &a), "ml");
    assert_string_equal(member(labels, LABEL_GROUP, &a), "llama");
    assert_string_equal(member(labels, LABEL_INDEX, &a), "2"); // it overrides the template's own label
    assert_string_equal(member(labels, LABEL_INCARNATION, &a), "6");
    assert_string_equal(member(labels, LABEL_ATTEMPT, &a), "4");
    assert_string_equal(member(labels, LABEL_MANAGED_BY, &a), MANAGED_BY);
    assert_string_equal(member(labels, "team", &a), "a");
    assert_string_equal(member(json_get(pod, "spec"), "hostname", &a), "llama-2");
    assert_string_equal(member(json_get(pod, "spec"), "subdomain", &a), "llama");
    assert_string_equal(member(json_get(pod, "spec"), "restartPolicy", &a), "Never");
    assert_string_equal(member(json_get(metadata, "ownerReferences")->child, "uid", &a), "uid-1");
    arena_done(&a);
}

// The hash that is written is read again.
static void labels_and_hash_come_back(void **state)
{
    struct arena a = ARENA_INIT;
    struct workergroup wg = example();
    const char *body;
    const struct object *o;
    struct err err = ERR_INIT;
    (void)state;
    struct gang_pod p = {
        .index = 2, .attempt = INT32_MAX, .incarnation = 6, .hash = UINT64_MAX - 1, .name = "x", .pin = "n1"};
    assert_int_equal(group_pod_render(&wg, &p, &a, &body, &err), 0);
    assert_int_equal(object_decode(KIND_POD, body, strlen(body), &o, &err), 0);
    const struct pod *pod = pod_of(o);
    assert_int_equal(pod_label_number(pod, LABEL_INDEX), 2);
    assert_int_equal(pod_label_number(pod, LABEL_ATTEMPT), INT32_MAX);
    assert_int_equal(pod_label_number(pod, LABEL_INCARNATION), 6);
    assert_true(pod_spec_hash(pod) == UINT64_MAX - 1);
    assert_string_equal(pod->pin, "n1");
    object_unref(o);
    arena_done(&a);
}

static void labels_that_are_no_numbers_are_none(void **state)
{
    static const char *const bad[] = {"", "-1", "x", "1x", "2147483648", " 1"};
    (void)state;
    struct pod p = {0};
    assert_int_equal(pod_label_number(&p, LABEL_INDEX), -1);
    assert_true(pod_spec_hash(&p) == 0);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct label label = {LABEL_INDEX, bad[i]};
        p.obj.meta.labels = (struct labels){&label, 1};
        assert_int_equal(pod_label_number(&p, LABEL_INDEX), -1);
    }
}

static void the_service_is_headless_and_ours(void **state)
{
    struct arena a = ARENA_INIT;
    struct workergroup wg = example();
    (void)state;
    const struct json *service = parse(group_service(&wg, &a), &a);
    const struct json *spec = json_get(service, "spec"), *metadata = json_get(service, "metadata");
    assert_string_equal(member(metadata, "name", &a), "llama");
    assert_string_equal(member(json_get(metadata, "ownerReferences")->child, "uid", &a), "uid-1");
    assert_string_equal(member(spec, "clusterIP", &a), "None");
    assert_null(json_get(spec, "selector")); // the operator writes its endpoints
    int64_t port = 0;
    assert_true(json_i64(json_get(json_get(spec, "ports")->child, "port"), &port) && port == 29500);
    arena_done(&a);
}

// If a new version computed another hash, its upgrade would restart every group. This is FNV-1a of "0000000000001234 3
// 8 29500 0 kubernetes.io/hostname".
static void the_hash_of_a_spec_never_changes(void **state)
{
    struct workergroup wg = example();
    (void)state;
    assert_true(group_spec_hash(&wg, 0x1234) == 0xed4f7a2d1683cbcau);
}

static void the_hash_knows_what_pods_are_made_from(void **state)
{
    struct workergroup wg = example(), other;
    (void)state;
    uint64_t hash = group_spec_hash(&wg, 1);
    assert_true(hash != group_spec_hash(&wg, 2));
#define DIFFERS(member, value) \
    other = wg;                \
    other.spec.member = value; \
    assert_true(hash != group_spec_hash(&other, 1))
    DIFFERS(replicas, 4);
    DIFFERS(workers_per_replica, 4);
    DIFFERS(rendezvous_port, 4);
    DIFFERS(gang.strategy, STRATEGY_SPREAD);
    DIFFERS(gang.topology_key, "rack");
#undef DIFFERS
    other = wg; // changes that a running group can take over as it is
    other.spec.max_restarts = 77;
    other.spec.gang.timeout_s = 77;
    other.spec.gang.node_lost_s = 77;
    other.spec.restart_policy = RESTART_NEVER;
    assert_true(hash == group_spec_hash(&other, 1));
}

static void an_owner_of_another_group_of_apis_is_another(void **state)
{
    (void)state;
    assert_true(owner_is(&(struct owner){"cadre.dev/v1alpha1", "WorkerGroup", "a", "u"}, KIND_WORKERGROUP));
    assert_true(owner_is(&(struct owner){"cadre.dev/v2", "WorkerGroup", "a", "u"}, KIND_WORKERGROUP));
    assert_false(owner_is(&(struct owner){"evil.dev/v1alpha1", "WorkerGroup", "a", "u"}, KIND_WORKERGROUP));
    assert_false(owner_is(&(struct owner){"cadre.dev.evil/v1", "WorkerGroup", "a", "u"}, KIND_WORKERGROUP));
    assert_false(owner_is(&(struct owner){"cadre.dev/v1alpha1", "PlacementGroup", "a", "u"}, KIND_WORKERGROUP));
    assert_false(owner_is(&(struct owner){0}, KIND_WORKERGROUP));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_owner_of_another_group_of_apis_is_another),
        cmocka_unit_test(names_follow_from_group_index_and_incarnation),
        cmocka_unit_test(what_an_attempt_was_made_from_is_told_from_what_is_asked_for),
        cmocka_unit_test(a_pod_is_given_its_place_in_the_group),
        cmocka_unit_test(every_name_that_is_set_is_reserved),
        cmocka_unit_test(what_is_for_the_user_to_set_is_not_reserved),
        cmocka_unit_test(a_pod_says_whose_it_is),
        cmocka_unit_test(labels_and_hash_come_back),
        cmocka_unit_test(labels_that_are_no_numbers_are_none),
        cmocka_unit_test(the_service_is_headless_and_ours),
        cmocka_unit_test(the_hash_of_a_spec_never_changes),
        cmocka_unit_test(the_hash_knows_what_pods_are_made_from),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
