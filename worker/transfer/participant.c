// SPDX-License-Identifier: Apache-2.0
#include "worker/transfer/participant.h"

#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/le.h"
#include "common/base/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { LATE_NAMES_MAX = 8 };
enum { HERE_PARTS = 32, SILENT_PARTS = 8 }; // a member says HERE each 1/32 of its time, and is silent after 1/8

bool participant_is_patient(const struct participant *p)
{
    return p->waited * PARTICIPANT_SLICE_MS <= p->config.patience_ms;
}

void participant_init(struct participant *p, const struct participant_config *config)
{
    int n = config->n_receivers + config->n_senders;
    *p = (struct participant){.config = *config, .witness = -1};
    dialog_init(&p->dialog, n);
    p->members = xcalloc((size_t)n, sizeof *p->members);
    p->wrote = xcalloc((size_t)config->n_senders + 1, sizeof *p->wrote);
    p->until = clock_mono_ms(&clock_system) + config->limit_ms;
    commit_center_init(&p->center, config->n_receivers);
    commit_receiver_init(&p->receiver, false);
}

void participant_done(struct participant *p)
{
    int n = p->config.n_receivers + p->config.n_senders;
    dialog_done(&p->dialog);
    for (int i = 0; i < n; i++) {
        free(p->members[i].hello);
        free(p->members[i].gpu);
        free(p->members[i].needs);
    }
    free(p->members);
    free(p->wrote);
    free(p->all);
    free(p->join);
    free(p->go);
    free(p->not_joined);
}

bool participant_is_center(const struct participant *p)
{
    return p->config.index == 0;
}

bool participant_is_receiver(const struct participant *p)
{
    return p->config.index < p->config.n_receivers;
}

int64_t participant_left_ms(const struct participant *p)
{
    return MAX(p->until - clock_mono_ms(&clock_system), (int64_t)0);
}

// Deciding

static void set_reason(struct participant *p, int code, const char *text)
{
    if (p->code)
        return;
    p->code = code;
    snprintf(p->reason, sizeof p->reason, "%s", text);
}

// The center may have died while the witness still waited for receivers to connect.
static void set_unknown(struct participant *p)
{
    char text[PARTICIPANT_REASON_SIZE];
    const char *witness = p->config.names[MAX(p->witness, p->config.n_receivers)];
    snprintf(text, sizeof text,
             "neither %s nor the witness, %s, says whether the others have taken the new weights; this rank keeps the "
             "old ones: transfer again",
             p->config.names[0], witness);
    set_reason(p, ERR_UNAVAILABLE, text);
}

static void say_decision(struct participant *p, int member, enum commit_decision decision)
{
    char body[8 + PARTICIPANT_REASON_SIZE];
    size_t len = decision == COMMIT_KEEP ? strlen(p->reason) : 0;
    le_put_u32(body, decision);
    le_put_u32(body + 4, (uint32_t)-p->code);
    memcpy(body + 8, p->reason, len);
    dialog_say(&p->dialog, member, DIALOG_DECISION, body, 8 + len);
}

static void say_error(struct participant *p, enum dialog_kind kind, const struct err *err)
{
    char body[4 + sizeof err->msg];
    size_t len = err->code ? strlen(err->msg) : 0;
    le_put_u32(body, (uint32_t)-err->code);
    memcpy(body + 4, err->msg, len);
    dialog_say(&p->dialog, 0, kind, body, 4 + len);
}

static void follow_center(struct participant *p, enum commit_next next)
{
    if (next == COMMIT_PROPOSE)
        dialog_say(&p->dialog, p->witness, DIALOG_PROPOSE, "", 0);
    if (next != COMMIT_SAY_TAKE && next != COMMIT_SAY_KEEP)
        return;
    p->decided = p->center.decision;
    for (int i = 1; i < p->dialog.n; i++)
        say_decision(p, i, p->decided);
}

static void follow_receiver(struct participant *p, enum commit_next next)
{
    if (next == COMMIT_SAY_READY)
        dialog_say(&p->dialog, 0, DIALOG_READY, "", 0);
    if (next == COMMIT_ASK)
        dialog_say(&p->dialog, p->witness, DIALOG_ASK, "", 0);
    p->decided = p->receiver.decision;
    if (!p->receiver.certain)
        set_unknown(p);
}

void participant_witness(struct participant *p, int witness)
{
    p->witness = witness;
    if (participant_is_receiver(p) && !participant_is_center(p))
        commit_receiver_init(&p->receiver, witness >= 0);
}

// The center names this member if the time runs out. In the first half of the time, it does not need to know.
void participant_waits_for(struct participant *p, int member)
{
    char body[4];
    struct participant_member *own = &p->members[p->config.index];
    const char *other = member < 0 ? NULL : p->config.names[member];
    if (other == own->waits_for || 2 * participant_left_ms(p) > p->config.limit_ms)
        return;
    own->waits_for = other;
    le_put_u32(body, (uint32_t)member);
    dialog_say(&p->dialog, 0, DIALOG_WAITS, body, sizeof body);
}

void participant_here(struct participant *p)
{
    int64_t now = clock_mono_ms(&clock_system);
    if (participant_is_center(p) || 2 * participant_left_ms(p) > p->config.limit_ms ||
        now - p->said_here_ms < p->config.limit_ms / HERE_PARTS)
        return;
    p->said_here_ms = now;
    dialog_say(&p->dialog, 0, DIALOG_HERE, "", 0);
}

static void keep_joined(struct participant *p, int member, const char *why)
{
    struct participant_member *m = &p->members[member];
    p->n_joined += !m->joined;
    m->joined = true;
    m->here_ms = clock_mono_ms(&clock_system);
    if (why && !p->not_joined)
        p->not_joined = xasprintf("%s: %s", p->config.names[member], why);
}

void participant_joined(struct participant *p, const struct err *err)
{
    if (participant_is_center(p))
        keep_joined(p, 0, err->code ? err->msg : NULL);
    else
        say_error(p, DIALOG_JOINED, err);
}

static void say_wrote(struct participant *p, int to, int about, uint64_t bytes)
{
    char body[12];
    le_put_u32(body, (uint32_t)about);
    le_put_u64(body + 4, bytes);
    dialog_say(&p->dialog, to, DIALOG_WROTE, body, sizeof body);
}

void participant_wrote(struct participant *p, int receiver, uint64_t bytes)
{
    say_wrote(p, 0, receiver, bytes);
}

void participant_ready(struct participant *p)
{
    if (p->decided != COMMIT_OPEN)
        return;
    p->members[p->config.index].ready = true;
    if (participant_is_center(p))
        follow_center(p, commit_center_ready(&p->center, p->witness >= 0));
    else
        follow_receiver(p, commit_receiver_pulled(&p->receiver));
}

void participant_over(struct participant *p)
{
    if (p->witness >= 0 && !participant_is_center(p))
        dialog_say(&p->dialog, p->witness, DIALOG_OVER, "", 0);
}

bool participant_may_be_asked(const struct participant *p)
{
    bool asked = false;
    for (int i = 1; i < p->config.n_receivers; i++)
        asked = asked || (i != p->config.index && p->dialog.links[i] >= 0 && !p->members[i].over);
    return asked;
}

void participant_report(struct participant *p, const struct err *err)
{
    char text[PARTICIPANT_REASON_SIZE];
    if (!participant_is_center(p)) {
        say_error(p, DIALOG_FAILED, err);
        return;
    }
    snprintf(text, sizeof text, "%s: %s", p->config.names[0], err->msg);
    set_reason(p, err->code, text);
    follow_center(p, commit_center_failed(&p->center));
}

void participant_fail(struct participant *p, const struct err *err)
{
    if (p->decided != COMMIT_OPEN)
        return;
    participant_report(p, err);
    if (participant_is_center(p))
        return;
    set_reason(p, err->code, err->msg);
    p->decided = COMMIT_KEEP;
}

// Messages of other members

static void keep_body(struct dialog_event *e, int *count, char **to, size_t *to_len)
{
    *count += *to == NULL;
    free(*to);
    *to = TAKE_PTR(e->body);
    *to_len = e->len;
}

// The connection of a member has ended without a message. A rank also closes it when it begins another transfer.
static void give_loss(struct participant *p, int member)
{
    char text[PARTICIPANT_REASON_SIZE];
    snprintf(text, sizeof text, "%s was lost: its process or its node has ended, or another transfer has begun",
             p->config.names[member]);
    set_reason(p, ERR_UNAVAILABLE, text);
}

static void lose_member(struct participant *p, int member)
{
    if (p->decided != COMMIT_OPEN)
        return;
    if (member != p->witness || !p->center.proposed)
        give_loss(p, member);
    enum commit_next next = member == p->witness ? commit_center_alone(&p->center) : commit_center_failed(&p->center);
    if (member == p->witness)
        p->witness = -1;
    follow_center(p, next);
}

// Returns ERR_PROTO for a number that is not an error. It would look like success.
static int read_code(const char *at)
{
    uint32_t number = le_get_u32(at);
    return number && number <= INT32_MAX ? -(int)number : ERR_PROTO;
}

// A member often fails because another one was lost, which says more.
static void take_failure(struct participant *p, const struct dialog_event *e)
{
    char text[PARTICIPANT_REASON_SIZE];
    if (e->len < 4 || p->decided != COMMIT_OPEN)
        return;
    int lost = dialog_lost(&p->dialog, e->member);
    if (lost >= 0)
        lose_member(p, lost);
    if (p->decided != COMMIT_OPEN)
        return;
    snprintf(text, sizeof text, "%s: %s", p->config.names[e->member], e->body + 4);
    set_reason(p, read_code(e->body), text);
    follow_center(p, commit_center_failed(&p->center));
}

static enum commit_decision read_decision(struct participant *p, const struct dialog_event *e)
{
    uint32_t decision = e->len >= 8 ? le_get_u32(e->body) : COMMIT_KEEP;
    if (decision != COMMIT_TAKE)
        set_reason(p, e->len >= 8 ? read_code(e->body + 4) : ERR_PROTO, e->len >= 8 ? e->body + 8 : "");
    return decision == COMMIT_TAKE ? COMMIT_TAKE : COMMIT_KEEP;
}

static void keep_wrote(struct participant *p, uint32_t sender, uint64_t bytes)
{
    if (sender < (uint32_t)p->config.n_senders)
        p->wrote[sender] = bytes;
}

// A sender has written to this receiver or to another one.
static void pass_wrote(struct participant *p, const struct dialog_event *e)
{
    uint32_t receiver = le_get_u32(e->body);
    uint64_t bytes = le_get_u64(e->body + 4);
    if (receiver == 0)
        keep_wrote(p, (uint32_t)(e->member - p->config.n_receivers), bytes);
    else if (receiver < (uint32_t)p->config.n_receivers)
        say_wrote(p, (int)receiver, e->member - p->config.n_receivers, bytes);
}

static void tell_center(struct participant *p, struct dialog_event *e)
{
    struct participant_member *m = &p->members[e->member];
    if (e->kind == DIALOG_LOST) {
        lose_member(p, e->member);
    } else if (e->kind == DIALOG_HELLO) {
        keep_body(e, &p->n_hello, &m->hello, &m->hello_len);
    } else if (e->kind == DIALOG_GPU) {
        keep_body(e, &p->n_gpu, &m->gpu, &m->gpu_len);
    } else if (e->kind == DIALOG_JOINED && e->len >= 4) {
        keep_joined(p, e->member, le_get_u32(e->body) ? e->body + 4 : NULL);
    } else if (e->kind == DIALOG_HERE) {
        m->here_ms = clock_mono_ms(&clock_system);
    } else if (e->kind == DIALOG_NEEDS) {
        keep_body(e, &p->n_needs, &m->needs, &m->needs_len);
    } else if (e->kind == DIALOG_FAILED) {
        take_failure(p, e);
    } else if (e->kind == DIALOG_WAITS && e->len == 4) {
        uint32_t other = le_get_u32(e->body);
        m->waits_for = other < (uint32_t)p->dialog.n ? p->config.names[other] : NULL;
    } else if (e->kind == DIALOG_WROTE && e->len == 12 && e->member >= p->config.n_receivers) {
        pass_wrote(p, e);
    } else if (e->kind == DIALOG_READY && !m->ready && e->member < p->config.n_receivers) {
        m->ready = true;
        follow_center(p, commit_center_ready(&p->center, p->witness >= 0));
    } else if (e->kind == DIALOG_DECISION && e->member == p->witness) {
        follow_center(p, commit_center_answered(&p->center, read_decision(p, e)));
    }
}

static void tell_receiver(struct participant *p, struct dialog_event *e)
{
    if (e->kind == DIALOG_DECISION) {
        commit_receiver_told(&p->receiver, read_decision(p, e));
        p->decided = p->receiver.decision;
    } else if (e->kind == DIALOG_WROTE && e->len == 12 && e->member == 0) {
        keep_wrote(p, le_get_u32(e->body), le_get_u64(e->body + 4));
    } else if (e->kind == DIALOG_LOST && e->member == 0) {
        follow_receiver(p, commit_receiver_center_lost(&p->receiver));
        if (p->decided == COMMIT_KEEP)
            give_loss(p, 0);
    } else if (e->kind == DIALOG_LOST) {
        follow_receiver(p, commit_receiver_witness_lost(&p->receiver));
    }
}

// If the center has died or given up after its proposal, no other member knows of the proposal.
static bool center_is_there(const struct participant *p)
{
    char byte;
    return p->dialog.links[0] >= 0 && recv(p->dialog.links[0], &byte, 1, MSG_PEEK | MSG_DONTWAIT) != 0;
}

static void tell_sender(struct participant *p, struct dialog_event *e)
{
    char text[PARTICIPANT_REASON_SIZE];
    bool open = p->decided == COMMIT_OPEN;
    if (e->kind == DIALOG_DECISION && open) {
        p->decided = read_decision(p, e);
    } else if (e->kind == DIALOG_LOST && e->member == 0 && open) {
        p->decided = p->at_witness == COMMIT_TAKE ? COMMIT_TAKE : COMMIT_KEEP;
        if (p->decided == COMMIT_KEEP)
            give_loss(p, 0);
    } else if (e->kind == DIALOG_PROPOSE && center_is_there(p)) {
        say_decision(p, 0, commit_witness_proposed(&p->at_witness));
    } else if (e->kind == DIALOG_OVER && e->member < p->config.n_receivers) {
        p->members[e->member].over = true;
    } else if (e->kind == DIALOG_ASK) {
        snprintf(text, sizeof text, "%s was lost, or stands still", p->config.names[0]);
        set_reason(p, ERR_UNAVAILABLE, text);
        say_decision(p, e->member, commit_witness_asked(&p->at_witness));
        if (p->at_witness == COMMIT_KEEP) // so that the center does not decide alone if this rank ends
            say_decision(p, 0, COMMIT_KEEP);
    }
}

static void take_event(struct participant *p, struct dialog_event *e)
{
    if (!participant_is_center(p) && e->kind == DIALOG_ALL && !p->all) {
        p->all = TAKE_PTR(e->body);
        p->all_len = e->len;
    } else if (!participant_is_center(p) && e->kind == DIALOG_JOIN && !p->join) {
        p->join = TAKE_PTR(e->body);
        p->join_len = e->len;
    } else if (!participant_is_center(p) && e->kind == DIALOG_GO && !p->go) {
        p->go = TAKE_PTR(e->body);
        p->go_len = e->len;
    } else if (participant_is_center(p)) {
        tell_center(p, e);
    } else if (participant_is_receiver(p)) {
        tell_receiver(p, e);
    } else {
        tell_sender(p, e);
    }
    free(TAKE_PTR(e->body));
}

// Time

// A member is late if it has not sent the first message that the center still waits for.
static bool is_late(const struct participant *p, int member)
{
    const struct participant_member *m = &p->members[member];
    bool receives = member < p->config.n_receivers;
    if (p->n_hello < p->dialog.n)
        return !m->hello;
    if (p->n_needs < p->config.n_receivers)
        return receives && !m->needs;
    return p->go ? receives && !m->ready : m->by_nccl && !m->joined;
}

// Returns the member that uses NCCL and has been silent for longest, if that is too long. -1 = none. In the first half
// of the time, no member says anything.
static int find_silent(const struct participant *p)
{
    int64_t half = p->until - p->config.limit_ms / 2, longest = p->config.limit_ms / SILENT_PARTS;
    int64_t now = clock_mono_ms(&clock_system);
    int found = -1;
    for (int i = 1; i < p->dialog.n; i++) {
        const struct participant_member *m = &p->members[i];
        int64_t silent = now - MAX(m->here_ms, half);
        if (!m->by_nccl || m->ready || silent <= longest)
            continue;
        longest = silent;
        found = i;
    }
    return found;
}

static const char *waits_for(const struct participant *p, int member)
{
    const struct participant_member *m = &p->members[member];
    int silent = p->go && m->by_nccl && !m->waits_for ? find_silent(p) : -1;
    return silent < 0 || silent == member ? m->waits_for : p->config.names[silent];
}

// A late member may wait for another late member, so the message names several.
static void name_late(const struct participant *p, struct err *err)
{
    struct buf names = BUF_INIT(PARTICIPANT_REASON_SIZE);
    int n = 0;
    for (int i = 0; i < p->dialog.n; i++) {
        const char *other = waits_for(p, i);
        if (is_late(p, i) && n++ < LATE_NAMES_MAX)
            (void)buf_printf(&names, "%s%s%s%s%s", n > 1 ? ", " : "", p->config.names[i],
                             other ? " (which waits for " : "", other ? other : "", other ? ")" : "");
    }
    if (n > LATE_NAMES_MAX)
        (void)buf_printf(&names, " and %d more", n - LATE_NAMES_MAX);
    if (n)
        err_set(err, ERR_TIMEOUT, "%s %s not ready within %" PRId64 " ms", buf_str(&names), n > 1 ? "are" : "is",
                p->config.limit_ms);
    else
        err_set(err, ERR_TIMEOUT, "the witness, %s, does not answer", p->config.names[MAX(p->witness, 0)]);
    buf_done(&names);
}

static void be_late(struct participant *p)
{
    struct err err = ERR_INIT;
    int64_t over = clock_mono_ms(&clock_system) - p->until;
    if (over < 0 || p->decided != COMMIT_OPEN)
        return;
    if (participant_is_center(p)) {
        name_late(p, &err);
        if (!p->center.proposed)
            participant_fail(p, &err);
        else if (!participant_is_patient(p)) {
            set_reason(p, err.code, err.msg);
            follow_center(p, commit_center_gives_up(&p->center));
        }
        return;
    }
    if (over < p->config.late_ms)
        return;
    err_set(&err, ERR_TIMEOUT, "%s says nothing within %" PRId64 " ms: it stands still, or cannot be reached",
            p->config.names[0], p->config.limit_ms);
    if (!participant_is_receiver(p)) {
        participant_fail(p, &err);
    } else {
        follow_receiver(p, commit_receiver_late(&p->receiver));
        if (p->decided == COMMIT_OPEN && !participant_is_patient(p))
            commit_receiver_gives_up(&p->receiver);
        follow_receiver(p, COMMIT_WAIT);
        if (p->decided == COMMIT_KEEP)
            set_reason(p, err.code, err.msg);
    }
}

// A member cannot be canceled after it has promised something to the others.
static bool may_be_canceled(const struct participant *p)
{
    if (p->decided != COMMIT_OPEN)
        return false;
    if (participant_is_center(p))
        return !p->center.proposed;
    return participant_is_receiver(p) ? !p->receiver.ready : p->at_witness == COMMIT_OPEN;
}

void participant_attend(struct participant *p, struct pollfd *others, size_t n_others, int timeout_ms)
{
    struct dialog_event e;
    int wait = MIN(timeout_ms, (int)PARTICIPANT_SLICE_MS);
    bool idle = wait == PARTICIPANT_SLICE_MS, more = true;
    while (more && dialog_next(&p->dialog, others, n_others, wait, &e)) {
        take_event(p, &e);
        idle = false;
        wait = 0;
        more = e.kind != DIALOG_GO;
    }
    p->waited += idle && !participant_left_ms(p);
    if (may_be_canceled(p) && atomic_load(p->config.canceled)) {
        struct err err = ERR_INIT;
        err_set(&err, ERR_CANCELED, "canceled");
        participant_fail(p, &err);
    }
    be_late(p);
}

int participant_outcome(const struct participant *p, struct err *err)
{
    if (p->decided == COMMIT_TAKE)
        return 0;
    return err_set(err, p->code ? p->code : ERR_INTERNAL, "%s", p->reason);
}
