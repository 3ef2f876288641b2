// SPDX-License-Identifier: Apache-2.0
#include "operator/runtime/leader_fsm.h"

#include "common/base/mem.h"
#include "common/base/str.h"

#include <stdio.h>

void leader_fsm_init(struct leader_fsm *f, const struct leader_rules *rules, uint64_t seed)
{
    *f = (struct leader_fsm){.rules = *rules};
    rand_seed(&f->rand, seed);
}

static bool is_mine(const struct leader_fsm *f)
{
    return str_eq(f->holder, f->rules.identity);
}

static int64_t believed_ms(const struct leader_fsm *f)
{
    return MIN(f->duration_ms, MAX((int64_t)LEADER_BELIEVED_MS, 4 * f->rules.lease_ms));
}

// Returns when we stop believing the holder, unless it renews.
static int64_t ends_ms(const struct leader_fsm *f)
{
    return f->observed_ms + believed_ms(f);
}

static bool is_held_by_other(const struct leader_fsm *f, int64_t now)
{
    return *f->holder && !is_mine(f) && now < ends_ms(f);
}

// Takes the record over.
static void observe(struct leader_fsm *f, const struct lease *l, int64_t now, struct leader_output *out)
{
    const char *holder = l->holder ? l->holder : "";
    bool new_holder = !str_eq(f->holder, holder);
    const char *version = l->obj.meta.resource_version ? l->obj.meta.resource_version : "";
    out->restored = *f->version && *version && resource_version_cmp(version, f->version) < 0;
    if (new_holder || !*f->version || !str_eq(f->version, version))
        f->observed_ms = now;
    snprintf(f->version, sizeof f->version, "%s", version);
    snprintf(f->holder, sizeof f->holder, "%s", holder);
    const char *watches = labels_get(&l->obj.meta.annotations, ANNOTATION_WATCHES);
    snprintf(f->watches, sizeof f->watches, "%s", watches ? watches : "");
    f->duration_ms = (int64_t)MAX(l->duration_s, 0) * 1000;
    f->acquired_wall_ms = l->acquired_ms;
    f->transitions = l->transitions;
    out->holder_changed = new_holder && !is_mine(f); // it is mine if an answer was lost, or an edit was reverted
}

static void try_by(struct leader_fsm *f, int64_t end)
{
    enum { SPREAD_MS = 200 };
    f->next_ms = MIN(f->next_ms, end + rand_range(&f->rand, 0, SPREAD_MS));
}

// Followers spread their tries over 1 to 2.2 periods (client-go's jitter factor), so that they do not meet. None waits
// longer than the Lease that it sees.
static void try_later(struct leader_fsm *f, int64_t now)
{
    int64_t jitter = f->state == LEADER_LEADING ? 0 : rand_range(&f->rand, 0, f->rules.retry_ms * 12 / 10);
    f->next_ms = now + f->rules.retry_ms + jitter;
    if (is_held_by_other(f, now))
        try_by(f, ends_ms(f));
}

static void try_soon(struct leader_fsm *f, int64_t now)
{
    int64_t most = MIN(f->rules.retry_ms, (int64_t)LEADER_RETRY_SOON_MS);
    f->next_ms = now + rand_range(&f->rand, most / 2, most);
}

static void lose(struct leader_fsm *f, struct leader_output *out)
{
    out->lost = true;
    f->state = LEADER_FOLLOWING;
}

static enum leader_action send(struct leader_fsm *f, enum leader_action action, int64_t now)
{
    f->busy = true;
    f->sent_ms = now;
    return action;
}

static enum leader_action on_tick(struct leader_fsm *f, int64_t now)
{
    if (f->busy || now < f->next_ms)
        return LEADER_DO_NOTHING;
    f->reread = false;
    // The leader writes what it knows. It reads again only if that is stale.
    return send(f, f->state == LEADER_LEADING ? LEADER_DO_UPDATE : LEADER_DO_GET, now);
}

static enum leader_action on_got(struct leader_fsm *f, const struct leader_input *in, struct leader_output *out)
{
    observe(f, in->lease, in->mono_ms, out);
    if (f->state == LEADER_LEADING && *f->holder && !is_mine(f)) {
        lose(f, out);
    }
    if (is_held_by_other(f, in->mono_ms)) {
        try_later(f, in->mono_ms);
        return LEADER_DO_NOTHING;
    }
    out->disbelieved = *f->holder && !is_mine(f) && believed_ms(f) < f->duration_ms;
    return send(f, LEADER_DO_UPDATE, in->mono_ms);
}

static enum leader_action on_missing(struct leader_fsm *f, int64_t now)
{
    bool had_holder = f->state != LEADER_LEADING && *f->holder;
    if (had_holder && *f->version) { // somebody has deleted the record
        f->version[0] = '\0';
        f->missing_ms = now;
    }
    int64_t end = f->missing_ms + f->rules.renew_deadline_ms;
    if (had_holder && now < end) {
        try_later(f, now);
        try_by(f, end);
        return LEADER_DO_NOTHING;
    }
    return send(f, LEADER_DO_CREATE, now);
}

static enum leader_action on_wrote(struct leader_fsm *f, const struct leader_input *in, struct leader_output *out)
{
    observe(f, in->lease, in->mono_ms, out);
    if (in->mono_ms >= f->sent_ms + f->rules.renew_deadline_ms) { // too long ago to be useful
        f->next_ms = in->mono_ms;
        return LEADER_DO_NOTHING;
    }
    f->renewed_ms = f->sent_ms;
    out->elected = f->state == LEADER_FOLLOWING;
    f->state = LEADER_LEADING;
    try_later(f, f->sent_ms);
    return LEADER_DO_NOTHING;
}

static enum leader_action on_conflict(struct leader_fsm *f, int64_t now)
{
    if (f->reread) { // we lost the race twice: the other one renews, so the next try can wait
        try_later(f, now);
        return LEADER_DO_NOTHING;
    }
    f->reread = true;
    return send(f, LEADER_DO_GET, now);
}

static enum leader_action react(struct leader_fsm *f, const struct leader_input *in, struct leader_output *out)
{
    if (in->event != LEADER_TICK)
        f->busy = false;
    switch (in->event) {
    case LEADER_TICK:
        return on_tick(f, in->mono_ms);
    case LEADER_GOT:
        return on_got(f, in, out);
    case LEADER_MISSING:
        return on_missing(f, in->mono_ms);
    case LEADER_WROTE:
        return on_wrote(f, in, out);
    case LEADER_CONFLICT:
        return on_conflict(f, in->mono_ms);
    case LEADER_FAILED:
        try_soon(f, in->mono_ms);
        return LEADER_DO_NOTHING;
    }
    return LEADER_DO_NOTHING;
}

static int64_t wait_for(const struct leader_fsm *f, int64_t now)
{
    int64_t deadline = f->state == LEADER_LEADING ? f->renewed_ms + f->rules.renew_deadline_ms : INT64_MAX;
    int64_t due = f->busy ? deadline : MIN(f->next_ms, deadline);
    return due == INT64_MAX ? -1 : MAX(due - now, 0);
}

struct leader_output leader_step(struct leader_fsm *f, const struct leader_input *in)
{
    struct leader_output out = {.action = LEADER_DO_NOTHING, .wait_ms = -1};
    if (f->state == LEADER_RESIGNED)
        return out;
    if (in->event != LEADER_TICK) {
        bool failed = in->event == LEADER_FAILED;
        out.away_ms = f->failing_ms && !failed ? MAX(in->mono_ms - f->failing_ms, 1) : 0;
        f->failing_ms = !failed ? 0 : f->failing_ms ? f->failing_ms : MAX(f->sent_ms, 1);
    }
    // A late success does not count: others may have been elected meanwhile. (A write that was sent before the deadline
    // counts.)
    int64_t renewed = in->event == LEADER_WROTE ? f->sent_ms : f->renewed_ms;
    bool late = f->state == LEADER_LEADING && in->mono_ms >= renewed + f->rules.renew_deadline_ms;
    if (late) {
        lose(f, &out);
        f->next_ms = in->mono_ms;
    }
    out.action = react(f, in, &out);
    out.wait_ms = wait_for(f, in->mono_ms);
    return out;
}

int64_t leader_fsm_writes_until_ms(const struct leader_fsm *f)
{
    return f->state == LEADER_LEADING ? f->renewed_ms + f->rules.renew_deadline_ms : 0;
}

const char *leader_fsm_write(const struct leader_fsm *f, const char *ns, const char *name, int64_t wall_ms, bool update,
                             struct arena *a)
{
    bool resigned = f->state == LEADER_RESIGNED, renewal = !resigned && is_mine(f);
    bool changes = update && !resigned && !renewal && f->transitions < INT32_MAX; // anybody may have written the number
    struct label watches = {ANNOTATION_WATCHES, f->rules.watches};
    struct lease l = {
        .obj.meta = {.ns = ns,
                     .name = name,
                     .resource_version = update ? f->version : NULL,
                     .annotations = {&watches, f->rules.watches != NULL}},
        .holder = resigned ? "" : f->rules.identity,
        .duration_s = resigned ? 1 : (int32_t)((f->rules.lease_ms + 999) / 1000),
        .transitions = f->transitions + changes,
        .acquired_ms = renewal ? f->acquired_wall_ms : wall_ms,
        .renewed_ms = wall_ms,
    };
    return lease_encode(&l, a);
}

bool leader_fsm_resign(struct leader_fsm *f)
{
    bool held = f->state == LEADER_LEADING && is_mine(f);
    f->state = LEADER_RESIGNED;
    return held;
}
