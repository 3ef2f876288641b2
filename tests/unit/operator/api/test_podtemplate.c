// SPDX-License-Identifier: Apache-2.0
// Tests the facts and the limits. tests/golden/render shows rendered pods.
#include "operator/api/podtemplate.h"

#include "common/base/buf.h"
#include "common/base/mem.h"
#include "operator/api/podagent.h"
#include "tests/unit/operator/api/test_arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

static const char *const reserved[] = {"RANK", "PET_*", "", NULL};

static struct template_facts inspect(const char *template)
{
    struct template_facts f;
    struct err err = ERR_INIT;
    if (template_inspect(template, reserved, &arena, &f, &err) < 0)
        fail_msg("%s", err.msg);
    return f;
}

#define SPEC(rest) "{\"spec\":{" rest "\"containers\":[{\"name\":\"w\"}]}}"
#define CONTAINERS(init, main) "{\"spec\":{\"initContainers\":[{" init "}],\"containers\":[{},{" main "}]}}"

static void what_is_for_cadre_to_set_is_found(void **state)
{
    (void)state;
    const struct {
        const char *template, *owned;
    } cases[] = {
        {SPEC("\"nodeName\":\"n1\","), "spec.template.spec.nodeName"},
        {SPEC("\"hostname\":\"h\","), "spec.template.spec.hostname"},
        {SPEC("\"subdomain\":\"s\","), "spec.template.spec.subdomain"},
        {SPEC("\"hostnameOverride\":\"h\","), "spec.template.spec.hostnameOverride"},
        {SPEC("\"restartPolicy\":\"Always\","), "spec.template.spec.restartPolicy"},
        {SPEC("\"restartPolicy\":\"\\u0041lways\","), "spec.template.spec.restartPolicy"},
        {CONTAINERS("", "\"restartPolicy\":\"OnFailure\""), "spec.template.spec.containers[1].restartPolicy"},
        {CONTAINERS("", "\"restartPolicy\":\"Never\",\"restartPolicyRules\":[{\"action\":\"Restart\"}]"),
         "spec.template.spec.containers[1].restartPolicyRules"},
        {CONTAINERS("\"restartPolicyRules\":[{\"action\":\"RestartAllContainers\"}]", ""),
         "spec.template.spec.initContainers[0].restartPolicyRules"},
        {SPEC("\"hostname\":\"h\",\"nodeName\":\"n1\","), "spec.template.spec.nodeName"}, // one field is enough
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct template_facts f = inspect(cases[i].template);
        assert_string_equal(f.owned, cases[i].owned);
        assert_non_null(strstr(f.owned_why, ": ")); // the reason, and what to do
    }
}

static void what_fights_nothing_is_left_to_the_user(void **state)
{
    (void)state;
    const char *templates[] = {
        SPEC(""),
        SPEC("\"restartPolicy\":\"Never\",\"hostname\":\"\",\"subdomain\":null,\"nodeName\":\"\","),
        SPEC("\"hostNetwork\":true,\"dnsPolicy\":\"ClusterFirstWithHostNet\",\"schedulerName\":\"mine\","),
        SPEC("\"setHostnameAsFQDN\":true,\"schedulingGates\":[{\"name\":\"a\"}],\"priority\":7,"),
        CONTAINERS("\"restartPolicy\":\"Always\"", "\"restartPolicy\":\"Never\",\"restartPolicyRules\":[]"),
        CONTAINERS("\"restartPolicy\":\"OnFailure\"", "\"envFrom\":[{\"configMapRef\":{\"name\":\"RANK\"}}]"),
    };
    for (size_t i = 0; i < ARRAY_LEN(templates); i++) {
        struct template_facts f = inspect(templates[i]);
        assert_null(f.owned);
        assert_null(f.reserved_env);
    }
}

#define ENV(name) "\"env\":[{\"name\":\"OK\"},{\"name\":\"" name "\",\"value\":\"1\"}]"

static void reserved_names_are_found_wherever_they_are(void **state)
{
    (void)state;
    struct template_facts f =
        inspect("{\"spec\":{\"containers\":[{\"name\":\"a\"},{\"name\":\"w\"," ENV("RANK") "}]}}");
    assert_string_equal(f.reserved_env, "RANK");
    assert_string_equal(f.reserved_env_container, "w");
    f = inspect("{\"spec\":{\"initContainers\":[{\"name\":\"i\"," ENV(
        "PET_NNODES") "}],\"containers\":[{\"name\":\"w\"," ENV("RANK") "}]}}");
    assert_string_equal(f.reserved_env, "PET_NNODES");
    assert_string_equal(f.reserved_env_container, "i");
    const char *free_names[] = {"RANKS", "RAN", "rank", "PET", "XPET_A"};
    for (size_t i = 0; i < ARRAY_LEN(free_names); i++)
        assert_null(
            inspect(arena_printf(&arena, "{\"spec\":{\"containers\":[{\"name\":\"w\",\"env\":[{\"name\":\"%s\"}]}]}}",
                                 free_names[i]))
                .reserved_env);
}

static void equal_templates_have_equal_hashes(void **state)
{
    (void)state;
    uint64_t one = inspect("{\"spec\":{\"containers\":[{\"name\":\"w\",\"x\":1.50}],\"a\":\"\\u00e9/\"}}").hash;
    uint64_t two =
        inspect(" { \"spec\" : { \"a\":\"\xc3\xa9\\/\", \"containers\" : [ {\"x\":1.50,\"name\":\"w\"} ] } } ").hash;
    assert_true(one == two);
    const char *others[] = {
        "{\"spec\":{\"containers\":[{\"name\":\"w\",\"x\":1.5}],\"a\":\"\\u00e9/\"}}",
        "{\"spec\":{\"containers\":[{\"name\":\"w\",\"x\":1.50}],\"a\":\"\\u00e8/\"}}",
        "{\"spec\":{\"containers\":[{\"name\":\"w\",\"x\":1.50},{}],\"a\":\"\\u00e9/\"}}",
        "{\"spec\":{\"containers\":[{\"name\":\"w\",\"x\":1.50}],\"b\":\"\\u00e9/\"}}",
        "{\"spec\":{\"containers\":[{\"name\":\"w\",\"x\":1.50}],\"a\":\"\\u00e9/\",\"b\":null}}",
    };
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        assert_true(inspect(others[i]).hash != one);
}

static void claims_of_resources_are_seen(void **state)
{
    (void)state;
    assert_true(inspect(SPEC("\"resourceClaims\":[{\"name\":\"gpus\"}],")).claims);
    assert_false(inspect(SPEC("\"resourceClaims\":[],")).claims);
    assert_false(inspect(SPEC("\"resourceClaims\":null,")).claims);
    assert_false(inspect(SPEC("")).claims);
}

static void a_template_of_the_wrong_shape_is_refused_by_both(void **state)
{
    (void)state;
    const struct {
        const char *template, *want;
    } cases[] = {
        {"[]", "spec.template: expected object, got list"},
        {"{\"spec\":", "spec.template: not valid JSON at byte 8: unexpected end"},
        {"{}", "spec.template.spec: missing"},
        {"{\"spec\":[]}", "spec.template.spec: expected object, got list"},
        {"{\"spec\":{}}", "spec.template.spec.containers: at least one container is needed"},
        {"{\"spec\":{\"containers\":[]}}", "spec.template.spec.containers: at least one container is needed"},
        {"{\"spec\":{\"containers\":{}}}", "spec.template.spec.containers: expected list, got object"},
        {"{\"spec\":{\"containers\":[1]}}", "spec.template.spec.containers[0]: expected object, got number"},
        {"{\"spec\":{\"containers\":[{},{\"env\":{}}]}}",
         "spec.template.spec.containers[1].env: expected list, got object"},
        {"{\"spec\":{\"containers\":[{}],\"initContainers\":[{\"env\":[{},\"A\"]}]}}",
         "spec.template.spec.initContainers[0].env[1]: expected object, got string"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct template_facts f;
        struct err err = ERR_INIT;
        const char *json;
        assert_int_equal(template_inspect(cases[i].template, reserved, &arena, &f, &err), ERR_INVALID);
        assert_string_equal(err.msg, cases[i].want);
        struct pod_render r = {.ns = "ml", .name = "p"};
        assert_int_equal(pod_render(cases[i].template, &r, &arena, &json, &err), ERR_INVALID);
        assert_string_equal(err.msg, cases[i].want);
    }
}

static void a_field_of_the_wrong_type_is_refused(void **state)
{
    (void)state;
    const struct {
        const char *template, *want;
    } cases[] = {
        {SPEC("\"nodeName\":1,"), "spec.template.spec.nodeName: expected string, got number"},
        {SPEC("\"restartPolicy\":[],"), "spec.template.spec.restartPolicy: expected string, got list"},
        {CONTAINERS("", "\"restartPolicyRules\":{}"),
         "spec.template.spec.containers[1].restartPolicyRules: expected list, got object"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct template_facts f;
        struct err err = ERR_INIT;
        assert_int_equal(template_inspect(cases[i].template, reserved, &arena, &f, &err), ERR_INVALID);
        assert_string_equal(err.msg, cases[i].want);
    }
}

static void what_an_agent_writes_must_have_its_type(void **state)
{
    (void)state;
    static const struct {
        const char *template, *want;
    } cases[] = {
        {"{\"spec\":{\"containers\":[{\"command\":\"/train\"}]}}",
         "spec.template.spec.containers[0].command: expected list, got string"},
        {"{\"spec\":{\"containers\":[{\"volumeMounts\":{}}]}}",
         "spec.template.spec.containers[0].volumeMounts: expected list, got object"},
        {SPEC("\"volumes\":1,"), "spec.template.spec.volumes: expected list, got number"},
    };
    const struct pod_agent agent = {.image = "i", .url = "wss://o:9443", .ca_pem = "pem"};
    struct pod_render r = {.ns = "ml", .name = "p", .agent = &agent};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err err = ERR_INIT;
        const char *json;
        assert_int_equal(pod_render(cases[i].template, &r, &arena, &json, &err), ERR_INVALID);
        assert_string_equal(err.msg, cases[i].want);
    }
}

static void an_agent_is_told_how_long_its_processes_may_take_to_end(void **state)
{
    (void)state;
    static const struct {
        const char *seconds, *want;
    } cases[] = {{"", "\"--grace\",\"25\""},
                 {"\"terminationGracePeriodSeconds\":300,", "\"--grace\",\"295\""},
                 {"\"terminationGracePeriodSeconds\":0,", "\"--grace\",\"1\""}};
    const struct pod_agent agent = {.image = "i", .url = "wss://o:9443", .ca_pem = "pem"};
    struct pod_render r = {.ns = "ml", .name = "p", .agent = &agent};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err err = ERR_INIT;
        const char *json = "";
        const char *template =
            arena_printf(&arena, "{\"spec\":{%s\"containers\":[{\"name\":\"w\"}]}}", cases[i].seconds);
        assert_int_equal(pod_render(template, &r, &arena, &json, &err), 0);
        assert_non_null(strstr(json, cases[i].want));
    }
}

static void our_own_image_has_the_agent_and_needs_no_init_container(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    const char *json = "";
    const struct pod_agent agent = {.image = "cadre/operator:1", .url = "wss://o:9443", .ca_pem = "pem"};
    struct pod_render r = {.ns = "ml", .name = "p", .agent = &agent};
    assert_int_equal(pod_render("{\"spec\":{\"initContainers\":[{\"name\":\"theirs\",\"image\":\"cadre/operator:1\"}],"
                                "\"containers\":[{\"name\":\"w\",\"image\":\"cadre/operator:1\"}]}}",
                                &r, &arena, &json, &err),
                     0);
    assert_non_null(strstr(json, "\"command\":[\"/usr/bin/cadre-agent\",\"--grace\""));
    assert_non_null(strstr(json, "\"initContainers\":[{\"name\":\"theirs\""));
    assert_null(strstr(json, "install"));
    assert_null(strstr(json, "emptyDir"));
    assert_non_null(strstr(json, "/var/run/secrets/cadre.dev"));
}

static void any_other_image_is_brought_the_agent(void **state)
{
    (void)state;
    static const char *const images[] = {"", ",\"image\":\"cadre/operator:2\"", ",\"image\":1"};
    const struct pod_agent agent = {.image = "cadre/operator:1", .url = "wss://o:9443", .ca_pem = "pem"};
    struct pod_render r = {.ns = "ml", .name = "p", .agent = &agent};
    for (size_t i = 0; i < ARRAY_LEN(images); i++) {
        struct err err = ERR_INIT;
        const char *json = "";
        const char *template = arena_printf(&arena, "{\"spec\":{\"containers\":[{\"name\":\"w\"%s}]}}", images[i]);
        assert_int_equal(pod_render(template, &r, &arena, &json, &err), 0);
        assert_non_null(strstr(json, "\"command\":[\"/usr/bin/cadre-agent\",\"install\",\"/cadre\"]"));
        assert_non_null(strstr(json, "\"command\":[\"/cadre/cadre-agent\",\"--grace\""));
    }
}

// A decision about a gang keeps thousands of pods.
static void a_pod_costs_no_more_than_its_text(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    const char *json = NULL;
    struct template_facts f;
    struct pod_render r = {.ns = "ml", .name = "p", .pin = "n1"};
    assert_int_equal(pod_render(SPEC("\"tolerations\":[{},{},{},{}],"), &r, &arena, &json, &err), 0);
    assert_true(arena.used <= strlen(json) + 16);
    size_t before = arena.used;
    assert_int_equal(template_inspect(SPEC("\"tolerations\":[{},{},{},{}],"), reserved, &arena, &f, &err), 0);
    assert_int_equal(arena.used, before);
}

static void a_pod_cannot_grow_without_bound(void **state)
{
    (void)state;
    struct buf b = BUF_INIT(1 << 20);
    struct err err = ERR_INIT;
    const char *json;
    char value[1000];
    memset(value, 'v', sizeof value - 1);
    value[sizeof value - 1] = '\0';
    struct env_var env[] = {{"A", value}};
    struct pod_render r = {.ns = "ml", .name = "p", .env = env, .n_env = 1};
    buf_puts(&b, "{\"spec\":{\"containers\":[{}");
    for (int i = 0; i < 10000; i++)
        buf_puts(&b, ",{}");
    buf_puts(&b, "]}}");
    assert_int_equal(pod_render(buf_str(&b), &r, &arena, &json, &err), ERR_LIMIT);
    assert_string_equal(err.msg, "spec.template: the pod would have more than 4 MiB; make the template smaller");
    buf_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_for_cadre_to_set_is_found, setup, teardown),
        cmocka_unit_test_setup_teardown(what_fights_nothing_is_left_to_the_user, setup, teardown),
        cmocka_unit_test_setup_teardown(reserved_names_are_found_wherever_they_are, setup, teardown),
        cmocka_unit_test_setup_teardown(equal_templates_have_equal_hashes, setup, teardown),
        cmocka_unit_test_setup_teardown(claims_of_resources_are_seen, setup, teardown),
        cmocka_unit_test_setup_teardown(a_template_of_the_wrong_shape_is_refused_by_both, setup, teardown),
        cmocka_unit_test_setup_teardown(a_field_of_the_wrong_type_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(what_an_agent_writes_must_have_its_type, setup, teardown),
        cmocka_unit_test_setup_teardown(our_own_image_has_the_agent_and_needs_no_init_container, setup, teardown),
        cmocka_unit_test_setup_teardown(any_other_image_is_brought_the_agent, setup, teardown),
        cmocka_unit_test_setup_teardown(an_agent_is_told_how_long_its_processes_may_take_to_end, setup, teardown),
        cmocka_unit_test_setup_teardown(a_pod_costs_no_more_than_its_text, setup, teardown),
        cmocka_unit_test_setup_teardown(a_pod_cannot_grow_without_bound, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
