// SPDX-License-Identifier: Apache-2.0
// The rules that decide whether a node may take a pod, one by one, and the planner's edge cases. Its answers for whole
// clusters are in tests/golden/plan-placement and test_planner_oracle.c.
#include "operator/api/pod_constraints.h"
#include "operator/placement/node_admission.h"
#include "tests/unit/support/placement_builder.h"

#include "common/base/mem.h"
#include "common/base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static enum node_verdict admits(const char *node, const struct pod_constraints *p, const char *topology_key)
{
    struct node *n = build_node("n1", node);
    enum node_verdict v = node_admits(n, p, topology_key);
    object_unref(&n->obj);
    return v;
}

static void a_node_takes_what_it_is_large_enough_for(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    struct pod_constraints p = {.requests = build_amounts("gpu=8 cpu=4", &a)};
    assert_int_equal(admits("gpu=8 cpu=4", &p, TOPOLOGY_HOSTNAME), NODE_OK);
    assert_int_equal(admits("gpu=8 cpu=3999m", &p, TOPOLOGY_HOSTNAME), NODE_TOO_SMALL);
    assert_int_equal(admits("cpu=64", &p, TOPOLOGY_HOSTNAME), NODE_TOO_SMALL);
    arena_done(&a);
}

static void a_node_that_is_cordoned_or_not_ready_takes_nothing_whatever_is_tolerated(void **state)
{
    (void)state;
    struct toleration all = {.exists = true};
    struct pod_constraints p = {.tolerations = &all, .n_tolerations = 1};
    assert_int_equal(admits("cordoned taint=node.kubernetes.io/unschedulable:NoSchedule", &p, TOPOLOGY_HOSTNAME),
                     NODE_CORDONED);
    assert_int_equal(admits("notready taint=node.kubernetes.io/not-ready:NoExecute", &p, TOPOLOGY_HOSTNAME),
                     NODE_NOT_READY);
}

static void a_topology_key_wants_the_label_but_for_the_hostname(void **state)
{
    (void)state;
    struct pod_constraints p = {0};
    assert_int_equal(admits("rack=a", &p, "rack"), NODE_OK);
    assert_int_equal(admits("rack=", &p, "rack"), NODE_OK);
    assert_int_equal(admits("zone=a", &p, "rack"), NODE_NO_DOMAIN);
    assert_int_equal(admits("", &p, TOPOLOGY_HOSTNAME), NODE_OK);
}

static void taints_keep_out_what_does_not_tolerate_them(void **state)
{
    (void)state;
    static const struct {
        const char *node;
        struct toleration toleration;
        enum node_verdict want;
    } cases[] = {
        {"taint=a=b:NoSchedule", {0}, NODE_TAINTED},
        {"taint=a=b:NoExecute", {0}, NODE_TAINTED},
        {"taint=a=b:PreferNoSchedule", {0}, NODE_OK},
        {"taint=a=b:NoSchedule", {.key = "a", .value = "b"}, NODE_OK},
        {"taint=a=b:NoSchedule", {.key = "a", .value = "c"}, NODE_TAINTED},
        {"taint=a=b:NoSchedule", {.key = "a"}, NODE_TAINTED}, // Equal to no value
        {"taint=a:NoSchedule", {.key = "a"}, NODE_OK},
        {"taint=a=b:NoSchedule", {.key = "a", .exists = true}, NODE_OK},
        {"taint=a=b:NoSchedule", {.key = "b", .exists = true}, NODE_TAINTED},
        {"taint=a=b:NoSchedule", {.exists = true}, NODE_OK}, // everything
        {"taint=a=b:NoSchedule", {.key = "", .value = "", .effect = "", .exists = true}, NODE_OK},
        {"taint=a=b:NoSchedule", {.exists = true, .effect = "NoSchedule"}, NODE_OK},
        {"taint=a=b:NoExecute", {.exists = true, .effect = "NoSchedule"}, NODE_TAINTED},
        {"taint=a=b:NoSchedule taint=c=d:NoSchedule", {.key = "a", .exists = true}, NODE_TAINTED},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct toleration t = cases[i].toleration;
        struct pod_constraints p = {.tolerations = &t, .n_tolerations = 1};
        if (admits(cases[i].node, &p, TOPOLOGY_HOSTNAME) != cases[i].want)
            fail_msg("case %zu: %s", i, cases[i].node);
    }
}

static void a_node_selector_wants_every_label(void **state)
{
    (void)state;
    struct label labels[] = {{"a", "1"}, {"b", "2"}};
    struct pod_constraints p = {.node_selector = {labels, 2}};
    assert_int_equal(admits("a=1 b=2 c=3", &p, TOPOLOGY_HOSTNAME), NODE_OK);
    assert_int_equal(admits("a=1", &p, TOPOLOGY_HOSTNAME), NODE_UNMATCHED);
    assert_int_equal(admits("a=1 b=3", &p, TOPOLOGY_HOSTNAME), NODE_UNMATCHED);
}

static void affinity_matches_as_in_kubernetes(void **state)
{
    (void)state;
    static const char *ab[] = {"a", "b"}, *five[] = {"5"}, *word[] = {"five"}, *n1[] = {"n1"}, *n2[] = {"n2"};
    static const struct {
        const char *node;
        struct match match;
        bool want;
    } cases[] = {
        {"k=b", {.key = "k", .op = MATCH_IN, .values = ab, .n_values = 2}, true},
        {"k=c", {.key = "k", .op = MATCH_IN, .values = ab, .n_values = 2}, false},
        {"x=a", {.key = "k", .op = MATCH_IN, .values = ab, .n_values = 2}, false},
        {"k=b", {.key = "k", .op = MATCH_NOT_IN, .values = ab, .n_values = 2}, false},
        {"k=c", {.key = "k", .op = MATCH_NOT_IN, .values = ab, .n_values = 2}, true},
        {"x=a", {.key = "k", .op = MATCH_NOT_IN, .values = ab, .n_values = 2}, true},
        {"k=", {.key = "k", .op = MATCH_EXISTS}, true},
        {"x=a", {.key = "k", .op = MATCH_EXISTS}, false},
        {"k=a", {.key = "k", .op = MATCH_NOT_EXISTS}, false},
        {"x=a", {.key = "k", .op = MATCH_NOT_EXISTS}, true},
        {"k=6", {.key = "k", .op = MATCH_GT, .values = five, .n_values = 1}, true},
        {"k=5", {.key = "k", .op = MATCH_GT, .values = five, .n_values = 1}, false},
        {"k=10", {.key = "k", .op = MATCH_GT, .values = five, .n_values = 1}, true},
        {"k=4", {.key = "k", .op = MATCH_LT, .values = five, .n_values = 1}, true},
        {"k=-4", {.key = "k", .op = MATCH_LT, .values = five, .n_values = 1}, true},
        {"k=5", {.key = "k", .op = MATCH_LT, .values = five, .n_values = 1}, false},
        {"k=six", {.key = "k", .op = MATCH_GT, .values = five, .n_values = 1}, false},
        {"k=6", {.key = "k", .op = MATCH_GT, .values = word, .n_values = 1}, false},
        {"k=6", {.key = "k", .op = MATCH_GT, .values = ab, .n_values = 2}, false},
        {"x=6", {.key = "k", .op = MATCH_LT, .values = five, .n_values = 1}, false},
        {"", {.key = "metadata.name", .field = true, .op = MATCH_IN, .values = n1, .n_values = 1}, true},
        {"", {.key = "metadata.name", .field = true, .op = MATCH_IN, .values = n2, .n_values = 1}, false},
        {"", {.key = "metadata.name", .field = true, .op = MATCH_NOT_IN, .values = n2, .n_values = 1}, true},
        {"metadata.name=n2", {.key = "metadata.name", .op = MATCH_IN, .values = n2, .n_values = 1}, true}, // a label
        {"", {.key = "spec.nodeName", .field = true, .op = MATCH_IN, .values = n1, .n_values = 1}, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct match m = cases[i].match;
        struct node_term term = {&m, 1};
        struct pod_constraints p = {.terms = &term, .n_terms = 1};
        if (admits(cases[i].node, &p, TOPOLOGY_HOSTNAME) != (cases[i].want ? NODE_OK : NODE_UNMATCHED))
            fail_msg("case %zu: %s", i, cases[i].node);
    }
}

static void one_term_must_hold_and_all_that_it_says(void **state)
{
    (void)state;
    struct match first[] = {{.key = "a", .op = MATCH_EXISTS}, {.key = "b", .op = MATCH_EXISTS}};
    struct match second[] = {{.key = "c", .op = MATCH_EXISTS}};
    struct node_term terms[] = {{first, 2}, {second, 1}, {NULL, 0}}; // an empty term selects no node
    struct pod_constraints p = {.terms = terms, .n_terms = 3};
    assert_int_equal(admits("a=1 b=1", &p, TOPOLOGY_HOSTNAME), NODE_OK);
    assert_int_equal(admits("c=1", &p, TOPOLOGY_HOSTNAME), NODE_OK);
    assert_int_equal(admits("a=1", &p, TOPOLOGY_HOSTNAME), NODE_UNMATCHED);
}

static const char *answer(struct world **w, const char *text)
{
    *w = world_new(text);
    return world_answer(*w, (*w)->gangs[0]);
}

#define EXPECT(text, want)                           \
    do {                                             \
        struct world *w;                             \
        assert_string_equal(answer(&w, text), want); \
        world_free(w);                               \
    } while (0)

static void a_gang_of_nothing_is_placed(void **state)
{
    (void)state;
    EXPECT("gang StrictPack\n", "Placed\n");
    EXPECT("node n1 gpu=1\ngang StrictSpread key=rack\nbundles 1 gpu=1 on=n1\n", "Placed\nn1: 0\n");
}

static void bundles_fixed_on_a_node_that_is_gone_stay_where_they_were(void **state)
{
    (void)state;
    EXPECT("node n1 gpu=4\ngang Pack\nbundles 1 gpu=1 on=gone\nbundles 2 gpu=1\n", "Placed\ngone: 0\nn1: 1-2\n");
    EXPECT("node n1 gpu=4\ngang StrictPack\nbundles 1 gpu=1 on=gone\nbundles 2 gpu=1\n",
           "Infeasible: needs 2 x 1 nvidia.com/gpu on one node with the rest, none fits; "
           "0 of 1 node qualifies (1 elsewhere)\n");
}

static void an_unknown_node_to_avoid_is_no_matter(void **state)
{
    (void)state;
    EXPECT("node n1 gpu=4\ngang Pack\nbundles 1 gpu=1\navoid gone\n", "Placed\nn1: 0\n");
}

static void no_topology_key_means_the_hostname(void **state)
{
    (void)state;
    struct world *w = world_new("node n1 gpu=2\nnode n2 gpu=2\ngang StrictPack\nbundles 2 gpu=1\n");
    w->gangs[0]->gang.topology_key = "";
    assert_string_equal(world_answer(w, w->gangs[0]), "Placed\nn1: 0-1\n");
    w->gangs[0]->gang.topology_key = NULL;
    assert_string_equal(world_answer(w, w->gangs[0]), "Placed\nn1: 0-1\n");
    world_free(w);
}

static void bundles_that_ask_for_nothing_go_anywhere(void **state)
{
    (void)state;
    EXPECT("node n1 gpu=2\ngang StrictPack\nbundles 200 pods=0\n", "Placed\nn1: 0-199\n");
}

static void names_outlive_the_nodes(void **state)
{
    (void)state;
    struct world *w = world_new("node n1 gpu=2\ngang Pack\nbundles 1 gpu=1\n");
    struct placement p;
    world_place(w, w->gangs[0], &p);
    cluster_del_node(w->cluster, "n1");
    assert_int_equal(p.verdict, VERDICT_PLACED);
    assert_string_equal(p.nodes[0], "n1");
    world_free(w);
}

static void two_gangs_that_each_need_more_than_half_never_share(void **state)
{
    (void)state;
    struct world *w = world_new("node n1 gpu=4\nnode n2 gpu=4\n"
                                "gang Pack\nbundles 5 gpu=1\n"
                                "gang Pack\nbundles 5 gpu=1\n");
    struct placement first;
    world_place(w, w->gangs[0], &first);
    assert_int_equal(first.verdict, VERDICT_PLACED);
    for (size_t i = 0; i < 5; i++)
        cluster_assume(w->cluster, "ml", arena_printf(&w->arena, "first-%zu", i), first.nodes[i],
                       &w->gangs[0]->bundles[i].constraints->requests);
    assert_string_equal(world_answer(w, w->gangs[1]),
                        "Insufficient: needs 5 x 1 free nvidia.com/gpu, found 3; 1 of 2 nodes has room (1 full)\n"
                        "in use there: 5 of 8 nvidia.com/gpu, 5 by others\n");
    world_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_takes_what_it_is_large_enough_for),
        cmocka_unit_test(a_node_that_is_cordoned_or_not_ready_takes_nothing_whatever_is_tolerated),
        cmocka_unit_test(a_topology_key_wants_the_label_but_for_the_hostname),
        cmocka_unit_test(taints_keep_out_what_does_not_tolerate_them),
        cmocka_unit_test(a_node_selector_wants_every_label),
        cmocka_unit_test(affinity_matches_as_in_kubernetes),
        cmocka_unit_test(one_term_must_hold_and_all_that_it_says),
        cmocka_unit_test(a_gang_of_nothing_is_placed),
        cmocka_unit_test(bundles_fixed_on_a_node_that_is_gone_stay_where_they_were),
        cmocka_unit_test(an_unknown_node_to_avoid_is_no_matter),
        cmocka_unit_test(no_topology_key_means_the_hostname),
        cmocka_unit_test(bundles_that_ask_for_nothing_go_anywhere),
        cmocka_unit_test(names_outlive_the_nodes),
        cmocka_unit_test(two_gangs_that_each_need_more_than_half_never_share),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
