// SPDX-License-Identifier: Apache-2.0
#include "worker/host/instance.h"

#include "common/base/arena.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "worker/host/crash.h"

#include <stdlib.h>
#include <string.h>

struct instance {
    struct executor_job job; // the constructor's, later the destructor's
    struct instance_config config;
    char *init;
    struct arena arena; // what was read from init; freed when the constructor has returned
    void *self;
    cadre_result created;
};

static void release(struct instance *i)
{
    arena_done(&i->arena);
    free(i->init);
    free(i);
}

static void run_create(struct executor_job *job)
{
    struct instance *i = CONTAINER_OF(job, struct instance, job);
    crash_prepare_thread();
    crash_doing(i->config.class->name, "create", NULL);
    i->created = i->config.class->create(i->config.worker, i->init, strlen(i->init), &i->self);
    crash_doing(NULL, NULL, NULL);
}

static void create_done(struct executor_job *job)
{
    struct instance *i = CONTAINER_OF(job, struct instance, job);
    struct err err = ERR_INIT;
    const char *said = i->config.worker->message;
    i->config.worker->init = NULL;
    arena_done(&i->arena);
    struct published *p = &i->config.worker->published;
    for (size_t k = 0; k < p->n_groups && i->created == CADRE_OK; k++)
        p->groups[k].lane = method_executor_add_lane(i->config.executor, p->groups[k].limit);
    if (i->created != CADRE_OK && !str_empty(said))
        err_set(&err, ERR_INVALID, "%s: %s", i->config.class->name, said);
    else if (i->created != CADRE_OK)
        err_set(&err, ERR_INVALID, "%s: the constructor failed (cadre_result %d) and did not say why",
                i->config.class->name, (int)i->created);
    i->config.on_created(i->config.ctx, &err);
    if (err.code != 0)
        release(i);
}

struct instance *instance_new(const struct instance_config *config, struct err *err)
{
    struct instance *i = xcalloc(1, sizeof *i);
    struct json *init;
    i->config = *config;
    i->init = xstrdup(str_empty(config->init) ? "{}" : config->init);
    i->job = (struct executor_job){.run = run_create, .done = create_done};
    if (json_parse(i->init, strlen(i->init), NULL, &i->arena, &init, err) < 0) {
        err_wrap(err, "the constructor's argument (init)");
    } else {
        config->worker->init = init;
        config->worker->arena = &i->arena;
        config->worker->class = config->class;
        if (method_executor_submit(config->executor, &i->job, err) == 0)
            return i;
    }
    release(i);
    return NULL;
}

void *instance_self(const struct instance *i)
{
    return i->self;
}

unsigned instance_lane(const struct instance *i, const char *method)
{
    return published_lane(&i->config.worker->published, method);
}

static void run_destroy(struct executor_job *job)
{
    struct instance *i = CONTAINER_OF(job, struct instance, job);
    crash_doing(i->config.class->name, "destroy", NULL);
    if (i->config.class->destroy)
        i->config.class->destroy(i->self);
    crash_doing(NULL, NULL, NULL);
}

static void destroy_done(struct executor_job *job)
{
    struct instance *i = CONTAINER_OF(job, struct instance, job);
    struct instance_config config = i->config;
    release(i);
    config.on_destroyed(config.ctx);
}

void instance_destroy(struct instance *i)
{
    struct err err = ERR_INIT;
    i->job = (struct executor_job){.run = run_destroy, .done = destroy_done, .alone = true};
    if (method_executor_submit(i->config.executor, &i->job, &err) < 0)
        abort(); // the owner has withdrawn every call
}
