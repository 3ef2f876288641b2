// SPDX-License-Identifier: Apache-2.0
#include "worker/collective/star_debug.h"

#include "common/base/cond.h"
#include "common/base/err.h"
#include "common/base/mem.h"
#include "worker/collective/agreement.h"
#include "worker/collective/star_core.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

struct star_send {
    struct star_send *next;
    int from;
    char what[STAR_WHAT_SIZE];
};

static void send_to(const struct star *s, int member, enum star_frame_kind kind, const char *body, size_t len)
{
    int fd = s->links[s->config.index ? 0 : member - 1].fd;
    if (fd >= 0)
        (void)star_frame_send(fd, kind, body, len, star_now_ms() + STAR_SEND_MS);
}

// A number, then a text.
static void send_text(const struct star *s, int member, enum star_frame_kind kind, uint32_t number, const char *text)
{
    char body[sizeof number + STAR_WHAT_SIZE];
    size_t len = MIN(strlen(text), (size_t)STAR_WHAT_SIZE - 1);
    memcpy(body, &number, sizeof number);
    memcpy(body + sizeof number, text, len);
    send_to(s, member, kind, body, sizeof number + len);
}

// Collectives

static void become_compared(struct star *s, uint32_t number)
{
    pthread_mutex_lock(&s->mutex);
    s->compared = number;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->mutex);
}

// Member 0 calls this as soon as all members have said what they are about to do.
static void compare_all(struct star *s)
{
    const char **whats = xcalloc((size_t)s->config.n, sizeof *whats);
    _cleanup_(buf_done) struct buf text = BUF_INIT(STAR_REASON_SIZE - 1);
    char own[STAR_WHAT_SIZE];
    pthread_mutex_lock(&s->mutex);
    uint32_t number = s->compares, collective = s->number;
    bool due = number != s->compared && !s->broken;
    memcpy(own, s->what, sizeof own);
    pthread_mutex_unlock(&s->mutex);
    whats[0] = own;
    for (size_t i = 0; i < s->n_links; i++) {
        due = due && s->links[i].compares == number;
        whats[i + 1] = s->links[i].what;
    }
    if (due) {
        buf_printf(&text, "collective %u differs: ", collective);
        if (!agreement_holds(whats, s->config.names, s->config.n, &text)) {
            star_break_all(s, buf_str(&text));
        } else {
            for (int i = 1; i < s->config.n; i++)
                send_to(s, i, FRAME_SAME, (const char *)&number, sizeof number);
            become_compared(s, number);
        }
    }
    free(whats);
}

int star_compare(struct star *s, const char *what, int64_t limit_ms)
{
    int64_t until = star_now_ms() + limit_ms;
    pthread_mutex_lock(&s->mutex);
    s->compares++;
    s->says = true;
    snprintf(s->what, sizeof s->what, "%s", what);
    (void)eventfd_write(s->wake, 1);
    while (!s->broken && s->compared != s->compares && cond_wait_until(&s->changed, &s->mutex, until))
        ;
    int r = s->broken ? ERR_GONE : s->compared == s->compares ? 0 : ERR_TIMEOUT;
    pthread_mutex_unlock(&s->mutex);
    return r;
}

// Pairs

static void keep(struct star *s, int from, const char *what)
{
    pthread_mutex_lock(&s->mutex);
    s->deaf = s->deaf || s->n_sends == STAR_SENDS_MAX;
    if (!s->deaf) {
        struct star_send *send = xcalloc(1, sizeof *send);
        send->from = from;
        snprintf(send->what, sizeof send->what, "%s", what);
        *(s->sends_end ? s->sends_end : &s->sends) = send;
        s->sends_end = &send->next;
        s->n_sends++;
    }
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->mutex);
}

static void take_pair(struct star *s, const struct star_link *l, uint32_t other, const char *what)
{
    if (s->config.index)
        keep(s, (int)other, what);
    else if (other == 0)
        keep(s, l->member, what);
    else if (other < (uint32_t)s->config.n)
        send_text(s, (int)other, FRAME_PAIR, (uint32_t)l->member, what);
}

// The caller holds the mutex. Takes the first message of this member out of the list.
static bool take_send(struct star *s, int from, char what[STAR_WHAT_SIZE])
{
    struct star_send **at = &s->sends, *send;
    while (*at && (*at)->from != from)
        at = &(*at)->next;
    send = *at;
    if (!send)
        return false;
    memcpy(what, send->what, STAR_WHAT_SIZE);
    *at = send->next;
    s->n_sends--;
    if (s->sends_end == &send->next)
        s->sends_end = at;
    free(send);
    return true;
}

void star_tell(struct star *s, int to, const char *what)
{
    pthread_mutex_lock(&s->mutex);
    s->tells = true;
    s->tells_to = to;
    snprintf(s->what, sizeof s->what, "%s", what);
    (void)eventfd_write(s->wake, 1);
    while (!s->broken && s->tells) // waits for its own thread only
        pthread_cond_wait(&s->changed, &s->mutex);
    pthread_mutex_unlock(&s->mutex);
}

int star_hear(struct star *s, int from, char what[STAR_WHAT_SIZE], int64_t limit_ms)
{
    int64_t until = star_now_ms() + limit_ms;
    bool heard = false, waits = true;
    what[0] = '\0';
    pthread_mutex_lock(&s->mutex);
    while (!s->broken && !(heard = take_send(s, from, what)) && !s->deaf && waits)
        waits = cond_wait_until(&s->changed, &s->mutex, until);
    int r = s->broken ? ERR_GONE : heard || s->deaf ? 0 : ERR_TIMEOUT;
    pthread_mutex_unlock(&s->mutex);
    return r;
}

// The thread

void star_debug_take(struct star *s, struct star_link *l, const struct star_frame *f, const char *body)
{
    uint32_t number;
    if (f->len < sizeof number)
        return;
    memcpy(&number, body, sizeof number);
    if (f->kind == FRAME_SAME) {
        become_compared(s, number);
    } else if (f->kind == FRAME_PAIR) {
        take_pair(s, l, number, body + sizeof number);
    } else {
        l->compares = number;
        snprintf(l->what, sizeof l->what, "%s", body + sizeof number);
        compare_all(s);
    }
}

void star_debug_say(struct star *s)
{
    char what[STAR_WHAT_SIZE];
    pthread_mutex_lock(&s->mutex);
    bool says = s->says, tells = s->tells;
    uint32_t number = s->compares;
    int to = s->tells_to;
    memcpy(what, s->what, sizeof what);
    s->says = s->tells = false;
    if (tells)
        pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->mutex);
    if (tells)
        send_text(s, to, FRAME_PAIR, (uint32_t)(s->config.index ? to : 0), what);
    if (says && s->config.index)
        send_text(s, 0, FRAME_COMPARE, number, what);
    else if (says)
        compare_all(s);
}

void star_debug_lose(struct star *s)
{
    if (!s->config.index)
        return;
    pthread_mutex_lock(&s->mutex);
    s->deaf = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->mutex);
}

void star_debug_free(struct star *s)
{
    for (struct star_send *send = s->sends, *next; send; send = next) {
        next = send->next;
        free(send);
    }
}
