// SPDX-License-Identifier: Apache-2.0
#include "operator/exec/placementgroup_users.h"

#include "common/base/buf.h"
#include "common/base/mem.h"
#include "common/wire/record.h"
#include "operator/api/object_decode.h"
#include "operator/api/placementgroup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

struct fixture {
    struct placementgroup_users *users;
    struct arena arena;
    struct buf found;
};

static int setup(void **state)
{
    struct fixture *f = *state = xcalloc(1, sizeof *f);
    f->users = placementgroup_users_new();
    f->found = BUF_INIT(4096);
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    placementgroup_users_free(f->users);
    arena_done(&f->arena);
    buf_done(&f->found);
    free(f);
    return 0;
}

static struct workergroup *group(struct fixture *f, const char *name, const char *uid, const char *plg,
                                 const char *second)
{
    struct workergroup *wg = arena_new(&f->arena, struct workergroup);
    struct placementgroup_ref *refs = arena_array(&f->arena, 2, sizeof *refs);
    refs[0].name = plg;
    refs[1].name = second;
    wg->obj.meta.ns = "ml";
    wg->obj.meta.name = name;
    wg->obj.meta.uid = uid;
    wg->spec.placement_groups = refs;
    wg->spec.n_placement_groups = second ? 2 : 1;
    return wg;
}

static void note(void *ctx, const char *key)
{
    struct fixture *f = ctx;
    buf_printf(&f->found, "%s ", key);
}

static const char *users_of(struct fixture *f, const char *plg)
{
    buf_reset(&f->found);
    placementgroup_users_each(f->users, "ml", plg, note, f);
    return buf_str(&f->found);
}

static void a_group_lives_where_its_spec_says(void **state)
{
    struct fixture *f = *state;
    const struct workergroup *a = group(f, "a", "ua", "left", "right"), *b = group(f, "b", "ub", "right", NULL);
    placementgroup_users_set(f->users, NULL, a);
    placementgroup_users_set(f->users, NULL, b);
    assert_string_equal(users_of(f, "left"), "ml/a ");
    assert_string_equal(users_of(f, "right"), "ml/a ml/b ");
    assert_string_equal(users_of(f, "other"), "");
    assert_true(placementgroup_users_has(f->users, "ml", "left", "ua"));
    assert_false(placementgroup_users_has(f->users, "ml", "left", "ub"));
    assert_false(placementgroup_users_has(f->users, "team", "left", "ua"));
}

static void a_group_that_changes_or_goes_moves_out(void **state)
{
    struct fixture *f = *state;
    const struct workergroup *before = group(f, "a", "ua", "left", NULL), *after = group(f, "a", "ua", "right", NULL);
    placementgroup_users_set(f->users, NULL, before);
    placementgroup_users_set(f->users, before, after);
    assert_string_equal(users_of(f, "left"), "");
    assert_string_equal(users_of(f, "right"), "ml/a ");
    placementgroup_users_set(f->users, after, NULL);
    assert_string_equal(users_of(f, "right"), "");
}

static void the_oldest_is_asked_first(void **state)
{
    struct fixture *f = *state;
    struct workergroup *old = group(f, "z", "uz", "left", NULL), *middle = group(f, "y", "uy", "left", NULL),
                       *young = group(f, "x", "ux", "left", NULL);
    old->obj.meta.created_ms = 1000;
    middle->obj.meta.created_ms = 2000;
    young->obj.meta.created_ms = 2000; // in the same second
    placementgroup_users_set(f->users, NULL, middle);
    placementgroup_users_set(f->users, NULL, young);
    placementgroup_users_set(f->users, NULL, old);
    assert_string_equal(users_of(f, "left"), "ml/z ml/x ml/y ");
    placementgroup_users_set(f->users, old, old); // as for any change of its status
    assert_string_equal(users_of(f, "left"), "ml/z ml/x ml/y ");
    placementgroup_users_set(f->users, old, NULL);
    assert_string_equal(users_of(f, "left"), "ml/x ml/y ");
}

static void another_group_of_the_name_is_another_user(void **state)
{
    struct fixture *f = *state;
    const struct workergroup *before = group(f, "a", "ua", "left", NULL), *after = group(f, "a", "new", "left", NULL);
    placementgroup_users_set(f->users, NULL, before);
    placementgroup_users_set(f->users, before, after);
    assert_false(placementgroup_users_has(f->users, "ml", "left", "ua"));
    assert_true(placementgroup_users_has(f->users, "ml", "left", "new"));
}

static void a_pool_that_is_named_twice_has_the_group_once(void **state)
{
    struct fixture *f = *state;
    const struct workergroup *a = group(f, "a", "ua", "left", "left");
    placementgroup_users_set(f->users, NULL, a);
    assert_string_equal(users_of(f, "left"), "ml/a ");
    placementgroup_users_set(f->users, a, NULL);
    assert_string_equal(users_of(f, "left"), "");
}

// Groups that no longer use the PlacementGroup

static int on_command(void *owner, uint8_t type, const char *body, size_t len, struct err *err)
{
    struct fixture *f = owner;
    (void)len, (void)err;
    buf_printf(&f->found, "%s %s\n", record_type_name(type), body);
    return 0;
}

static const char pod_json[] =
    "{\"metadata\":{\"name\":\"left-plg-0-0\",\"namespace\":\"ml\",\"uid\":\"pod\",\"resourceVersion\":\"5\","
    "\"labels\":{\"app.kubernetes.io/managed-by\":\"cadre\",\"cadre.dev/group\":\"left-plg\"},"
    "\"ownerReferences\":[{\"apiVersion\":\"cadre.dev/v1alpha1\",\"kind\":\"PlacementGroup\",\"name\":\"left\","
    "\"uid\":\"u-left\",\"controller\":true}]},\"spec\":{\"containers\":[]}}";

static void what_runs_of_others_is_stopped(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;
    const struct object *pod = NULL;
    struct placementgroup plg = {
        .obj = {.kind = KIND_PLACEMENTGROUP, .meta = {.ns = "ml", .name = "left", .uid = "u-left"}},
        .spec.template_json = "{\"spec\":{\"terminationGracePeriodSeconds\":12,\"containers\":[{\"name\":\"w\"}]}}"};
    static const char hello[] = "{\"role\":\"agent\",\"version\":1,\"groups\":["
                                "{\"group\":\"ua\",\"attempt\":1,\"state\":\"Running\",\"processes\":[]},"
                                "{\"group\":\"gone\",\"attempt\":4,\"state\":\"Running\",\"processes\":[]},"
                                "{\"group\":\"idle\",\"attempt\":2,\"state\":\"Idle\",\"processes\":[]}]}";
    const struct agent_identity id = {
        .ns = "ml", .group = "left", .of_placementgroup = true, .pod = "left-plg-0-0", .pod_uid = "pod"};
    struct agents *agents = agents_new(&(struct agents_config){.clock = &clock_system});
    struct store *stores[KIND_COUNT] = {
        [KIND_POD] = store_new(KIND_POD), [KIND_WORKERGROUP] = store_new(KIND_WORKERGROUP)};
    struct connected_agent *agent;
    assert_int_equal(object_decode(KIND_POD, pod_json, strlen(pod_json), &pod, &err), 0);
    store_put(stores[KIND_POD], pod);
    assert_int_equal(agents_join(agents, &id, hello, strlen(hello), on_command, f, &agent, &err), 0);
    placementgroup_users_set(f->users, NULL, group(f, "a", "ua", "left", NULL));
    store_keep(stores[KIND_WORKERGROUP], &(struct object_peek){.ns = "ml", .name = "gone", .uid = "gone"});
    assert_true(placementgroup_users_stop_orphans(f->users, agents, stores, &plg.obj)); // it exists, but is unreadable
    assert_string_equal(buf_str(&f->found), "");
    store_deleted_unread(stores[KIND_WORKERGROUP], &(struct object_peek){.ns = "ml", .name = "gone", .uid = "gone"});
    assert_false(placementgroup_users_stop_orphans(f->users, agents, stores, &plg.obj));
    assert_string_equal(buf_str(&f->found), "STOP {\"group\":\"gone\",\"attempt\":4,\"graceMs\":7000}\n");
    agents_leave(agents, agent);
    agents_free(agents);
    store_free(stores[KIND_POD]);
    store_free(stores[KIND_WORKERGROUP]);
    object_unref(pod);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_group_lives_where_its_spec_says),
        T(a_group_that_changes_or_goes_moves_out),
        T(the_oldest_is_asked_first),
        T(another_group_of_the_name_is_another_user),
        T(a_pool_that_is_named_twice_has_the_group_once),
        T(what_runs_of_others_is_stopped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
