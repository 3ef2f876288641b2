// SPDX-License-Identifier: Apache-2.0
// The ABI for communicators of methods: who the members are, and how they meet. worker/collective does the rest.
#include "sdk/c/include/cadre/collective.h"

#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "worker/collective/comm.h"
#include "worker/host/host_call.h"
#include "worker/host/method_executor.h"
#include "worker/host/rendezvous.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

struct members {
    int *ranks;
    int n, index;
};

static int find_own(struct members *s, int rank, struct err *err)
{
    s->index = -1;
    for (int i = 0; i < s->n; i++) {
        if (s->ranks[i] == rank)
            s->index = i;
        for (int k = 0; k < i; k++)
            if (s->ranks[k] == s->ranks[i])
                return err_set(err, ERR_INVALID, "rank %d is in the list of members twice", s->ranks[i]);
    }
    return s->index < 0 ? err_set(err, ERR_INVALID, "rank %d is not in its own list of members", rank) : 0;
}

static int list_ranks(const int *ranks, size_t n, int world, struct members *ret, struct err *err)
{
    ret->n = (int)n;
    ret->ranks = xcalloc(n, sizeof *ret->ranks);
    for (size_t i = 0; i < n; i++) {
        ret->ranks[i] = ranks ? ranks[i] : (int)i;
        if (ret->ranks[i] < 0 || ret->ranks[i] >= world)
            return err_set(err, ERR_INVALID, "there is no rank %d; the group has %d", ret->ranks[i], world);
    }
    return 0;
}

// Lists the ranks that differ from this rank only in one dimension.
static int list_dim(struct rendezvous *rv, const cadre_comm_options *o, int rank, int world, struct members *ret,
                    struct err *err)
{
    _cleanup_(arena_done) struct arena a = ARENA_INIT;
    struct mesh mesh;
    int r = rendezvous_mesh(rv, o->mesh, (uint32_t)world, &a, &mesh, err), dim = r < 0 ? -1 : mesh_find(&mesh, o->dim);
    if (r == 0 && dim < 0)
        r = err_set(err, ERR_INVALID, "mesh '%s' has no dimension '%s'", mesh.name, o->dim);
    if (r == 0) {
        int stride = 1;
        for (size_t i = (size_t)dim + 1; i < mesh.n_dims; i++)
            stride *= (int)mesh.dims[i].size;
        ret->n = (int)mesh.dims[dim].size;
        ret->ranks = xcalloc((size_t)ret->n, sizeof *ret->ranks);
        for (int i = 0; i < ret->n; i++)
            ret->ranks[i] = rank + (i - (int)mesh_at(&mesh, (uint32_t)rank, dim)) * stride;
    }
    return r;
}

static int list_members(struct rendezvous *rv, const cadre_comm_options *o, struct members *ret, struct err *err)
{
    int rank = rendezvous_rank(rv), world = rendezvous_world(rv);
    if ((o->dim != NULL) + (o->ranks != NULL) > 1 || (o->mesh && !o->dim) || (o->ranks && !o->n_ranks))
        return err_set(err, ERR_INVALID, "members are a list of ranks, or a dimension of a mesh, or neither for all");
    size_t n = o->ranks ? o->n_ranks : (size_t)world;
    if (!o->dim && n > COMM_MEMBERS_MAX)
        return err_set(err, ERR_LIMIT, "a communicator has at most %d members", COMM_MEMBERS_MAX);
    int r = o->dim ? list_dim(rv, o, rank, world, ret, err) : list_ranks(o->ranks, n, world, ret, err);
    return r < 0 ? r : find_own(ret, rank, err);
}

// Returns the address of this end. The other members reach this host at the same address.
static void address_of(int fd, char out[INET6_ADDRSTRLEN])
{
    struct sockaddr_storage at = {0};
    socklen_t len = sizeof at;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&at;
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)&at;
    out[0] = '\0';
    if (getsockname(fd, (struct sockaddr *)&at, &len) != 0)
        return;
    if (at.ss_family == AF_INET)
        inet_ntop(AF_INET, &v4->sin_addr, out, INET6_ADDRSTRLEN);
    else if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr))
        inet_ntop(AF_INET, &v6->sin6_addr.s6_addr[12], out, INET6_ADDRSTRLEN);
    else
        inet_ntop(AF_INET6, &v6->sin6_addr, out, INET6_ADDRSTRLEN);
}

// Makes a communicator of that list. It sets limit_ms and canceled of the list, because the communicator waits no
// longer than the call may take. Only the back end, the limit and the stream of `o` count. `names` of the members are
// for messages. Returns the errors of rendezvous_meet() and comm_new().
static int meet(struct cadre_call *c, const struct rendezvous_list *who, const char *const *names,
                const cadre_comm_options *o, cadre_comm **ret, struct err *err)
{
    int64_t left = c->nested.deadline ? c->nested.deadline - clock_mono_ms(&clock_system) : INT64_MAX;
    int64_t limit = o->limit_ms > 0 ? o->limit_ms : rendezvous_limit_ms(c->nested.rendezvous);
    _cleanup_(free_p) int *links = xcalloc((size_t)who->n, sizeof *links);
    char address[INET6_ADDRSTRLEN] = "";
    const char *debug = getenv("CADRE_COLLECTIVE_DEBUG");
    struct rendezvous_list list = *who;
    list.limit_ms = MIN(limit, MAX(left, (int64_t)1));
    list.canceled = &c->canceled;
    method_executor_waits();
    int r = list.n > 1 ? rendezvous_meet(c->nested.rendezvous, &list, links, err) : 0;
    if (r < 0)
        return r;
    for (int i = 0; list.n > 1 && !address[0] && i < (list.index ? 1 : list.n); i++)
        if ((list.index || i) && links[i] >= 0)
            address_of(links[i], address);
    r = comm_new(&(struct comm_config){.backend = o->backend ? o->backend : "gloo",
                                       .address = address,
                                       .names = names,
                                       .index = list.index,
                                       .n = list.n,
                                       .links = links,
                                       .limit_ms = limit,
                                       .stream = o->stream,
                                       .debug = str_eq(debug, "1")},
                 ret, err);
    if (list.n > 1)
        rendezvous_end(c->nested.rendezvous, &list, r == 0);
    return r;
}

static int join(struct cadre_call *c, const cadre_comm_options *o, const struct members *s, cadre_comm **ret,
                struct err *err)
{
    _cleanup_(arena_done) struct arena a = ARENA_INIT;
    const struct rendezvous_list list = {.ranks = s->ranks, .n = s->n, .index = s->index};
    const char **names = arena_array(&a, (size_t)s->n, sizeof *names);
    for (int i = 0; i < s->n; i++)
        names[i] = arena_printf(&a, "rank %d", s->ranks[i]);
    return meet(c, &list, names, o, ret, err);
}

CADRE_EXPORT cadre_result cadre_comm_new(cadre_call *c, const cadre_comm_options *options, cadre_comm **ret)
{
    cadre_comm_options o = {.size = sizeof o};
    struct members s = {NULL};
    struct err err = ERR_INIT;
    *ret = NULL;
    if (options)
        memcpy(&o, options, MIN(options->size, sizeof o));
    if (!c->nested.rendezvous)
        return call_fail(c, CADRE_ERROR, "%s() cannot meet other ranks: this process belongs to no group", c->method);
    int r = list_members(c->nested.rendezvous, &o, &s, &err);
    if (r == 0)
        r = join(c, &o, &s, ret, &err);
    free(s.ranks);
    if (r == ERR_CANCELED)
        return CADRE_CANCELED;
    return r == 0 ? CADRE_OK
                  : call_fail(c, r == ERR_INVALID ? CADRE_INVALID_ARGUMENT : CADRE_ERROR, "%s(): a communicator: %s",
                              c->method, err.msg);
}
