// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/config.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "tests/unit/support/text_ends.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[64];
static char *path; // <dir>/config
static struct kube_config c;
static struct err err;

static void write_file(const char *name, const char *text)
{
    _cleanup_(free_p) char *file = xasprintf("%s/%s", dir, name);
    FILE *f = fopen(file, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static int setup(void **state)
{
    (void)state;
    snprintf(dir, sizeof dir, "/tmp/cadre-config-XXXXXX");
    assert_non_null(mkdtemp(dir));
    path = xasprintf("%s/config", dir);
    c = (struct kube_config){0};
    err = ERR_INIT;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    static const char *const made[] = {"config",
                                       "var/run/secrets/kubernetes.io/serviceaccount/token",
                                       "var/run/secrets/kubernetes.io/serviceaccount/ca.crt",
                                       "var/run/secrets/kubernetes.io/serviceaccount/namespace",
                                       "var/run/secrets/kubernetes.io/serviceaccount",
                                       "var/run/secrets/kubernetes.io",
                                       "var/run/secrets",
                                       "var/run",
                                       "var",
                                       ""};
    kube_config_done(&c);
    free(path);
    for (size_t i = 0; i < ARRAY_LEN(made); i++) {
        _cleanup_(free_p) char *file = xasprintf("%s/%s", dir, made[i]);
        (void)remove(file);
    }
    return 0;
}

#define CONTEXT                                             \
    "current-context: dev\n"                                \
    "contexts:\n"                                           \
    "- name: dev\n"                                         \
    "  context: {cluster: k, user: admin, namespace: ml}\n" \
    "- name: prod\n"                                        \
    "  context: {cluster: far, user: robot}\n"
#define CLUSTERS                                                                                                       \
    "clusters:\n"                                                                                                      \
    "- name: k\n"                                                                                                      \
    "  cluster:\n"                                                                                                     \
    "    server: https://127.0.0.1:6443/\n"                                                                            \
    "    certificate-authority-data: aGVsbG8gY2E=\n"                                                                   \
    "- cluster: {server: 'https://far:443/k8s/c-1', certificate-authority: pki/ca.crt, tls-server-name: kubernetes,\n" \
    "            proxy-url: 'http://proxy:3128', insecure-skip-tls-verify: false}\n"                                   \
    "  name: far\n"
#define USERS                                                              \
    "users:\n"                                                             \
    "- name: admin\n"                                                      \
    "  user: {client-certificate-data: Y2VydA==, client-key-data: a2V5}\n" \
    "- name: robot\n"                                                      \
    "  user: {client-certificate: /etc/cert.pem, client-key: key.pem, tokenFile: token}\n"

static void load(const char *text, const char *context)
{
    write_file("config", text);
    if (kube_config_load(path, context, &c, &err) < 0)
        fail_msg("%s", err.msg);
}

// `message` has %s for the path of the file.
static void assert_refused_in(const char *text, const char *context, const char *message)
{
    err = ERR_INIT;
    write_file("config", text);
    assert_int_equal(kube_config_load(path, context, &c, &err), ERR_INVALID);
    const char *at = strstr(message, "%s");
    _cleanup_(free_p) char *want =
        at ? xasprintf("%.*s%s%s", (int)(at - message), message, path, at + 2) : xstrdup(message);
    assert_string_equal(err.msg, want);
    assert_null(c.server); // not changed
}

static void assert_refused(const char *text, const char *message)
{
    assert_refused_in(text, NULL, message);
}

static void the_current_context_decides(void **state)
{
    (void)state;
    load("apiVersion: v1\nkind: Config\n" CONTEXT CLUSTERS USERS, NULL);
    assert_string_equal(c.server, "https://127.0.0.1:6443"); // no slash at its end
    assert_string_equal(c.ns, "ml");
    assert_string_equal(c.ca_pem, "hello ca");
    assert_string_equal(c.cert_pem, "cert");
    assert_string_equal(c.key_pem, "key");
    assert_null(c.ca_file);
    assert_null(c.token);
    assert_null(c.proxy_url);
    assert_false(c.insecure);
    _cleanup_(free_p) char *source = xasprintf("kubeconfig %s, context dev", path);
    assert_string_equal(c.source, source);
}

static void another_context_may_be_named_and_paths_are_relative_to_the_file(void **state)
{
    (void)state;
    load(CONTEXT CLUSTERS USERS, "prod");
    _cleanup_(free_p) char *ca = xasprintf("%s/pki/ca.crt", dir), *key = xasprintf("%s/key.pem", dir);
    _cleanup_(free_p) char *token = xasprintf("%s/token", dir);
    assert_string_equal(c.server, "https://far:443/k8s/c-1");
    assert_string_equal(c.ns, "default");
    assert_string_equal(c.ca_file, ca);
    assert_string_equal(c.cert_file, "/etc/cert.pem");
    assert_string_equal(c.key_file, key);
    assert_string_equal(c.token_file, token);
    assert_string_equal(c.tls_server_name, "kubernetes");
    assert_string_equal(c.proxy_url, "http://proxy:3128");
}

static void json_is_yaml_too(void **state)
{
    (void)state;
    load("{\"current-context\":\"a\",\"contexts\":[{\"name\":\"a\",\"context\":{\"cluster\":\"b\",\"user\":\"u\"}}],"
         "\"clusters\":[{\"name\":\"b\",\"cluster\":{\"server\":\"http://x\",\"insecure-skip-tls-verify\":true}}],"
         "\"users\":[{\"name\":\"u\",\"user\":{\"token\":\"t\",\"tokenFile\":\"ignored\"}}]}",
         NULL);
    assert_string_equal(c.server, "http://x");
    assert_string_equal(c.token, "t");
    assert_null(c.token_file);
    assert_true(c.insecure);
}

static void a_context_without_a_user_is_anonymous(void **state)
{
    (void)state;
    load("current-context: a\ncontexts: [{name: a, context: {cluster: k}}]\n" CLUSTERS, NULL);
    assert_null(c.token);
    assert_null(c.cert_pem);
}

static void data_wins_over_a_file(void **state)
{
    (void)state;
    load(CONTEXT CLUSTERS "users: [{name: admin, user: {client-certificate: x, client-certificate-data: Y2VydA==}}]",
         NULL);
    assert_string_equal(c.cert_pem, "cert");
    assert_null(c.cert_file);
}

static void the_first_file_of_a_list_that_exists_is_read(void **state)
{
    (void)state;
    write_file("config", CONTEXT CLUSTERS USERS);
    _cleanup_(free_p) char *list = xasprintf(":/nowhere/config:%s:/etc/passwd", path);
    assert_int_equal(kube_config_load(list, NULL, &c, &err), 0);
    assert_string_equal(c.ns, "ml");
}

static void a_file_that_does_not_exist_is_named(void **state)
{
    (void)state;
    assert_int_equal(kube_config_load("/nowhere/a:/nowhere/b", NULL, &c, &err), ERR_NOT_FOUND);
    assert_string_equal(err.msg, "kubeconfig /nowhere/a:/nowhere/b does not exist");
    assert_int_equal(kube_config_load("/tmp", NULL, &c, &err), ERR_IO);
    assert_string_equal(err.msg, "kubeconfig: cannot read /tmp: Is a directory");
}

static void a_file_that_is_too_long_is_not_read(void **state)
{
    (void)state;
    FILE *f = fopen(path, "w");
    for (int i = 0; i < 1024 * 1024 / 16 + 1; i++)
        fputs("# a comment ...\n", f);
    fclose(f);
    assert_int_equal(kube_config_load(path, NULL, &c, &err), ERR_LIMIT);
    _cleanup_(free_p) char *want = xasprintf("kubeconfig: %s is longer than 1048576 bytes", path);
    assert_string_equal(err.msg, want);
}

static void what_is_no_kubeconfig_is_refused(void **state)
{
    (void)state;
    assert_refused("", "kubeconfig %s is empty");
    assert_refused("hello\n", "kubeconfig %s is not a kubeconfig");
    assert_refused("- a\n", "kubeconfig %s is not a kubeconfig");
    assert_refused("a: [\nb: }\n", "kubeconfig %s is not YAML: line 2: did not find expected node content");
    assert_refused("\"a\": b\n\"", "kubeconfig %s is not YAML: line 2: found unexpected end of stream");
}

static void what_is_not_there_is_named_with_what_is(void **state)
{
    (void)state;
    assert_refused(CLUSTERS USERS, "kubeconfig %s: no current-context is set; name a context");
    assert_refused_in(CONTEXT CLUSTERS USERS, "staging",
                      "kubeconfig %s: there is no context \"staging\"; it has \"dev\", \"prod\"");
    assert_refused("current-context: dev\n", "kubeconfig %s: there is no context \"dev\"; it has none");
    assert_refused("current-context: dev\ncontexts: [{name: dev}]\n", "kubeconfig %s: context \"dev\" is empty");
    assert_refused("current-context: dev\ncontexts: [{name: dev, context: {user: a}}]\n",
                   "kubeconfig %s: context \"dev\" names no cluster");
    assert_refused(CONTEXT USERS, "kubeconfig %s: there is no cluster \"k\"; it has none");
    assert_refused(CONTEXT CLUSTERS "users: [{name: bob, user: {}}]",
                   "kubeconfig %s: there is no user \"admin\"; it has \"bob\"");
    assert_refused(CONTEXT CLUSTERS "users: nonsense", "kubeconfig %s: there is no user \"admin\"; it has none");
}

static void a_server_has_to_be_an_address(void **state)
{
    (void)state;
    assert_refused(CONTEXT "clusters: [{name: k, cluster: {}}]",
                   "kubeconfig %s: cluster \"k\" needs a server such as https://host:6443");
    assert_refused(CONTEXT "clusters: [{name: k, cluster: {server: '127.0.0.1:6443'}}]",
                   "kubeconfig %s: cluster \"k\" needs a server such as https://host:6443, not 127.0.0.1:6443");
    assert_refused(CONTEXT "clusters: [{name: k, cluster: {server: 'https://x', insecure-skip-tls-verify: 1}}]",
                   "kubeconfig %s: insecure-skip-tls-verify has to be true or false, not \"1\"");
}

static void data_has_to_be_base64(void **state)
{
    (void)state;
    assert_refused(CONTEXT "clusters: [{name: k, cluster: {server: 'https://x', certificate-authority-data: '-----'}}]",
                   "kubeconfig %s: certificate-authority-data is not base64");
    assert_refused(CONTEXT CLUSTERS
                   "users: [{name: admin, user: {client-certificate-data: Y2VydA==, client-key-data: a2V}}]",
                   "kubeconfig %s: client-key-data is not base64");
}

static void ways_to_log_in_that_are_not_supported_say_so(void **state)
{
    (void)state;
    const char *const advice = "use a token or a client certificate (`kubectl create token` makes a token)";
    const struct {
        const char *user, *message;
    } cases[] = {
        {"exec: {command: aws, args: [eks]}", "logs in by running aws (exec), which is not supported; "},
        {"exec: {args: []}", "logs in by running a program (exec), which is not supported; "},
        {"auth-provider: {name: oidc}", "logs in by auth-provider oidc, which is not supported; "},
        {"username: a, password: s3cret", "logs in by username and password, which is not supported; "},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        _cleanup_(free_p) char *text =
            xasprintf("%susers: [{name: admin, user: {%s}}]", CONTEXT CLUSTERS, cases[i].user);
        _cleanup_(free_p) char *want = xasprintf("kubeconfig %%s: user \"admin\" %s%s", cases[i].message, advice);
        assert_refused(text, want);
    }
    assert_refused(CONTEXT CLUSTERS "users: [{name: admin, user: {token: t, as: root}}]",
                   "kubeconfig %s: user \"admin\" impersonates another (as), which is not supported");
    load(CONTEXT CLUSTERS "users: [{name: admin, user: {token: t, exec: null}}]", NULL); // kubectl writes this
    assert_string_equal(c.token, "t");
}

static void make_service_account(const char *ns)
{
    static const char *const parts[] = {"var", "var/run", "var/run/secrets", "var/run/secrets/kubernetes.io",
                                        "var/run/secrets/kubernetes.io/serviceaccount"};
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        _cleanup_(free_p) char *part = xasprintf("%s/%s", dir, parts[i]);
        assert_int_equal(mkdir(part, 0700), 0);
    }
    write_file("var/run/secrets/kubernetes.io/serviceaccount/token", "t0ken");
    write_file("var/run/secrets/kubernetes.io/serviceaccount/ca.crt", "ca");
    if (ns)
        write_file("var/run/secrets/kubernetes.io/serviceaccount/namespace", ns);
}

static void in_a_pod_the_service_account_is_used(void **state)
{
    (void)state;
    make_service_account("cadre-system\n");
    assert_int_equal(kube_config_in_cluster(dir, "10.0.0.1", "443", &c, &err), 0);
    _cleanup_(free_p) char *base = xasprintf("%s/var/run/secrets/kubernetes.io/serviceaccount", dir);
    assert_string_equal(c.server, "https://10.0.0.1:443");
    assert_string_equal(c.ns, "cadre-system");
    assert_string_equal(c.source, "in-cluster");
    assert_null(c.token);
    assert_true(str_starts(c.token_file, base) && text_ends(c.token_file, "/token"));
    assert_true(str_starts(c.ca_file, base) && text_ends(c.ca_file, "/ca.crt"));
}

static void an_ipv6_address_gets_its_brackets(void **state)
{
    (void)state;
    make_service_account(NULL);
    assert_int_equal(kube_config_in_cluster(dir, "fd00::1", "443", &c, &err), 0);
    assert_string_equal(c.server, "https://[fd00::1]:443");
    assert_string_equal(c.ns, "default");
}

static void outside_of_a_pod_that_is_said(void **state)
{
    (void)state;
    const char *const want = "this is not a pod of a cluster (KUBERNETES_SERVICE_HOST and _PORT are not set) and no "
                             "kubeconfig is given; name one";
    assert_int_equal(kube_config_in_cluster(dir, NULL, NULL, &c, &err), ERR_NOT_FOUND);
    assert_string_equal(err.msg, want);
    unsetenv("KUBERNETES_SERVICE_HOST");
    assert_int_equal(kube_config_load(NULL, NULL, &c, &err), ERR_NOT_FOUND);
    assert_string_equal(err.msg, want);
}

static void a_pod_without_a_token_is_told_why(void **state)
{
    (void)state;
    assert_int_equal(kube_config_in_cluster(dir, "10.0.0.1", "443", &c, &err), ERR_NOT_FOUND);
    _cleanup_(free_p) char *want =
        xasprintf("in-cluster: cannot read %s/var/run/secrets/kubernetes.io/serviceaccount/token; does the pod set "
                  "automountServiceAccountToken: false?",
                  dir);
    assert_string_equal(err.msg, want);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(the_current_context_decides),
        TEST(another_context_may_be_named_and_paths_are_relative_to_the_file),
        TEST(json_is_yaml_too),
        TEST(a_context_without_a_user_is_anonymous),
        TEST(data_wins_over_a_file),
        TEST(the_first_file_of_a_list_that_exists_is_read),
        TEST(a_file_that_does_not_exist_is_named),
        TEST(a_file_that_is_too_long_is_not_read),
        TEST(what_is_no_kubeconfig_is_refused),
        TEST(what_is_not_there_is_named_with_what_is),
        TEST(a_server_has_to_be_an_address),
        TEST(data_has_to_be_base64),
        TEST(ways_to_log_in_that_are_not_supported_say_so),
        TEST(in_a_pod_the_service_account_is_used),
        TEST(an_ipv6_address_gets_its_brackets),
        TEST(outside_of_a_pod_that_is_said),
        TEST(a_pod_without_a_token_is_told_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
