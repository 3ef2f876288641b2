// SPDX-License-Identifier: Apache-2.0
// The pod is rendered member by member. Members that Cadre does not own are copied as text, so unknown fields and every
// digit of a number survive.
#include "operator/api/podtemplate.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/api/meta.h"
#include "operator/api/podagent.h"
#include "operator/api/quantity.h"
#include "operator/api/resource.h"

#include <stdlib.h>
#include <string.h>

// etcd accepts 1.5 MiB. A pod over this limit is refused before it costs memory.
enum { POD_MAX = 4 * 1024 * 1024 };

struct render {
    struct json_writer w;
    const struct json *spec;
    bool installs; // an init container brings the agent
    const struct pod_render *r;
    struct arena *arena;
    struct err *err;
};

// Puts the member into *ret, NULL if it is missing or null. ERR_INVALID if it has another type. `path` is the path of
// `in`.
static int get_typed(const struct json *in, const char *path, const char *name, enum json_type type,
                     const struct json **ret, struct err *err)
{
    *ret = json_get(in, name);
    if (*ret && (*ret)->type != type)
        return err_set(err, ERR_INVALID, "%s.%s: expected %s, got %s", path, name, json_type_name(type),
                       json_type_name((*ret)->type));
    return 0;
}

static int check_items(const struct json *list, const char *path, const char *name, struct err *err)
{
    size_t i = 0;
    JSON_FOREACH(item, list) {
        if (item->type != JSON_OBJECT)
            return err_set(err, ERR_INVALID, "%s.%s[%zu]: expected object, got %s", path, name, i,
                           json_type_name(item->type));
        i++;
    }
    return 0;
}

static int get_objects(const struct json *in, const char *path, const char *name, const struct json **ret,
                       struct err *err)
{
    int r = get_typed(in, path, name, JSON_LIST, ret, err);
    return r < 0 ? r : check_items(*ret, path, name, err);
}

static int parse_template(const char *text, struct arena *a, const struct json **ret_root, const struct json **ret_spec,
                          struct err *err)
{
    struct json *root;
    const struct json *containers;
    int r = json_parse(text, strlen(text), NULL, a, &root, err);
    if (r < 0)
        return err_wrap(err, "spec.template");
    *ret_root = root;
    if (root->type != JSON_OBJECT)
        return err_set(err, ERR_INVALID, "spec.template: expected object, got %s", json_type_name(root->type));
    r = get_typed(root, "spec.template", "spec", JSON_OBJECT, ret_spec, err);
    if (r == 0 && !*ret_spec)
        r = err_set(err, ERR_INVALID, "spec.template.spec: missing");
    if (r == 0)
        r = get_objects(*ret_spec, "spec.template.spec", "containers", &containers, err);
    if (r == 0 && !json_count(containers))
        r = err_set(err, ERR_INVALID, "spec.template.spec.containers: at least one container is needed");
    return r;
}

static bool has_key(const struct labels *l, const struct json *member)
{
    for (size_t i = 0; i < l->n; i++)
        if (json_key_is(member, l->items[i].key))
            return true;
    return false;
}

static int write_map(struct render *o, const struct json *metadata, const char *name, const struct labels *ours)
{
    const struct json *theirs;
    int r = get_typed(metadata, "spec.template.metadata", name, JSON_OBJECT, &theirs, o->err);
    if (r < 0)
        return r;
    if (!ours->n && !theirs)
        return 0;
    writer_object(&o->w, name);
    JSON_FOREACH(m, theirs) {
        if (m->type != JSON_STRING)
            return err_set(o->err, ERR_INVALID, "spec.template.metadata.%s[\"%.*s\"]: expected string, got %s", name,
                           (int)MIN(m->key_len, 64u), m->key, json_type_name(m->type));
        if (!has_key(ours, m))
            writer_copy(&o->w, m);
    }
    for (size_t i = 0; i < ours->n; i++)
        writer_str(&o->w, ours->items[i].key, ours->items[i].value);
    writer_object_end(&o->w);
    return 0;
}

#define DEFAULT_CONTAINER "kubectl.kubernetes.io/default-container"

// Writes Cadre's annotations, the keys that the agent trusts, and the default container of `kubectl logs` and `kubectl
// exec`: the worker, unless the template names another one.
static struct labels annotations_of(const struct render *o, const struct json *metadata)
{
    const struct labels *ours = &o->r->annotations;
    const char *name = json_str(json_get(json_get(o->spec, "containers")->child, "name"), o->arena);
    struct labels all = {arena_array(o->arena, ours->n + 2, sizeof *all.items), 0};
    for (size_t i = 0; i < ours->n; i++)
        all.items[all.n++] = ours->items[i];
    if (o->r->agent && o->r->agent->keys_id)
        all.items[all.n++] = (struct label){ANNOTATION_KEYS, o->r->agent->keys_id};
    if (name && !json_get(json_get(metadata, "annotations"), DEFAULT_CONTAINER))
        all.items[all.n++] = (struct label){DEFAULT_CONTAINER, name};
    return all;
}

static int write_metadata(struct render *o, const struct json *root)
{
    const struct json *metadata;
    int r = get_typed(root, "spec.template", "metadata", JSON_OBJECT, &metadata, o->err);
    writer_object(&o->w, "metadata");
    writer_str(&o->w, "name", o->r->name);
    writer_str(&o->w, "namespace", o->r->ns);
    if (r == 0)
        r = write_map(o, metadata, "labels", &o->r->labels);
    struct labels annotations = annotations_of(o, metadata);
    if (r == 0)
        r = write_map(o, metadata, "annotations", &annotations);
    owner_write(&o->w, &o->r->owner);
    writer_object_end(&o->w);
    return r;
}

static void write_env(struct render *o, const struct json *theirs, const struct pod_agent *agent)
{
    writer_list(&o->w, "env");
    for (size_t i = 0; i < o->r->n_env; i++)
        env_write(&o->w, o->r->env[i].name, o->r->env[i].value);
    if (agent)
        podagent_write_env(&o->w, agent);
    JSON_FOREACH(item, theirs)
        writer_copy(&o->w, item);
    writer_list_end(&o->w);
}

// `agent`: the agent that starts the processes of the container, NULL = none.
static int write_container(struct render *o, const struct json *container, const char *path,
                           const struct pod_agent *agent)
{
    const struct json *env;
    int r = get_objects(container, path, "env", &env, o->err);
    if (r == 0 && agent)
        r = podagent_check(container, path, o->err);
    if (r < 0)
        return r;
    bool open = !json_get(container, "terminationMessagePolicy"); // missing or null
    writer_object(&o->w, NULL);
    JSON_FOREACH(m, container)
        if (!json_key_is(m, "env") && !(open && json_key_is(m, "terminationMessagePolicy")) &&
            !(agent && podagent_owns(m)))
            writer_copy(&o->w, m);
    if (open)
        writer_str(&o->w, "terminationMessagePolicy", "FallbackToLogsOnError");
    if (agent)
        podagent_write_container(&o->w, agent, o->spec, container);
    if (env || o->r->n_env || agent)
        write_env(o, env, agent);
    writer_object_end(&o->w);
    return 0;
}

static int write_containers(struct render *o, const struct json *spec, const char *name)
{
    const struct json *list;
    size_t i = 0;
    const struct pod_agent *agent = o->r->agent;
    bool init = strcmp(name, "initContainers") == 0;
    int r = get_objects(spec, "spec.template.spec", name, &list, o->err);
    if (r < 0 || (!list && !(init && o->installs)))
        return r;
    writer_list(&o->w, name);
    if (init && o->installs)
        podagent_write_install(&o->w, agent);
    JSON_FOREACH(container, list) {
        r = write_container(o, container, arena_printf(o->arena, "spec.template.spec.%s[%zu]", name, i),
                            !init && i == 0 ? agent : NULL);
        i++;
        if (r < 0)
            return r;
        if (o->w.buf.over)
            break;
    }
    writer_list_end(&o->w);
    return 0;
}

static int write_term(struct render *o, const struct json *term, const char *path)
{
    const struct json *fields = NULL, *labels = NULL;
    int r = get_objects(term, path, "matchFields", &fields, o->err);
    if (r == 0)
        r = get_objects(term, path, "matchExpressions", &labels, o->err);
    if (r < 0)
        return r;
    if (term && !json_count(fields) &&
        !json_count(labels)) { // an empty term matches no node; with the pin it would match one
        writer_copy(&o->w, term);
        return 0;
    }
    writer_object(&o->w, NULL);
    JSON_FOREACH(m, term)
        if (!json_key_is(m, "matchFields"))
            writer_copy(&o->w, m);
    writer_list(&o->w, "matchFields");
    JSON_FOREACH(item, fields)
        writer_copy(&o->w, item);
    writer_print(&o->w, NULL, "{'key':'metadata.name','operator':'In','values':[%s]}", o->r->pin);
    writer_list_end(&o->w);
    writer_object_end(&o->w);
    return 0;
}

static int write_terms(struct render *o, const struct json *required, const char *path)
{
    const struct json *terms;
    size_t i = 0;
    int r = get_objects(required, path, "nodeSelectorTerms", &terms, o->err);
    if (r < 0)
        return r;
    writer_list(&o->w, "nodeSelectorTerms");
    JSON_FOREACH(term, terms) {
        r = write_term(o, term, arena_printf(o->arena, "%s.nodeSelectorTerms[%zu]", path, i++));
        if (r < 0)
            return r;
    }
    if (!i)
        write_term(o, NULL, path);
    writer_list_end(&o->w);
    return 0;
}

// Writes the chain of objects from affinity down to the list of terms. Copies each of them, except for the next link.
static int write_affinity(struct render *o, const struct json *parent, const char *parent_path,
                          const char *const *chain)
{
    const struct json *v;
    int r = get_typed(parent, parent_path, chain[0], JSON_OBJECT, &v, o->err);
    if (r < 0)
        return r;
    const char *path = arena_printf(o->arena, "%s.%s", parent_path, chain[0]);
    const char *next = chain[1] ? chain[1] : "nodeSelectorTerms";
    writer_object(&o->w, chain[0]);
    JSON_FOREACH(m, v)
        if (!json_key_is(m, next))
            writer_copy(&o->w, m);
    r = chain[1] ? write_affinity(o, v, path, chain + 1) : write_terms(o, v, path);
    writer_object_end(&o->w);
    return r;
}

static bool owned(const struct render *o, const struct json *m)
{
    static const char *const names[] = {"restartPolicy", "hostname", "subdomain", "initContainers", "containers"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (json_key_is(m, names[i]))
            return true;
    return (o->r->pin && json_key_is(m, "affinity")) || (o->r->agent && json_key_is(m, "volumes"));
}

static int write_volumes(struct render *o, const struct json *spec)
{
    const struct json *theirs;
    int r = get_objects(spec, "spec.template.spec", "volumes", &theirs, o->err);
    if (r == 0)
        podagent_write_volumes(&o->w, o->installs, theirs);
    return r;
}

static int write_spec(struct render *o, const struct json *spec)
{
    static const char *const chain[] = {"affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution",
                                        NULL};
    writer_object(&o->w, "spec");
    JSON_FOREACH(m, spec)
        if (!owned(o, m))
            writer_copy(&o->w, m);
    writer_str(&o->w, "restartPolicy", "Never");
    writer_str_set(&o->w, "hostname", o->r->hostname);
    writer_str_set(&o->w, "subdomain", o->r->subdomain);
    int r = o->r->pin ? write_affinity(o, spec, "spec.template.spec", chain) : 0;
    if (r == 0 && o->r->agent)
        r = write_volumes(o, spec);
    if (r == 0)
        r = write_containers(o, spec, "initContainers");
    if (r == 0)
        r = write_containers(o, spec, "containers");
    writer_object_end(&o->w);
    return r;
}

static int render(struct render *o, const char *template_json)
{
    const struct json *root = NULL, *spec = NULL;
    int r = parse_template(template_json, o->arena, &root, &spec, o->err);
    if (r < 0)
        return r;
    writer_object(&o->w, NULL);
    kind_write(&o->w, KIND_POD);
    o->spec = spec;
    o->installs = o->r->agent && !podagent_is_in(o->r->agent, json_get(spec, "containers")->child);
    r = write_metadata(o, root);
    if (r == 0)
        r = write_spec(o, spec);
    writer_object_end(&o->w);
    return r;
}

int pod_render(const char *template_json, const struct pod_render *r, struct arena *a, const char **ret_json,
               struct err *err)
{
    struct arena scratch = ARENA_INIT; // a gang may have thousands of pods, and keeps only their texts
    struct render o = {.r = r, .arena = &scratch, .err = err, .w = WRITER_INIT_MAX(POD_MAX)};
    int code = render(&o, template_json);
    char *text = writer_finish(&o.w, a);
    arena_done(&scratch);
    if (code == 0 && !text)
        code = err_set(err, ERR_LIMIT, "spec.template: the pod would have more than %d MiB; make the template smaller",
                       POD_MAX >> 20);
    if (code == 0)
        *ret_json = text;
    return code;
}

// Writes canonical JSON: members sorted by name, no blanks, one way to escape strings, numbers as they came.
static int cmp_key(const void *a, const void *b)
{
    const struct json *x = *(const struct json *const *)a, *y = *(const struct json *const *)b;
    int r = memcmp(x->key, y->key, MIN(x->key_len, y->key_len));
    return r ? r : (x->key_len > y->key_len) - (x->key_len < y->key_len);
}

static void write_canonical(struct json_writer *w, const struct json *v, struct arena *a)
{
    if (v->type == JSON_STRING) {
        writer_str(w, NULL, json_str(v, a));
    } else if (v->type == JSON_LIST) {
        writer_list(w, NULL);
        JSON_FOREACH(item, v)
            write_canonical(w, item, a);
        writer_list_end(w);
    } else if (v->type == JSON_OBJECT) {
        size_t n = 0;
        const struct json **members = arena_array(a, json_count(v), sizeof *members);
        JSON_FOREACH(m, v)
            members[n++] = m;
        qsort(members, n, sizeof *members, cmp_key);
        writer_object(w, NULL);
        for (size_t i = 0; i < n; i++) {
            writer_key(w, members[i]->key, members[i]->key_len);
            write_canonical(w, members[i], a);
        }
        writer_object_end(w);
    } else {
        writer_raw(w, NULL, v->text, v->len);
    }
}

static uint64_t canonical_hash(const struct json *root, struct arena *a)
{
    struct json_writer w = WRITER_INIT;
    write_canonical(&w, root, a);
    uint64_t hash = str_hash(buf_str(&w.buf), w.buf.len);
    writer_done(&w);
    return hash;
}

bool template_reserves(const char *const *reserved, const char *name)
{
    for (; *reserved; reserved++) {
        if (**reserved == '!' && str_eq(name, *reserved + 1))
            return false;
        size_t n = strlen(*reserved);
        if (n && (*reserved)[n - 1] == '*' ? strncmp(name, *reserved, n - 1) == 0 : str_eq(name, *reserved))
            return true;
    }
    return false;
}

static void note_owned(struct template_facts *ret, const char *path, const char *why)
{
    if (ret->owned)
        return;
    ret->owned = path;
    ret->owned_why = why;
}

// Fields that would bypass the planner, hide a rank from the others, or restart a rank without the group's knowledge.
// An empty string counts as missing.
static int inspect_pod(const struct json *spec, struct arena *a, struct template_facts *ret, struct err *err)
{
    static const struct {
        const char *name, *allowed, *why;
    } fields[] = {
        {"nodeName", "", "Cadre chooses the nodes: narrow its choice with nodeSelector or affinity"},
        {"hostname", "", "Cadre names the hosts, so that ranks find each other: leave it out"},
        {"subdomain", "", "Cadre names the hosts, so that ranks find each other: leave it out"},
        {"hostnameOverride", "", "Cadre names the hosts, so that ranks find each other: leave it out"},
        {"restartPolicy", "Never",
         "a restart by the kubelet would tear the group apart: leave it out and use spec.restartPolicy of the "
         "WorkerGroup"},
    };
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        const struct json *v;
        int r = get_typed(spec, "spec.template.spec", fields[i].name, JSON_STRING, &v, err);
        if (r < 0)
            return r;
        if (v && !json_str_is(v, "") && !json_str_is(v, fields[i].allowed))
            note_owned(ret, arena_printf(a, "spec.template.spec.%s", fields[i].name), fields[i].why);
    }
    return 0;
}

static const char restarts_why[] = "a restart by the kubelet would tear the group apart: leave it out (init containers "
                                   "may have a restartPolicy) and use spec.restartPolicy of the WorkerGroup";

// Init containers run before the ranks start, and sidecars run beside them. Both may restart.
static int inspect_restarts(const struct json *container, const char *path, bool init, struct arena *a,
                            struct template_facts *ret, struct err *err)
{
    const struct json *policy = NULL, *rules = NULL;
    int r = get_typed(container, path, "restartPolicy", JSON_STRING, &policy, err);
    if (r == 0)
        r = get_typed(container, path, "restartPolicyRules", JSON_LIST, &rules, err);
    if (r < 0)
        return r;
    if (!init && policy && !json_str_is(policy, "Never"))
        note_owned(ret, arena_printf(a, "%s.restartPolicy", path), restarts_why);
    if (json_count(rules))
        note_owned(ret, arena_printf(a, "%s.restartPolicyRules", path), restarts_why);
    return 0;
}

static int inspect_containers(const struct json *spec, const char *name, const char *const *reserved, struct arena *a,
                              struct template_facts *ret, struct err *err)
{
    const struct json *list, *env;
    size_t i = 0;
    int r = get_objects(spec, "spec.template.spec", name, &list, err);
    if (r < 0)
        return r;
    JSON_FOREACH(container, list) {
        const char *path = arena_printf(a, "spec.template.spec.%s[%zu]", name, i++);
        r = get_objects(container, path, "env", &env, err);
        if (r == 0)
            r = inspect_restarts(container, path, strcmp(name, "initContainers") == 0, a, ret, err);
        if (r < 0)
            return r;
        JSON_FOREACH(item, env) {
            const char *env_name = json_str(json_get(item, "name"), a);
            if (ret->reserved_env || !env_name || !template_reserves(reserved, env_name))
                continue;
            const char *container_name = json_str(json_get(container, "name"), a);
            ret->reserved_env = env_name;
            ret->reserved_env_container = container_name ? container_name : "";
        }
    }
    return 0;
}

// The API server turns a limit without a request into a request, too.
static int64_t container_gpus(const struct json *container, struct arena *a)
{
    const struct json *resources = json_get(container, "resources");
    const struct json *asked = json_get(json_get(resources, "requests"), RESOURCE_GPU_NAME);
    asked = asked ? asked : json_get(json_get(resources, "limits"), RESOURCE_GPU_NAME);
    const char *text = json_str(asked, a);
    struct err ignored = ERR_INIT; // the API server reports what is wrong with it
    int64_t n = 0;
    if (text && quantity_parse(text, &n, &ignored) == 0)
        return MAX(n / 1000, (int64_t)0);
    return json_i64(asked, &n) ? MAX(n, (int64_t)0) : 0;
}

// Counts as pod_requests.h does. For sidecars, it is enough to add them to the containers.
static int64_t template_gpus(const struct json *spec, struct arena *a)
{
    int64_t sum = 0, most = 0;
    JSON_FOREACH(container, json_get(spec, "containers"))
        sum += container_gpus(container, a);
    JSON_FOREACH(init, json_get(spec, "initContainers")) {
        if (json_str_is(json_get(init, "restartPolicy"), "Always"))
            sum += container_gpus(init, a);
        else
            most = MAX(most, container_gpus(init, a));
    }
    return MAX(sum, most);
}

static int inspect(const char *template_json, const char *const *reserved, struct arena *a, struct template_facts *ret,
                   struct err *err)
{
    const struct json *root = NULL, *spec = NULL;
    int r = parse_template(template_json, a, &root, &spec, err);
    if (r == 0)
        r = inspect_pod(spec, a, ret, err);
    if (r == 0)
        r = inspect_containers(spec, "initContainers", reserved, a, ret, err);
    if (r == 0)
        r = inspect_containers(spec, "containers", reserved, a, ret, err);
    if (r != 0)
        return r;
    ret->hash = canonical_hash(root, a);
    ret->gpus = template_gpus(spec, a);
    ret->claims = json_count(json_get(spec, "resourceClaims"));
    struct podagent_facts agent = podagent_inspect(spec, a);
    ret->has_command = agent.has_command;
    ret->grace_s = agent.grace_s;
    ret->taken = agent.taken;
    return 0;
}

int template_inspect(const char *template_json, const char *const *reserved, struct arena *a,
                     struct template_facts *ret, struct err *err)
{
    struct arena scratch = ARENA_INIT;
    *ret = (struct template_facts){0};
    int r = inspect(template_json, reserved, &scratch, ret, err);
    ret->reserved_env = arena_strdup(a, ret->reserved_env);
    ret->reserved_env_container = arena_strdup(a, ret->reserved_env_container);
    ret->owned = arena_strdup(a, ret->owned);
    ret->taken = arena_strdup(a, ret->taken);
    arena_done(&scratch);
    return r;
}
