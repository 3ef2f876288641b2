// SPDX-License-Identifier: Apache-2.0
#include "operator/api/podagent.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/api/meta.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define DIRECTORY "/cadre"
#define PROGRAM "/usr/bin/cadre-agent" // in our image
#define TOKEN_NAME "cadre-token"
#define TOKEN_DIRECTORY "/var/run/secrets/cadre.dev"

enum { GRACE_DEFAULT_S = 30, GRACE_OWN_S = 5 };

int64_t podagent_grace_s(int64_t grace_s)
{
    return MAX(grace_s - GRACE_OWN_S, INT64_C(1));
}

static int64_t template_grace_s(const struct json *spec)
{
    int64_t s;
    return json_i64(json_get(spec, "terminationGracePeriodSeconds"), &s) && s >= 0 ? s : GRACE_DEFAULT_S;
}

static void write_mount(struct json_writer *w, const char *name, const char *path, bool read_only)
{
    writer_print(w, NULL, read_only ? "{'name':%s,'mountPath':%s,'readOnly':true}" : "{'name':%s,'mountPath':%s}", name,
                 path);
}

bool podagent_is_in(const struct pod_agent *agent, const struct json *container)
{
    return json_str_is(json_get(container, "image"), agent->image);
}

// Requests equal limits, so the template still decides the QoS class of the pod. The rest meets the Pod Security
// Standard "restricted".
void podagent_write_install(struct json_writer *w, const struct pod_agent *agent)
{
    writer_object(w, NULL);
    writer_str(w, "name", PODAGENT_NAME);
    writer_str(w, "image", agent->image);
    writer_str_set(w, "imagePullPolicy", agent->pull_policy);
    writer_print(w, "command", "['" PROGRAM "','install','" DIRECTORY "']");
    writer_print(w, "resources", "{'requests':{'cpu':'100m','memory':'32Mi'},'limits':{'cpu':'100m','memory':'32Mi'}}");
    writer_print(w, "securityContext",
                 "{'runAsNonRoot':true,'runAsUser':65532,'allowPrivilegeEscalation':false,"
                 "'readOnlyRootFilesystem':true,'capabilities':{'drop':['ALL']},"
                 "'seccompProfile':{'type':'RuntimeDefault'}}");
    writer_list(w, "volumeMounts");
    write_mount(w, PODAGENT_NAME, DIRECTORY, false);
    writer_list_end(w);
    writer_object_end(w);
}

static void copy_items(struct json_writer *w, const struct json *list)
{
    JSON_FOREACH(item, list)
        writer_copy(w, item);
}

void podagent_write_volumes(struct json_writer *w, bool installed, const struct json *theirs)
{
    writer_list(w, "volumes");
    if (installed)
        writer_print(w, NULL, "{'name':'" PODAGENT_NAME "','emptyDir':{}}");
    writer_print(w, NULL,
                 "{'name':'" TOKEN_NAME "','projected':{'sources':[{'serviceAccountToken':{'audience':'cadre',"
                 "'expirationSeconds':3600,'path':'token'}}]}}");
    copy_items(w, theirs);
    writer_list_end(w);
}

static const char *const owned[] = {"command", "args", "volumeMounts"};

bool podagent_owns(const struct json *member)
{
    for (size_t i = 0; i < ARRAY_LEN(owned); i++)
        if (json_key_is(member, owned[i]))
            return true;
    return false;
}

int podagent_check(const struct json *container, const char *path, struct err *err)
{
    for (size_t i = 0; i < ARRAY_LEN(owned); i++) {
        const struct json *v = json_get(container, owned[i]);
        if (v && v->type != JSON_LIST)
            return err_set(err, ERR_INVALID, "%s.%s: expected list, got %s", path, owned[i], json_type_name(v->type));
    }
    return 0;
}

void podagent_write_container(struct json_writer *w, const struct pod_agent *agent, const struct json *spec,
                              const struct json *container)
{
    char grace[24];
    bool installed = !podagent_is_in(agent, container);
    const struct json *command = json_get(container, "command");
    snprintf(grace, sizeof grace, "%" PRId64, podagent_grace_s(template_grace_s(spec)));
    writer_list(w, "command");
    writer_str(w, NULL, installed ? DIRECTORY "/cadre-agent" : PROGRAM);
    writer_str(w, NULL, "--grace");
    writer_str(w, NULL, grace);
    if (!agent->brings_command && json_count(command)) {
        writer_str(w, NULL, "--");
        copy_items(w, command);
        copy_items(w, json_get(container, "args"));
    }
    writer_list_end(w);
    writer_list(w, "volumeMounts");
    if (installed)
        write_mount(w, PODAGENT_NAME, DIRECTORY, true);
    write_mount(w, TOKEN_NAME, TOKEN_DIRECTORY, true);
    copy_items(w, json_get(container, "volumeMounts"));
    writer_list_end(w);
}

void podagent_write_env(struct json_writer *w, const struct pod_agent *agent)
{
    env_write(w, "CADRE_OPERATOR", agent->url);
    env_write(w, "CADRE_CA", agent->ca_pem);
    for (size_t i = 0; i < agent->n_env; i++)
        if (agent->env[i].value_from)
            writer_print(w, NULL, "{'name':%s,'valueFrom':%-s}", agent->env[i].name, agent->env[i].value_from);
}

static const char *find_name(const struct json *spec, const char *list, const char *name, struct arena *a)
{
    size_t i = 0;
    JSON_FOREACH(item, json_get(spec, list)) {
        if (json_str_is(json_get(item, "name"), name))
            return arena_printf(a, "spec.template.spec.%s[%zu].name", list, i);
        i++;
    }
    return NULL;
}

static bool same_directory(const char *path, const char *directory)
{
    size_t n = strlen(directory);
    return str_starts(path, directory) && path[n + strspn(path + n, "/")] == '\0';
}

static const char *find_mount(const struct json *container, struct arena *a)
{
    size_t i = 0;
    JSON_FOREACH(item, json_get(container, "volumeMounts")) {
        const char *path = json_str(json_get(item, "mountPath"), a);
        if (path && (same_directory(path, DIRECTORY) || same_directory(path, TOKEN_DIRECTORY)))
            return arena_printf(a, "spec.template.spec.containers[0].volumeMounts[%zu].mountPath", i);
        i++;
    }
    return NULL;
}

struct podagent_facts podagent_inspect(const struct json *spec, struct arena *a)
{
    const struct json *first = json_get(spec, "containers")->child;
    const char *const taken[] = {
        find_name(spec, "containers", PODAGENT_NAME, a),
        find_name(spec, "initContainers", PODAGENT_NAME, a),
        find_name(spec, "volumes", PODAGENT_NAME, a),
        find_name(spec, "volumes", TOKEN_NAME, a),
        find_mount(first, a),
    };
    struct podagent_facts facts = {.has_command = json_count(json_get(first, "command")) > 0,
                                   .grace_s = template_grace_s(spec)};
    for (size_t i = 0; i < ARRAY_LEN(taken) && !facts.taken; i++)
        facts.taken = taken[i];
    return facts;
}
