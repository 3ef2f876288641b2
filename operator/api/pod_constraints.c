// SPDX-License-Identifier: Apache-2.0
#include "operator/api/pod_constraints.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/api/json_table.h"
#include "operator/api/pod_requests.h"

struct term_item {
    struct match *labels, *fields;
    size_t n_labels, n_fields;
};

struct toleration_item {
    struct toleration toleration;
    const char *op;
};

struct constraints_view {
    struct term_item *terms;
    size_t n_terms;
    struct toleration_item *tolerations;
    size_t n_tolerations;
    int32_t priority;
    const char *preemption;
    struct labels node_selector;
};

#define MATCH(member) offsetof(struct match, member)
#define TERM(member) offsetof(struct term_item, member)
#define VIEW(member) offsetof(struct constraints_view, member)

// clang-format off
static const struct json_table match_table = JSON_TABLE(struct match,
    {"key", J_STRING, MATCH(key), .required = true},
    {"operator", J_STRING, MATCH(op_name), .required = true},
    {"values", J_STRINGS, MATCH(values), .offset_n = MATCH(n_values)});
static const struct json_table term_table = JSON_TABLE(struct term_item,
    {"matchExpressions", J_LIST, TERM(labels), .offset_n = TERM(n_labels), .table = &match_table},
    {"matchFields", J_LIST, TERM(fields), .offset_n = TERM(n_fields), .table = &match_table});
static const struct json_table required_table = JSON_TABLE(struct constraints_view,
    {"nodeSelectorTerms", J_LIST, VIEW(terms), .offset_n = VIEW(n_terms), .table = &term_table});
static const struct json_table node_affinity_table = JSON_TABLE(struct constraints_view,
    {"requiredDuringSchedulingIgnoredDuringExecution", J_OBJECT, .table = &required_table});
static const struct json_table affinity_table = JSON_TABLE(struct constraints_view,
    {"nodeAffinity", J_OBJECT, .table = &node_affinity_table});
static const struct json_table toleration_table = JSON_TABLE(struct toleration_item,
    {"key", J_STRING, offsetof(struct toleration, key)},
    {"value", J_STRING, offsetof(struct toleration, value)},
    {"effect", J_STRING, offsetof(struct toleration, effect)},
    {"operator", J_STRING, offsetof(struct toleration_item, op)});
static const struct json_table pin_table = JSON_TABLE(struct constraints_view,
    {"affinity", J_OBJECT, .table = &affinity_table});
static const struct json_table spec_table = JSON_TABLE(struct constraints_view,
    {"affinity", J_OBJECT, .table = &affinity_table},
    {"tolerations", J_LIST, VIEW(tolerations), .offset_n = VIEW(n_tolerations), .table = &toleration_table},
    {"priority", J_I32, VIEW(priority)},
    {"preemptionPolicy", J_STRING, VIEW(preemption)},
    {"nodeSelector", J_LABELS, VIEW(node_selector)});
// clang-format on

static const char *term_pin(const struct term_item *t)
{
    for (size_t i = 0; i < t->n_fields; i++) {
        const struct match *m = &t->fields[i];
        if (str_eq(m->key, "metadata.name") && str_eq(m->op_name, "In") && m->n_values == 1)
            return m->values[0];
    }
    return NULL;
}

int pod_pin_decode(const struct json *spec, struct arena *scratch, const char **ret, struct err *err)
{
    struct constraints_view v = {0};
    *ret = NULL;
    if (!json_get(spec, "affinity"))
        return 0;
    int r = json_decode(&pin_table, spec, "spec", &v, scratch, err);
    for (size_t i = 0; i < v.n_terms; i++) {
        const char *pin = term_pin(&v.terms[i]);
        if (!pin || (i && !str_eq(pin, *ret))) {
            *ret = NULL;
            break;
        }
        *ret = pin;
    }
    return r;
}

static int op_convert(struct match *m, struct err *err)
{
    static const char *const names[] = {
        [MATCH_IN] = "In", [MATCH_NOT_IN] = "NotIn", [MATCH_EXISTS] = "Exists", [MATCH_NOT_EXISTS] = "DoesNotExist",
        [MATCH_GT] = "Gt", [MATCH_LT] = "Lt"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (str_eq(m->op_name, names[i])) {
            m->op = (enum match_op)i;
            return 0;
        }
    }
    return err_set(err, ERR_INVALID,
                   "spec.affinity.nodeAffinity: unknown operator \"%.32s\" for \"%.64s\"; known are In, NotIn, Exists, "
                   "DoesNotExist, Gt and Lt",
                   m->op_name, m->key);
}

static int terms_convert(const struct constraints_view *v, struct arena *a, struct pod_constraints *ret,
                         struct err *err)
{
    ret->terms = arena_array(a, v->n_terms, sizeof *ret->terms);
    ret->n_terms = v->n_terms;
    for (size_t i = 0; i < v->n_terms; i++) {
        const struct term_item *from = &v->terms[i];
        struct node_term *to = &ret->terms[i];
        to->matches = arena_array(a, from->n_labels + from->n_fields, sizeof *to->matches);
        for (; to->n < from->n_labels + from->n_fields; to->n++) {
            bool field = to->n >= from->n_labels;
            struct match *m = &to->matches[to->n];
            *m = field ? from->fields[to->n - from->n_labels] : from->labels[to->n];
            m->field = field;
            int r = op_convert(m, err);
            if (r < 0)
                return r;
        }
    }
    return 0;
}

static void tolerations_convert(const struct constraints_view *v, struct arena *a, struct pod_constraints *ret)
{
    ret->tolerations = arena_array(a, v->n_tolerations, sizeof *ret->tolerations);
    for (size_t i = 0; i < v->n_tolerations; i++) {
        const struct toleration_item *from = &v->tolerations[i];
        bool exists = str_eq(from->op, "Exists"), equal = str_empty(from->op) || str_eq(from->op, "Equal");
        if (!exists && !equal) // an unknown operator tolerates nothing
            continue;
        struct toleration *to = &ret->tolerations[ret->n_tolerations++];
        *to = from->toleration;
        to->exists = exists;
    }
}

static int convert(const struct json *root, struct arena *a, struct pod_constraints *ret, struct err *err)
{
    struct constraints_view v = {0};
    *ret = (struct pod_constraints){0};
    int r = json_get(root, "spec") ? 0 : err_set(err, ERR_INVALID, "spec: missing");
    if (r == 0)
        r = json_decode(&spec_table, json_get(root, "spec"), "spec", &v, a, err);
    if (r == 0)
        r = pod_requests_decode(root, a, &ret->requests, err);
    if (r == 0)
        r = terms_convert(&v, a, ret, err);
    if (r < 0)
        return r;
    tolerations_convert(&v, a, ret);
    ret->priority = v.priority;
    ret->preempts = !str_eq(v.preemption, "Never");
    ret->node_selector = v.node_selector;
    return 0;
}

int pod_constraints_decode(const char *json, size_t len, struct arena *a, struct pod_constraints *ret, struct err *err)
{
    struct arena scratch = ARENA_INIT; // for the text of the pod. The result is small, and lives as long as the group
    struct json *root;
    int r = json_parse(json, len, NULL, &scratch, &root, err);
    if (r == 0)
        r = convert(root, a, ret, err);
    arena_done(&scratch);
    return r < 0 ? err_wrap(err, "Pod") : 0;
}
