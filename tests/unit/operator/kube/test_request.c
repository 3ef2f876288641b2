// SPDX-License-Identifier: Apache-2.0
// tests/golden/request/<case>/{in.txt,want.txt}: a request as lines "field: value", and its form on the wire.
#include "operator/kube/kube_request.h"

#include "common/base/buf.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "tests/unit/support/golden.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

static enum verb verb_of(const char *name)
{
    static const char *const names[] = {"GET",         "LIST",       "WATCH", "CREATE", "UPDATE",
                                        "PATCH_MERGE", "PATCH_JSON", "APPLY", "DELETE"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (str_eq(names[i], name))
            return (enum verb)i;
    fail_msg("no verb is named %s", name);
    return VERB_GET;
}

static enum kind kind_of(const char *name)
{
    for (int i = 0; i < KIND_COUNT; i++)
        if (str_eq(kind_info(i)->kind, name))
            return (enum kind)i;
    fail_msg("no kind is named %s", name);
    return KIND_POD;
}

static int64_t number_of(const char *value)
{
    int64_t n = 0;
    assert_true(str_to_i64(value, &n));
    return n;
}

static void set_field(struct kube_request *r, const char *key, const char *value)
{
    const struct {
        const char *key;
        const char **field;
    } texts[] = {{"ns", &r->ns},
                 {"name", &r->name},
                 {"subresource", &r->subresource},
                 {"body", &r->body},
                 {"label_selector", &r->label_selector},
                 {"field_selector", &r->field_selector},
                 {"continue_token", &r->continue_token},
                 {"resource_version", &r->resource_version},
                 {"uid", &r->uid}};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        if (str_eq(texts[i].key, key)) {
            *texts[i].field = value;
            return;
        }
    }
    if (str_eq(key, "verb"))
        r->verb = verb_of(value);
    else if (str_eq(key, "kind"))
        r->kind = kind_of(value);
    else if (str_eq(key, "dry_run"))
        r->dry_run = str_eq(value, "true");
    else if (str_eq(key, "bookmarks"))
        r->bookmarks = str_eq(value, "true");
    else if (str_eq(key, "limit"))
        r->limit = (int32_t)number_of(value);
    else if (str_eq(key, "timeout_s"))
        r->timeout_s = (int32_t)number_of(value);
    else if (str_eq(key, "grace_s"))
        r->grace_s = number_of(value);
    else
        fail_msg("a request has no field %s", key);
}

static void parse_request(struct kube_request *r, char *text)
{
    char *rest = text, *line;
    while ((line = strsep(&rest, "\n"))) {
        char *value = strstr(line, ": ");
        if (!value)
            continue;
        *value = '\0';
        set_field(r, line, value + 2);
    }
}

static char *render_case(const char *name, const char *in, size_t len)
{
    (void)name, (void)len;
    _cleanup_(free_p) char *text = xstrdup(in);
    struct kube_request r = {.grace_s = -1};
    struct http_message m;
    struct arena a = ARENA_INIT;
    struct err err = ERR_INIT;
    char what[256];
    parse_request(&r, text);
    request_describe(&r, what, sizeof what);
    int e = request_render(&r, &a, &m, &err);
    char *out = e < 0 ? xasprintf("%s: %s\n", err_name(e), err.msg)
                      : xasprintf("# %s\n%s %s\n%s%s%s%s%s", what, m.method, m.path,
                                  m.content_type ? "Content-Type: " : "", m.content_type ? m.content_type : "",
                                  m.body ? "\n\n" : "", m.body ? m.body : "", m.body ? "\n" : "");
    if (e == 0)
        assert_int_equal(m.body_len, m.body ? strlen(m.body) : 0);
    arena_done(&a);
    return out;
}

static void requests_look_as_written(void **state)
{
    (void)state;
    assert_int_equal(golden_run("tests/golden/request", "in.txt", "want.txt", render_case), 0);
}

static void every_byte_of_a_selector_survives_its_encoding(void **state)
{
    (void)state;
    char selector[256];
    for (int c = 1; c < 256; c++)
        selector[c - 1] = (char)c;
    selector[255] = '\0';
    const struct kube_request r = {.verb = VERB_LIST, .kind = KIND_POD, .label_selector = selector};
    struct arena a = ARENA_INIT;
    struct err err = ERR_INIT;
    struct http_message m;
    assert_int_equal(request_render(&r, &a, &m, &err), 0);
    const char *p = strstr(m.path, "labelSelector=") + strlen("labelSelector=");
    for (int c = 1; c < 256; c++) {
        int got = (unsigned char)*p++;
        if (got == '%') {
            char hex[3] = {p[0], p[1], '\0'};
            got = (int)strtol(hex, NULL, 16);
            p += 2;
        } else {
            assert_true((got >= '0' && got <= '9') || (got >= 'a' && got <= 'z') || (got >= 'A' && got <= 'Z') ||
                        strchr("-_.~", got));
        }
        assert_int_equal(got, c);
    }
    assert_int_equal(*p, '\0');
    arena_done(&a);
}

static void a_path_has_a_limit(void **state)
{
    (void)state;
    enum { LONG = 70000 };
    char *selector = xmalloc(LONG + 1);
    memset(selector, 'a', LONG);
    selector[LONG] = '\0';
    const struct kube_request r = {.verb = VERB_LIST, .kind = KIND_POD, .label_selector = selector};
    struct arena a = ARENA_INIT;
    struct err err = ERR_INIT;
    struct http_message m;
    assert_int_equal(request_render(&r, &a, &m, &err), ERR_LIMIT);
    assert_string_equal(err.msg, "GET pods: selector or continue token is too long");
    arena_done(&a);
    free(selector);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_look_as_written),
        cmocka_unit_test(every_byte_of_a_selector_survives_its_encoding),
        cmocka_unit_test(a_path_has_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
