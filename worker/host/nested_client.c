// SPDX-License-Identifier: Apache-2.0
#include "worker/host/nested_client.h"

#include "common/base/mem.h"
#include "common/base/str.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct nested_client {
    const struct host_options *options;
    char url[330];
    pthread_key_t line;
    pthread_mutex_t mutex; // of the namespace, the group and the rank, which are written once
    char *ns, *group;
    int rank;
};

static void line_free(void *line)
{
    struct nested_client_line *l = line;
    cadre_client_close(l->client);
    close(l->wake);
    free(l);
}

struct nested_client *nested_client_new(const struct host_options *o)
{
    struct nested_client *c = xcalloc(1, sizeof *c);
    c->options = o;
    if (o->n_connect) {
        const char *address = o->connect[0].address;
        const char *scheme = str_starts(address, "unix:") ? "" : o->connect[0].tls ? "wss://" : "ws://";
        snprintf(c->url, sizeof c->url, "%s%s", scheme, address);
    } else if (o->operator_url) {
        snprintf(c->url, sizeof c->url, "%s", o->operator_url);
    }
    pthread_mutex_init(&c->mutex, NULL);
    if (pthread_key_create(&c->line, line_free) != 0)
        abort(); // this process uses few keys
    return c;
}

void nested_client_free(struct nested_client *c)
{
    if (!c)
        return;
    pthread_key_delete(c->line);
    pthread_mutex_destroy(&c->mutex);
    free(c->ns);
    free(c->group);
    free(c);
}

void nested_client_place(struct nested_client *c, const char *ns, const char *group, int rank)
{
    pthread_mutex_lock(&c->mutex);
    if (!c->ns && ns && group) { // it is the same for all proxies
        c->ns = xstrdup(ns);
        c->group = xstrdup(group);
        c->rank = rank;
    }
    pthread_mutex_unlock(&c->mutex);
}

bool nested_client_where(struct nested_client *c, const char **ret_ns, const char **ret_group, int *ret_rank)
{
    pthread_mutex_lock(&c->mutex);
    *ret_ns = c->ns;
    *ret_group = c->group;
    *ret_rank = c->rank;
    pthread_mutex_unlock(&c->mutex);
    return *ret_ns != NULL;
}

static cadre_client *dial(struct nested_client *c, cadre_client_error *error)
{
    cadre_client_options o;
    cadre_client *client = NULL;
    int rank;
    cadre_client_options_init(&o);
    if (!c->url[0] || !nested_client_where(c, &o.ns, &o.group, &rank)) {
        *error = (cadre_client_error){.code = CADRE_CLIENT_UNAVAILABLE, .name = "UNAVAILABLE"};
        snprintf(error->message, sizeof error->message,
                 "the proxy has not said yet which group this worker belongs to");
        return NULL;
    }
    o.address = c->url;
    o.ca_pem = c->options->ca_pem;
    if (access(NESTED_CLIENT_TOKEN_FILE, R_OK) == 0)
        o.token_file = NESTED_CLIENT_TOKEN_FILE;
    else
        o.token = "none"; // without a cluster, the socket is trusted, and any token works
    cadre_client_open(&o, &client, error);
    return client;
}

struct nested_client_line *nested_client_line(struct nested_client *c, cadre_client_error *error)
{
    struct nested_client_line *l = pthread_getspecific(c->line);
    if (l)
        return l;
    cadre_client *client = dial(c, error);
    if (!client)
        return NULL;
    l = xcalloc(1, sizeof *l);
    *l = (struct nested_client_line){client, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    if (l->wake < 0 || pthread_setspecific(c->line, l) != 0)
        abort(); // without descriptors nothing else works
    return l;
}
