// SPDX-License-Identifier: Apache-2.0
// The requests of a pod, and the nodes where it may go, according to Kubernetes itself. The answers in
// tests/golden/kubernetes/ came from the packages that kube-scheduler 1.36.3 uses (k8s.io/component-helpers v0.36.3:
// resource.PodRequests with the status counted, nodeaffinity.GetRequiredNodeAffinity and FindMatchingUntoleratedTaint),
// for random pods and nodes. There is one JSON object per line: {"pod", "requests" in thousandths} and {"pod", "node",
// "selected", "tolerated"}.
#include "common/base/json.h"
#include "operator/api/node.h"
#include "operator/api/object_decode.h"
#include "operator/api/pod.h"
#include "operator/api/pod_constraints.h"
#include "operator/placement/node_admission.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void (*check_fn)(const struct json *line, struct arena *a);

static const struct object *decode(enum kind kind, const struct json *v)
{
    const struct object *o = NULL;
    struct err err = ERR_INIT;
    if (object_decode(kind, v->text, v->len, &o, &err) < 0)
        fail_msg("%s", err.msg);
    return o;
}

static void requests_agree(const struct json *line, struct arena *a)
{
    const struct json *want = json_get(line, "requests");
    const struct object *o = decode(KIND_POD, json_get(line, "pod"));
    struct resources got = {0};
    resources_add(&got, &pod_of(o)->requests, a); // a copy
    object_unref(o);
    assert_int_equal(resources_get(&got, RESOURCE_PODS), 1000);
    assert_int_equal(got.n, json_count(want) + 1);
    JSON_FOREACH(one, want) {
        int64_t milli;
        assert_true(json_i64(one, &milli));
        if (resources_get(&got, resource_id_n(one->key, one->key_len, false)) != milli)
            fail_msg("%.*s is %.*s to Kubernetes: %.*s", (int)one->key_len, one->key, (int)one->len, one->text,
                     (int)line->len, line->text);
    }
}

static bool is_true(const struct json *v)
{
    return v->text[0] == 't';
}

static void admission_agrees(const struct json *line, struct arena *a)
{
    const struct json *pod = json_get(line, "pod");
    struct pod_constraints p;
    struct err err = ERR_INIT;
    assert_int_equal(pod_constraints_decode(pod->text, pod->len, a, &p, &err), 0);
    p.requests = (struct resources){0};
    const struct object *node = decode(KIND_NODE, json_get(line, "node"));
    enum node_verdict got = node_admits(node_of(node), &p, TOPOLOGY_HOSTNAME);
    object_unref(node);
    enum node_verdict want = !is_true(json_get(line, "selected"))    ? NODE_UNMATCHED
                             : !is_true(json_get(line, "tolerated")) ? NODE_TAINTED
                                                                     : NODE_OK;
    if (got != want)
        fail_msg("verdict %d, expected %d: %.*s", got, want, (int)line->len, line->text);
}

static int check_lines(const char *path, check_fn check)
{
    FILE *f = fopen(path, "re");
    char *line = NULL;
    size_t size = 0;
    int n = 0;
    assert_non_null(f);
    for (ssize_t len; (len = getline(&line, &size, f)) > 0; n++) {
        struct arena a = ARENA_INIT;
        struct json *root = NULL;
        struct err err = ERR_INIT;
        assert_int_equal(json_parse(line, (size_t)len, NULL, &a, &root, &err), 0);
        check(root, &a);
        arena_done(&a);
    }
    free(line);
    fclose(f);
    return n;
}

static void a_pod_takes_what_kubernetes_says(void **state)
{
    (void)state;
    assert_int_equal(check_lines("tests/golden/kubernetes/requests.jsonl", requests_agree), 60);
}

static void a_pod_may_go_where_kubernetes_lets_it(void **state)
{
    (void)state;
    assert_int_equal(check_lines("tests/golden/kubernetes/admission.jsonl", admission_agrees), 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pod_takes_what_kubernetes_says),
        cmocka_unit_test(a_pod_may_go_where_kubernetes_lets_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
