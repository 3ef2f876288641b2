// SPDX-License-Identifier: Apache-2.0
#include "worker/host/rendezvous.h"

#include "common/base/clock.h"
#include "common/base/cond.h"
#include "common/base/file.h"
#include "common/base/list.h"
#include "common/base/str.h"
#include "common/wire/peer_key.h"
#include "worker/host/dial.h"
#include "worker/host/rank_sockets.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SLICE_MS = 100, GRACE_MS = 1000, NUMBERS_MAX = 64 };

struct joiner { // a connection that has arrived, before its list asks for it
    struct list link;
    int fd;
    uint64_t id;
    uint32_t index;
    int64_t until;
};

struct query { // a thread that wants to know where a rank is
    struct list link;
    struct rendezvous_question question;
    char at[RENDEZVOUS_AT_SIZE], key[PEER_KEY_SIZE]; // "" = no answer yet
};

// Communicators of the same ranks have numbers. The hash and the number make the id of their rendezvous. A number is
// free again if its communicator was not made, so members that failed at different points have the same number next.
struct list_count {
    uint64_t hash;
    uint64_t n;          // the communicators with smaller numbers were made
    uint64_t busy, made; // bit i: communicator n + i is being made, or was made
};

struct rendezvous {
    struct rendezvous_config config;
    struct loop_wakeup *wakeup;
    pthread_mutex_t mutex; // of the following members
    pthread_cond_t changed;
    struct list joiners, queries;
    size_t n_joiners;
    struct list_count *lists;
    size_t n_lists;
    struct arena memory;    // of the meshes
    struct mesh *meshes[2]; // of the object's spec, and published
    size_t n_meshes[2];
};

static int64_t now_ms(void)
{
    return clock_mono_ms(&clock_system);
}

// The loop's side

static void on_wakeup(void *ctx)
{
    struct rendezvous *rv = ctx;
    struct rendezvous_question questions[64]; // if more threads wait, they ask again later
    size_t n = 0;
    pthread_mutex_lock(&rv->mutex);
    LIST_FOREACH(l, &rv->queries)
        if (n < ARRAY_LEN(questions))
            questions[n++] = CONTAINER_OF(l, struct query, link)->question;
    pthread_mutex_unlock(&rv->mutex);
    for (size_t i = 0; i < n; i++)
        rv->config.ask(rv->config.ctx, &questions[i]);
}

struct rendezvous *rendezvous_new(const struct rendezvous_config *config)
{
    struct rendezvous *rv = xcalloc(1, sizeof *rv);
    rv->config = *config;
    rv->wakeup = loop_wakeup_new(config->loop, on_wakeup, rv);
    list_init(&rv->joiners);
    list_init(&rv->queries);
    pthread_mutex_init(&rv->mutex, NULL);
    cond_init(&rv->changed);
    return rv;
}

static int take_joiner(struct rendezvous *rv, struct joiner *g)
{
    int fd = g->fd;
    list_remove(&g->link);
    rv->n_joiners--;
    free(g);
    return fd;
}

void rendezvous_free(struct rendezvous *rv)
{
    if (!rv)
        return;
    LIST_FOREACH(l, &rv->joiners)
        close(take_joiner(rv, CONTAINER_OF(l, struct joiner, link)));
    loop_wakeup_free(rv->wakeup);
    pthread_cond_destroy(&rv->changed);
    pthread_mutex_destroy(&rv->mutex);
    arena_done(&rv->memory);
    free(rv->lists);
    free(rv);
}

// Several proxies answer. A late answer may be to an earlier question with the same id: its key does not fit this one.
void rendezvous_place(struct rendezvous *rv, uint64_t id, int64_t until, const char *at, const char *key)
{
    pthread_mutex_lock(&rv->mutex);
    LIST_FOREACH(l, &rv->queries) {
        struct query *q = CONTAINER_OF(l, struct query, link);
        if (q->question.id != id || (until && q->question.until != until) || strlen(key) >= sizeof q->key)
            continue;
        snprintf(q->at, sizeof q->at, "%s", at);
        snprintf(q->key, sizeof q->key, "%s", key);
    }
    pthread_cond_broadcast(&rv->changed);
    pthread_mutex_unlock(&rv->mutex);
}

void rendezvous_meshes(struct rendezvous *rv, const struct mesh *meshes, size_t n, bool published)
{
    pthread_mutex_lock(&rv->mutex);
    if (!rv->meshes[published]) {
        rv->meshes[published] = meshes_copy(meshes, n, &rv->memory);
        rv->n_meshes[published] = n;
    }
    pthread_mutex_unlock(&rv->mutex);
}

bool rendezvous_admits(const char *secret, const struct peer_request *g, struct err *err)
{
    char text[PEER_TEXT_SIZE];
    peer_rendezvous_text(g->id, g->place, g->until, text);
    if (!secret)
        err_set(err, ERR_UNAVAILABLE, "this worker does not know the group's keys yet");
    else if (!peer_key_good(secret, text, g->key, sizeof g->key))
        err_set(err, ERR_FORBIDDEN, "the key does not fit the rendezvous");
    else if (g->until < clock_wall_ms(&clock_system))
        err_set(err, ERR_FORBIDDEN, "the key has expired: clocks differ");
    return err->code == 0;
}

// Drops joiners that are out of date. A rank that comes again has given up its first connection.
static void drop_old(struct rendezvous *rv, const struct peer_request *g)
{
    int64_t now = clock_wall_ms(&clock_system);
    LIST_FOREACH(l, &rv->joiners) {
        struct joiner *old = CONTAINER_OF(l, struct joiner, link);
        if (old->until < now || (old->id == g->id && old->index == g->place) || rv->n_joiners >= RENDEZVOUS_JOINERS_MAX)
            close(take_joiner(rv, old));
    }
}

void rendezvous_join(struct rendezvous *rv, int fd, const struct peer_request *g)
{
    struct joiner *joiner = xcalloc(1, sizeof *joiner);
    *joiner = (struct joiner){.fd = fd, .id = g->id, .index = g->place, .until = g->until};
    rank_sockets_add(fd);
    pthread_mutex_lock(&rv->mutex);
    drop_old(rv, g);
    list_append(&rv->joiners, &joiner->link);
    rv->n_joiners++;
    pthread_cond_broadcast(&rv->changed);
    pthread_mutex_unlock(&rv->mutex);
}

// The side of the threads

int rendezvous_rank(const struct rendezvous *rv)
{
    return rv->config.rank;
}

int rendezvous_world(const struct rendezvous *rv)
{
    return rv->config.world;
}

int64_t rendezvous_limit_ms(const struct rendezvous *rv)
{
    return rv->config.limit_ms;
}

int rendezvous_mesh(struct rendezvous *rv, const char *name, uint32_t world, struct arena *a, struct mesh *ret,
                    struct err *err)
{
    const struct mesh *found = NULL;
    pthread_mutex_lock(&rv->mutex);
    for (int k = 0; k < 2 && !found; k++)
        for (size_t i = 0; i < rv->n_meshes[k] && !found; i++)
            if (!name || str_eq(rv->meshes[k][i].name, name))
                found = &rv->meshes[k][i];
    if (found)
        *ret = *meshes_copy(found, 1, a);
    pthread_mutex_unlock(&rv->mutex);
    if (!found)
        return err_set(err, ERR_INVALID, "the group has no mesh%s%s%s; spec.worker.meshes names them", name ? " '" : "",
                       name ? name : "", name ? "'" : "");
    return mesh_check(ret, world, err);
}

// Call this with the mutex. It is unlocked meanwhile. Waits one slice at most, because a cancel wakes nobody.
static void wait_some(struct rendezvous *rv, int64_t until)
{
    (void)cond_wait_until(&rv->changed, &rv->mutex, MIN(until, now_ms() + SLICE_MS));
}

// Call this with the mutex. It is unlocked meanwhile.
static bool is_over(struct rendezvous *rv, const struct rendezvous_list *l)
{
    if (atomic_load(l->canceled))
        return true;
    if (!l->stop)
        return false;
    pthread_mutex_unlock(&rv->mutex);
    bool over = l->stop(l->ctx);
    pthread_mutex_lock(&rv->mutex);
    return over;
}

// The numbers begin at zero in each attempt.
static uint64_t hash_of(const struct rendezvous *rv, const struct rendezvous_list *l)
{
    char attempt[16];
    int len = snprintf(attempt, sizeof attempt, "%u", rv->config.attempt);
    return str_hash((const char *)l->ranks, (size_t)l->n * sizeof *l->ranks) ^
           str_hash(attempt, (size_t)len) * UINT64_C(0x9e3779b97f4a7c15);
}

// Call this with the mutex. NULL = these ranks have made no communicator yet.
static struct list_count *find_count(struct rendezvous *rv, uint64_t hash)
{
    for (size_t i = 0; i < rv->n_lists; i++)
        if (rv->lists[i].hash == hash)
            return &rv->lists[i];
    return NULL;
}

static int take_free_number(struct list_count *c, uint64_t *ret, struct err *err)
{
    int i = 0;
    while (i < NUMBERS_MAX && ((c->busy | c->made) >> i & 1))
        i++;
    if (i == NUMBERS_MAX)
        return err_set(err, ERR_LIMIT,
                       "this process makes %d communicators of the same ranks at once, which is the most", NUMBERS_MAX);
    c->busy |= UINT64_C(1) << i;
    *ret = c->n + (uint64_t)i;
    return 0;
}

// All members find the same number, because the same communicators of these ranks were made before.
static int take_number(struct rendezvous *rv, struct rendezvous_list *l, struct err *err)
{
    uint64_t hash = hash_of(rv, l), number = 0;
    int r = 0;
    pthread_mutex_lock(&rv->mutex);
    struct list_count *c = find_count(rv, hash);
    if (!c && rv->n_lists == RENDEZVOUS_LISTS_MAX) {
        r = err_set(err, ERR_LIMIT, "this process has made communicators of %d lists of ranks, which is the most",
                    RENDEZVOUS_LISTS_MAX);
    } else if (!c) {
        rv->lists = xrealloc(rv->lists, ++rv->n_lists, sizeof *rv->lists);
        c = &rv->lists[rv->n_lists - 1];
        *c = (struct list_count){.hash = hash};
    }
    if (r == 0)
        r = take_free_number(c, &number, err);
    pthread_mutex_unlock(&rv->mutex);
    l->id = hash + number;
    return r;
}

void rendezvous_end(struct rendezvous *rv, const struct rendezvous_list *l, bool made)
{
    if (!l->ranks)
        return;
    pthread_mutex_lock(&rv->mutex);
    struct list_count *c = find_count(rv, hash_of(rv, l));
    uint64_t bit = UINT64_C(1) << (l->id - c->hash - c->n);
    c->busy &= ~bit;
    c->made |= made ? bit : 0;
    for (; c->made & 1; c->n++) {
        c->made >>= 1;
        c->busy >>= 1;
    }
    pthread_mutex_unlock(&rv->mutex);
}

// A member that comes again for a communicator that was made has not heard so: it has lost the last message.
static bool was_made(const struct list_count *c, uint64_t id)
{
    uint64_t number = id - c->hash;
    return number < c->n || (number - c->n < NUMBERS_MAX && (c->made >> (number - c->n) & 1));
}

static bool has_hung_up(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLRDHUP};
    return poll(&p, 1, 0) == 1 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR));
}

// Returns true if the joiner comes for this list, whose count is `c`; NULL = its id is used only once. A rank that gave
// up may come again with the same id, so its first connection does not count. If an id is used once, a rank that hung
// up counts as one that has come, and is lost.
static bool comes_for(const struct list_count *c, const struct rendezvous_list *l, const struct joiner *g,
                      const int *links)
{
    if (g->index == 0 || g->index >= (uint32_t)l->n)
        return false;
    if (!c)
        return g->id == l->id;
    return (g->id == l->id || (links[g->index] < 0 && was_made(c, g->id))) && !has_hung_up(g->fd);
}

// Call this with the mutex. Returns how many members of the list have come that had not come yet.
static int take_joiners(struct rendezvous *rv, const struct rendezvous_list *l, int *links)
{
    const struct list_count *c = l->ranks ? find_count(rv, hash_of(rv, l)) : NULL;
    int n = 0;
    LIST_FOREACH(at, &rv->joiners) {
        struct joiner *g = CONTAINER_OF(at, struct joiner, link);
        if (!comes_for(c, l, g, links))
            continue;
        int *link = &links[g->index];
        n += *link < 0;
        file_close(link);
        *link = take_joiner(rv, g);
    }
    return n;
}

// The last one may come just before the wait is over, so this function looks once more after that.
static int wait_for_joiners(struct rendezvous *rv, const struct rendezvous_list *l, int64_t until, int *links,
                            struct err *err)
{
    int missing = l->n - 1;
    bool over = false;
    for (int i = 0; i < l->n; i++)
        links[i] = -1;
    pthread_mutex_lock(&rv->mutex);
    missing -= take_joiners(rv, l, links);
    while (missing && !over && now_ms() < until) {
        wait_some(rv, until);
        over = is_over(rv, l);
        missing -= take_joiners(rv, l, links);
    }
    pthread_mutex_unlock(&rv->mutex);
    if (!missing || !over)
        return 0;
    for (int i = 0; i < l->n; i++)
        file_close(&links[i]);
    return err_set(err, ERR_CANCELED, "canceled while it waited for other ranks");
}

// Finds out where the first rank of the list is. ERR_TIMEOUT, ERR_CANCELED.
static int find_rank(struct rendezvous *rv, const struct rendezvous_list *l, struct query *q, int64_t until)
{
    int64_t ask = 0;
    int r = 0;
    q->at[0] = '\0';
    pthread_mutex_lock(&rv->mutex);
    list_append(&rv->queries, &q->link);
    while (r == 0 && !q->at[0]) {
        if (now_ms() >= ask) {
            loop_wakeup_signal(rv->wakeup);
            ask = now_ms() + RENDEZVOUS_ASK_MS;
        }
        wait_some(rv, until);
        r = is_over(rv, l) ? ERR_CANCELED : !q->at[0] && now_ms() >= until ? ERR_TIMEOUT : 0;
    }
    list_remove(&q->link);
    pthread_mutex_unlock(&rv->mutex);
    return r;
}

static int read_all(int fd, char *data, size_t len, const atomic_bool *canceled)
{
    while (len) {
        ssize_t n = recv(fd, data, len, 0);
        if (n > 0) {
            data += n;
            len -= (size_t)n;
        } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
            return ERR_GONE;
        } else {
            int r = dial_wait(fd, POLLIN, DIAL_MS, canceled);
            if (r < 0)
                return r;
        }
    }
    return 0;
}

// Returns 0 if the other end lets this rank in. ERR_FORBIDDEN is final.
static int introduce(int fd, const struct rendezvous_list *l, const struct query *q, struct err *err)
{
    char question[PEER_REQUEST_LEN], head[PEER_ANSWER_LEN];
    struct peer_answer a;
    struct peer_request g = {PEER_JOIN_MAGIC, q->question.index, q->question.id, q->question.until, ""};
    memcpy(g.key, q->key, sizeof g.key);
    peer_request_write(&g, question);
    if (send(fd, question, sizeof question, MSG_NOSIGNAL) != sizeof question)
        return err_set(err, ERR_UNAVAILABLE, "%s", strerror(errno));
    int r = read_all(fd, head, sizeof head, l->canceled);
    if (r < 0 || peer_answer_read(head, &a) < 0)
        return err_set(err, r == ERR_CANCELED ? r : ERR_UNAVAILABLE, "it does not answer");
    if (a.code == (uint32_t)-ERR_FORBIDDEN)
        return err_set(err, ERR_FORBIDDEN,
                       "it does not take the proof of this rank: clocks differ by more than the limit");
    return a.code ? err_set(err, ERR_UNAVAILABLE, "it is not ready") : 0;
}

static int join_first(struct rendezvous *rv, const struct rendezvous_list *l, int64_t until, int *link, struct err *err)
{
    struct query q = {.question = {.rank = l->ranks ? (uint32_t)l->ranks[0] : (uint32_t)l->first,
                                   .index = (uint32_t)l->index,
                                   .id = l->id,
                                   .until = clock_wall_ms(&clock_system) + l->limit_ms + GRACE_MS}};
    const char *of = l->group ? " of " : "", *group = l->group ? l->group : "";
    snprintf(q.question.group, sizeof q.question.group, "%s", group);
    for (;;) {
        struct err why = ERR_INIT;
        int fd = -1, r = find_rank(rv, l, &q, until);
        if (r == ERR_TIMEOUT)
            return err_set(err, r, "rank %u%s%s, the first of the list, was not found within %" PRId64 " ms%s%s",
                           q.question.rank, of, group, l->limit_ms, err->code ? "; last: " : "",
                           err->code ? err->msg : "");
        if (r == 0)
            r = dial(q.at, l->canceled, &fd, &why);
        if (r == 0) {
            rank_sockets_add(fd);
            r = introduce(fd, l, &q, &why);
        }
        if (r == 0) {
            *link = fd;
            return 0;
        }
        file_close(&fd);
        if (r == ERR_CANCELED)
            return err_set(err, r, "canceled while it looked for rank %u%s%s", q.question.rank, of, group);
        if (r == ERR_FORBIDDEN)
            return err_set(err, r, "rank %u%s%s at %s: %s", q.question.rank, of, group, q.at, why.msg);
        err_set(err, r, "%s: %s", q.at, why.msg); // it may be starting
        pthread_mutex_lock(&rv->mutex);
        wait_some(rv, until);
        bool over = is_over(rv, l);
        pthread_mutex_unlock(&rv->mutex);
        if (over)
            return err_set(err, ERR_CANCELED, "canceled while it looked for rank %u%s%s", q.question.rank, of, group);
    }
}

int rendezvous_meet(struct rendezvous *rv, struct rendezvous_list *l, int *links, struct err *err)
{
    int64_t until = now_ms() + l->limit_ms;
    int r = l->ranks ? take_number(rv, l, err) : 0;
    if (r < 0)
        return r;
    r = l->index ? join_first(rv, l, until, &links[0], err) : wait_for_joiners(rv, l, until, links, err);
    if (r < 0)
        rendezvous_end(rv, l, false);
    return r;
}
