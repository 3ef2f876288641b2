// SPDX-License-Identifier: Apache-2.0
#include "worker/collective/star.h"

#include "common/base/buf.h"
#include "common/base/cond.h"
#include "common/base/file.h"
#include "common/base/mem.h"
#include "common/base/thread.h"
#include "worker/collective/star_core.h"
#include "worker/collective/star_debug.h"
#include "worker/collective/star_frame.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SLACK_MS = 400, GIVE_UP_MS = 1000 + STAR_MISSING_MS };

struct star *star_new(const struct star_config *config)
{
    struct star *s = xcalloc(1, sizeof *s);
    s->config = *config;
    s->heartbeat = heartbeat_new(config->silence_ms);
    s->n_links = config->index ? 1 : (size_t)config->n - 1;
    s->links = xcalloc(s->n_links + 1, sizeof *s->links);
    for (size_t i = 0; i < s->n_links; i++)
        s->links[i] = config->index ? (struct star_link){.fd = config->links[0], .member = 0}
                                    : (struct star_link){.fd = config->links[i + 1], .member = (int)i + 1};
    pthread_mutex_init(&s->mutex, NULL);
    cond_init(&s->changed);
    s->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (s->wake < 0)
        abort(); // without descriptors, nothing else would work either
    return s;
}

// The exchange

static int missing(const struct star *s, const struct star_link *l, int code, struct err *err)
{
    const char *name = s->config.names[l->member];
    if (code == ERR_TIMEOUT)
        return err_set(err, code, "%s did not arrive within %lld ms", name, (long long)s->config.limit_ms);
    return err_set(err, ERR_GONE, "%s was lost, or gave up", name);
}

static int expect(const struct star *s, const struct star_link *l, enum star_frame_kind kind, char **ret_body,
                  size_t *ret_len, int64_t until, struct err *err)
{
    struct star_frame f;
    if (l->fd < 0)
        return missing(s, l, ERR_TIMEOUT, err);
    int r = star_frame_take(l->fd, &f, ret_body, until);
    if (r == 0 && f.kind == kind) {
        *ret_len = f.len;
        return 0;
    }
    if (r == 0 && f.kind == FRAME_BROKEN)
        err_set(err, ERR_GONE, "%s", *ret_body);
    else
        missing(s, l, r < 0 ? r : ERR_GONE, err);
    free(TAKE_PTR(*ret_body));
    return err->code;
}

static int exchange_at_center(struct star *s, int64_t until, char **blobs, size_t *lens, struct err *err)
{
    _cleanup_(buf_done) struct buf all = BUF_INIT(STAR_FRAME_MAX);
    int r = 0;
    for (size_t i = 0; r == 0 && i < s->n_links; i++)
        r = expect(s, &s->links[i], FRAME_BLOB, &blobs[i + 1], &lens[i + 1], until, err);
    for (int i = 0; r == 0 && i < s->config.n; i++) {
        uint32_t len = (uint32_t)lens[i];
        buf_append(&all, &len, sizeof len);
        if (buf_append(&all, blobs[i], lens[i]) < 0)
            r = err_set(err, ERR_LIMIT, "the members say more than %d bytes about themselves", STAR_FRAME_MAX);
    }
    for (size_t i = 0; r == 0 && i < s->n_links; i++)
        if (star_frame_send(s->links[i].fd, FRAME_BLOB, all.data, all.len, until) < 0)
            r = missing(s, &s->links[i], ERR_GONE, err);
    if (r < 0)
        star_send_all(s, FRAME_BROKEN, err->msg); // so that the others do not wait for the limit
    return r;
}

static int split_blobs(const char *data, size_t len, int n, char **blobs, size_t *lens, struct err *err)
{
    for (int i = 0; i < n; i++) {
        uint32_t size = 0;
        if (len >= sizeof size)
            memcpy(&size, data, sizeof size);
        if (len < sizeof size || size > len - sizeof size)
            return err_set(err, ERR_PROTO, "the first member sent something unexpected");
        free(blobs[i]);
        blobs[i] = xcalloc(1, (size_t)size + 1);
        memcpy(blobs[i], data + sizeof size, size);
        lens[i] = size;
        data += sizeof size + size;
        len -= sizeof size + size;
    }
    return 0;
}

int star_exchange(struct star *s, const char *blob, size_t len, char **ret_blobs, size_t *ret_lens, struct err *err)
{
    int64_t until = star_now_ms() + s->config.limit_ms;
    char *all = NULL;
    size_t all_len = 0;
    for (int i = 0; i < s->config.n; i++)
        ret_blobs[i] = NULL;
    ret_blobs[s->config.index] = xcalloc(1, len + 1);
    memcpy(ret_blobs[s->config.index], blob, len);
    ret_lens[s->config.index] = len;
    if (!s->config.index)
        return exchange_at_center(s, until, ret_blobs, ret_lens, err);
    if (star_frame_send(s->links[0].fd, FRAME_BLOB, blob, len, until) < 0)
        return missing(s, &s->links[0], ERR_GONE, err);
    // Member 0 waits for the others just as long, and then names the missing one.
    int r = expect(s, &s->links[0], FRAME_BLOB, &all, &all_len, until + STAR_SEND_MS, err);
    if (r == 0)
        r = split_blobs(all, all_len, s->config.n, ret_blobs, ret_lens, err);
    free(all);
    return r;
}

// Returns r, or ERR_CANCELED if this member was canceled.
static int check_canceled(struct star *s, int r, struct err *err)
{
    return atomic_load(&s->canceled) ? err_set(err, ERR_CANCELED, "canceled while it waited for other ranks") : r;
}

int star_agree(struct star *s, const struct err *mine, struct err *err)
{
    int64_t until = star_now_ms() + s->config.limit_ms;
    char *said = NULL;
    size_t len;
    int r = 0;
    if (s->config.index) {
        if (star_frame_send(s->links[0].fd, FRAME_AGREED, mine->code ? mine->msg : "",
                            mine->code ? strlen(mine->msg) : 0, until) < 0)
            return missing(s, &s->links[0], ERR_GONE, err);
        r = expect(s, &s->links[0], FRAME_AGREED, &said, &len, until + STAR_SEND_MS, err);
        if (r == 0 && len)
            r = err_set(err, ERR_UNAVAILABLE, "%s", said);
        free(said);
        return check_canceled(s, r, err);
    }
    if (mine->code)
        r = err_set(err, mine->code, "%s: %s", s->config.names[0], mine->msg);
    for (size_t i = 0; i < s->n_links; i++) {
        struct err one = ERR_INIT;
        if (expect(s, &s->links[i], FRAME_AGREED, &said, &len, until, &one) == 0 && len)
            err_set(&one, ERR_UNAVAILABLE, "%s: %s", s->config.names[i + 1], said);
        free(TAKE_PTR(said));
        if (one.code && r == 0)
            r = err_set(err, one.code, "%s", one.msg);
    }
    r = check_canceled(s, r, err);
    if (r != ERR_CANCELED) // if this member was canceled, it is the missing one, and star_free() says so
        star_send_all(s, FRAME_AGREED, r < 0 ? err->msg : "");
    return r;
}

// The other direction stays open for the goodbye.
void star_cancel(struct star *s)
{
    atomic_store(&s->canceled, true);
    for (size_t i = 0; i < s->n_links; i++)
        if (s->links[i].fd >= 0)
            shutdown(s->links[i].fd, SHUT_RD);
}

// Watching

// A member that stands still also hears of it, when it continues.
static void lose(struct star *s, struct star_link *l, const char *why)
{
    char reason[STAR_REASON_SIZE];
    snprintf(reason, sizeof reason, "%s was lost: %s", s->config.names[l->member], why);
    if (!l->left)
        star_break_all(s, reason);
    close(l->fd);
    l->fd = -1;
    star_debug_lose(s);
}

static void ask_who_runs(struct star *s)
{
    if (!heartbeat_due(&s->heartbeat, star_now_ms()))
        return;
    for (size_t i = 0; i < s->n_links; i++) {
        struct star_link *l = &s->links[i];
        if (l->fd >= 0 && !heartbeat_ask(&l->asked))
            lose(s, l, "it does not answer: its process is stopped, or it cannot be reached");
        else if (l->fd >= 0)
            (void)star_frame_send(l->fd, FRAME_PING, "", 0, star_now_ms() + STAR_SEND_MS);
    }
}

static void ask_all(struct star *s, uint32_t number)
{
    pthread_mutex_lock(&s->mutex);
    bool first = !s->asked_ms;
    if (first) {
        s->asked_ms = star_now_ms();
        s->asked_number = number;
    }
    pthread_mutex_unlock(&s->mutex);
    for (size_t i = 0; first && i < s->n_links; i++)
        if (s->links[i].fd >= 0)
            (void)star_frame_send(s->links[i].fd, FRAME_ASK, "", 0, star_now_ms() + STAR_SEND_MS);
}

static void take_number(struct star *s, struct star_link *l, const struct star_frame *f, const char *body)
{
    uint32_t number;
    if (f->len != sizeof number)
        return;
    memcpy(&number, body, sizeof number);
    if (f->kind == FRAME_LATE) {
        ask_all(s, number);
    } else {
        l->answered = true;
        l->begun = number;
    }
}

static void take(struct star *s, struct star_link *l)
{
    struct star_frame f;
    char *body;
    if (star_frame_take(l->fd, &f, &body, star_now_ms() + STAR_SEND_MS) < 0) {
        free(body);
        lose(s, l, "its process has ended, or its node");
        return;
    }
    l->asked = 0;
    if (f.kind == FRAME_BYE)
        l->left = true;
    else if (f.kind == FRAME_BROKEN)
        star_break_all(s, body);
    else if (f.kind == FRAME_LATE || f.kind == FRAME_BEGUN)
        take_number(s, l, &f, body);
    else if (f.kind == FRAME_COMPARE || f.kind == FRAME_SAME || f.kind == FRAME_PAIR)
        star_debug_take(s, l, &f, body);
    else if (f.kind == FRAME_PING)
        (void)star_frame_send(l->fd, FRAME_PONG, "", 0, star_now_ms() + STAR_SEND_MS);
    else if (f.kind == FRAME_ASK) {
        pthread_mutex_lock(&s->mutex);
        uint32_t number = s->number;
        pthread_mutex_unlock(&s->mutex);
        (void)star_frame_send(l->fd, FRAME_BEGUN, &number, sizeof number, star_now_ms() + STAR_SEND_MS);
    }
    free(body);
}

// Member 0 calls this when the members that it asked have had their time.
static void name_missing(struct star *s, uint32_t own, uint32_t asked)
{
    _cleanup_(buf_done) struct buf text = BUF_INIT(STAR_REASON_SIZE - 1);
    bool any = own < asked;
    buf_printf(&text, "collective %u waited too long", asked);
    if (any)
        buf_printf(&text, "; %s has not called it", s->config.names[0]);
    for (size_t i = 0; i < s->n_links; i++) {
        const struct star_link *l = &s->links[i];
        const char *what = NULL;
        if (l->left)
            what = "has freed its communicator";
        else if (!l->answered)
            what = "does not answer: it is stopped, or cannot be reached";
        else if (l->begun < asked)
            what = "has not called it";
        if (what)
            buf_printf(&text, "; %s %s", s->config.names[l->member], what);
        any = any || what;
    }
    if (!any)
        buf_puts(&text, "; all ranks have called it: the network is slow, or their arguments differ");
    star_break_all(s, buf_str(&text));
}

static bool all_answered(const struct star *s)
{
    for (size_t i = 0; i < s->n_links; i++)
        if (!s->links[i].answered && s->links[i].fd >= 0)
            return false;
    return true;
}

static void be_late(struct star *s, uint32_t number)
{
    if (!s->config.index)
        ask_all(s, number);
    else if (s->links[0].fd >= 0)
        (void)star_frame_send(s->links[0].fd, FRAME_LATE, &number, sizeof number, star_now_ms() + STAR_SEND_MS);
}

// Does the tasks of the program's thread, and those that are due. Returns how many ms to sleep, -1 = until an event.
static int attend(struct star *s)
{
    char own[STAR_REASON_SIZE];
    pthread_mutex_lock(&s->mutex);
    bool late = s->late, gives_up = s->gives_up;
    uint32_t number = s->number;
    s->late = s->gives_up = false;
    memcpy(own, s->own, sizeof own);
    pthread_mutex_unlock(&s->mutex);
    if (gives_up)
        star_break_all(s, own);
    star_debug_say(s);
    if (late)
        be_late(s, number);
    pthread_mutex_lock(&s->mutex);
    int64_t asked = s->broken ? 0 : s->asked_ms, left = asked + STAR_MISSING_MS - star_now_ms();
    uint32_t asked_number = s->asked_number;
    pthread_mutex_unlock(&s->mutex);
    if (!asked)
        return -1;
    if (!all_answered(s) && left > 0)
        return (int)left + 1;
    name_missing(s, number, asked_number);
    return -1;
}

static void *watch(void *arg)
{
    struct star *s = arg;
    struct pollfd *polled = xcalloc(s->n_links + 1, sizeof *polled);
    for (;;) {
        int wait = heartbeat_wait(&s->heartbeat, star_now_ms(), attend(s));
        pthread_mutex_lock(&s->mutex);
        bool stopping = s->stopping;
        pthread_mutex_unlock(&s->mutex);
        if (stopping)
            break;
        for (size_t i = 0; i < s->n_links; i++)
            polled[i] = (struct pollfd){.fd = s->links[i].fd, .events = POLLIN};
        polled[s->n_links] = (struct pollfd){.fd = s->wake, .events = POLLIN};
        if (poll(polled, s->n_links + 1, wait) < 0)
            continue;
        eventfd_t ignored;
        (void)eventfd_read(s->wake, &ignored);
        for (size_t i = 0; i < s->n_links; i++)
            if (polled[i].revents && s->links[i].fd >= 0)
                take(s, &s->links[i]);
        ask_who_runs(s); // after all messages that have arrived
    }
    free(polled);
    return NULL;
}

void star_watch(struct star *s, void (*on_broken)(void *ctx), void *ctx)
{
    s->on_broken = on_broken;
    s->ctx = ctx;
    if (thread_start(&s->thread, watch, s) != 0)
        abort(); // no memory
    s->watches = true;
}

void star_progress(struct star *s, uint32_t number)
{
    pthread_mutex_lock(&s->mutex);
    s->number = number;
    pthread_mutex_unlock(&s->mutex);
}

bool star_broken(struct star *s, char ret[STAR_REASON_SIZE])
{
    pthread_mutex_lock(&s->mutex);
    bool broken = s->broken;
    if (broken)
        memcpy(ret, s->reason, STAR_REASON_SIZE);
    pthread_mutex_unlock(&s->mutex);
    return broken;
}

static bool wait_broken(struct star *s, int64_t ms)
{
    int64_t until = star_now_ms() + ms;
    while (!s->broken && cond_wait_until(&s->changed, &s->mutex, until))
        ;
    return s->broken;
}

// The caller holds the mutex. The thread tells all members.
static void say_reason(struct star *s, const char *reason)
{
    s->gives_up = true;
    snprintf(s->own, sizeof s->own, "%s", reason);
    (void)eventfd_write(s->wake, 1);
    (void)wait_broken(s, GIVE_UP_MS);
}

void star_break(struct star *s, const char *reason, char ret[STAR_REASON_SIZE])
{
    pthread_mutex_lock(&s->mutex);
    say_reason(s, reason);
    memcpy(ret, s->broken ? s->reason : s->own, STAR_REASON_SIZE);
    pthread_mutex_unlock(&s->mutex);
}

void star_give_up(struct star *s, const char *reason, char ret[STAR_REASON_SIZE])
{
    pthread_mutex_lock(&s->mutex);
    s->late = !reason;
    (void)eventfd_write(s->wake, 1);
    // The thread hears of a dying member as soon as the back end does, and knows more. A member that gave up at the
    // limit has closed its connections, and the members still find out which member it waited for. The thread of
    // member 0 always finds it out, so member 0 waits for its thread, however late that runs.
    while (!reason && !s->config.index && !s->broken)
        pthread_cond_wait(&s->changed, &s->mutex);
    if (!wait_broken(s, reason ? STAR_MISSING_MS + SLACK_MS : GIVE_UP_MS))
        say_reason(s,
                   reason ? reason : "a collective waited too long, and the first member does not say who is missing");
    memcpy(ret, s->broken ? s->reason : s->own, STAR_REASON_SIZE);
    pthread_mutex_unlock(&s->mutex);
}

void star_free(struct star *s)
{
    if (!s)
        return;
    if (s->watches) {
        pthread_mutex_lock(&s->mutex);
        s->stopping = true;
        pthread_mutex_unlock(&s->mutex);
        (void)eventfd_write(s->wake, 1);
        pthread_join(s->thread, NULL);
    }
    if (s->watches || atomic_load(&s->canceled))
        star_send_all(s, FRAME_BYE, "");
    for (size_t i = 0; i < s->n_links; i++)
        file_close(&s->links[i].fd);
    star_debug_free(s);
    close(s->wake);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->mutex);
    free(s->links);
    free(s);
}
