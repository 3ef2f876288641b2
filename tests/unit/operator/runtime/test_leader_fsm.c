// SPDX-License-Identifier: Apache-2.0
#include "operator/runtime/leader_fsm.h"

#include "common/base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

static const struct leader_rules rules = {"me", 15000, 10000, 2000, "*"};

static struct leader_output feed(struct leader_fsm *f, enum leader_event event, const struct lease *lease, int64_t now)
{
    return leader_step(f, &(struct leader_input){event, lease, now});
}

static struct lease record(const char *version, const char *holder, int32_t duration_s, int32_t transitions)
{
    return (struct lease){.obj.meta.resource_version = version,
                          .holder = holder,
                          .duration_s = duration_s,
                          .transitions = transitions,
                          .acquired_ms = 1600000000000,
                          .renewed_ms = 1600000000000};
}

static struct leader_fsm elected_at(int64_t now)
{
    struct leader_fsm f;
    leader_fsm_init(&f, &rules, 1);
    feed(&f, LEADER_TICK, NULL, now);
    feed(&f, LEADER_MISSING, NULL, now);
    struct lease mine = record("1", "me", 15, 0);
    assert_true(feed(&f, LEADER_WROTE, &mine, now).elected);
    return f;
}

static void a_missing_lease_is_created_and_then_held(void **state)
{
    (void)state;
    struct leader_fsm f;
    leader_fsm_init(&f, &rules, 1);
    assert_int_equal(feed(&f, LEADER_TICK, NULL, 0).action, LEADER_DO_GET);
    struct leader_output out = feed(&f, LEADER_MISSING, NULL, 10);
    assert_int_equal(out.action, LEADER_DO_CREATE);
    assert_false(out.elected);
    struct lease mine = record("1", "me", 15, 0);
    out = feed(&f, LEADER_WROTE, &mine, 30);
    assert_true(out.elected);
    assert_int_equal(out.action, LEADER_DO_NOTHING);
    assert_int_equal(out.wait_ms, 1980); // 2 s after the write was sent
    assert_int_equal(f.state, LEADER_LEADING);
}

static void the_leader_renews_without_reading(void **state)
{
    (void)state;
    struct leader_fsm f = elected_at(0);
    assert_int_equal(feed(&f, LEADER_TICK, NULL, 1999).action, LEADER_DO_NOTHING);
    assert_int_equal(feed(&f, LEADER_TICK, NULL, 2000).action, LEADER_DO_UPDATE);
    struct leader_output out = feed(&f, LEADER_TICK, NULL, 2500);
    assert_int_equal(out.action, LEADER_DO_NOTHING); // one request at a time
    assert_int_equal(out.wait_ms, 7500);             // the deadline stays
    struct lease mine = record("2", "me", 15, 0);
    out = feed(&f, LEADER_WROTE, &mine, 2600);
    assert_false(out.elected || out.lost);
    assert_int_equal(out.wait_ms, 1400);
}

static void a_lease_that_is_free_is_taken_at_once(void **state)
{
    (void)state;
    struct leader_fsm f;
    leader_fsm_init(&f, &rules, 1);
    feed(&f, LEADER_TICK, NULL, 0);
    struct lease free_lease = record("7", "", 1, 3);
    assert_int_equal(feed(&f, LEADER_GOT, &free_lease, 0).action, LEADER_DO_UPDATE);
}

static void a_held_lease_is_taken_when_its_record_has_not_changed_for_its_duration(void **state)
{
    (void)state;
    struct leader_fsm f;
    leader_fsm_init(&f, &rules, 1);
    feed(&f, LEADER_TICK, NULL, 0);
    struct lease theirs = record("7", "you", 15, 3);
    struct leader_output out = feed(&f, LEADER_GOT, &theirs, 0);
    assert_int_equal(out.action, LEADER_DO_NOTHING);
    assert_true(out.holder_changed);
    assert_string_equal(f.holder, "you");
    assert_in_range(out.wait_ms, 2000, 4400);
    assert_int_equal(feed(&f, LEADER_TICK, NULL, 14000).action, LEADER_DO_GET);
    theirs = record("8", "you", 15, 3); // it was renewed: the time begins again
    out = feed(&f, LEADER_GOT, &theirs, 14000);
    assert_false(out.holder_changed);
    assert_int_equal(out.action, LEADER_DO_NOTHING);
    feed(&f, LEADER_TICK, NULL, 28999);
    assert_int_equal(feed(&f, LEADER_GOT, &theirs, 28999).action, LEADER_DO_NOTHING);
    feed(&f, LEADER_TICK, NULL, 60000);
    out = feed(&f, LEADER_GOT, &theirs, 60000);
    assert_int_equal(out.action, LEADER_DO_UPDATE);
    assert_false(out.disbelieved); // we believed it for the whole time in its record
}

static void a_conflict_is_answered_by_reading_again_once(void **state)
{
    (void)state;
    struct leader_fsm f = elected_at(0);
    feed(&f, LEADER_TICK, NULL, 2000);
    assert_int_equal(feed(&f, LEADER_CONFLICT, NULL, 2010).action, LEADER_DO_GET);
    struct lease mine = record("9", "me", 15, 0); // it is our own write, and its answer was lost
    assert_int_equal(feed(&f, LEADER_GOT, &mine, 2020).action, LEADER_DO_UPDATE);
    struct leader_output out = feed(&f, LEADER_CONFLICT, NULL, 2030);
    assert_int_equal(out.action, LEADER_DO_NOTHING); // the race ends
    assert_int_equal(out.wait_ms, 2000);
    assert_int_equal(f.state, LEADER_LEADING);
}

// The machine does not report another leader in these cases.
static void who_holds_the_lease_itself_is_no_other_holder(void **state)
{
    (void)state;
    struct leader_fsm f;
    struct lease mine = record("9", "me", 15, 0), edited = record("10", "", 15, 0), again = record("11", "me", 15, 1);
    leader_fsm_init(&f, &rules, 1);
    feed(&f, LEADER_TICK, NULL, 0);
    feed(&f, LEADER_MISSING, NULL, 0);
    feed(&f, LEADER_FAILED, NULL, 100); // the write succeeded, and its answer was lost
    feed(&f, LEADER_TICK, NULL, 2000);
    assert_false(feed(&f, LEADER_GOT, &mine, 2000).holder_changed);
    assert_true(feed(&f, LEADER_WROTE, &mine, 2010).elected);
    feed(&f, LEADER_TICK, NULL, 4010);
    feed(&f, LEADER_CONFLICT, NULL, 4020); // somebody has emptied the record
    assert_int_equal(feed(&f, LEADER_GOT, &edited, 4030).action, LEADER_DO_UPDATE);
    struct leader_output out = feed(&f, LEADER_WROTE, &again, 4040);
    assert_false(out.holder_changed || out.lost || out.elected);
}

static void failures_cost_the_lease_only_after_the_deadline(void **state)
{
    (void)state;
    struct leader_fsm f = elected_at(0);
    int64_t now = 2000;
    struct leader_output out = {0};
    for (; now < 10000; now += 2000) {
        assert_int_equal(feed(&f, LEADER_TICK, NULL, now).action, LEADER_DO_UPDATE);
        out = feed(&f, LEADER_FAILED, NULL, now);
        assert_false(out.lost);
        assert_in_range(out.wait_ms, 500, 1000); // the server may be back at any moment
    }
    assert_true(9999 < leader_fsm_writes_until_ms(&f));
    assert_false(10000 < leader_fsm_writes_until_ms(&f)); // even if it has not been told yet
    out = feed(&f, LEADER_TICK, NULL, 10000);
    assert_true(out.lost);
    assert_int_equal(f.state, LEADER_FOLLOWING);
    assert_false(feed(&f, LEADER_TICK, NULL, 10001).lost); // it is reported once
}

// Reads the same record again and again. No try takes the Lease before that time.
static bool is_held_until(struct leader_fsm *f, const struct lease *theirs, int64_t end)
{
    feed(f, LEADER_TICK, NULL, end - 1);
    bool held = feed(f, LEADER_GOT, theirs, end - 1).action == LEADER_DO_NOTHING;
    feed(f, LEADER_TICK, NULL, end + 5000);
    return held && feed(f, LEADER_GOT, theirs, end + 5000).action == LEADER_DO_UPDATE;
}

// Its name is still in the record, so nobody else has led.
static void who_has_lost_is_elected_again_when_the_server_is_back(void **state)
{
    (void)state;
    struct leader_fsm f = elected_at(0);
    struct leader_output out = feed(&f, LEADER_TICK, NULL, 10000);
    assert_true(out.lost);
    assert_int_equal(out.action, LEADER_DO_GET); // at once
    out = feed(&f, LEADER_FAILED, NULL, 10010);
    assert_int_equal(out.action, LEADER_DO_NOTHING);
    assert_in_range(out.wait_ms, 500, 1000);
    assert_int_equal(out.away_ms, 0);
    assert_int_equal(feed(&f, LEADER_TICK, NULL, 12000).action, LEADER_DO_GET);
    struct lease mine = record("1", "me", 15, 0);
    out = feed(&f, LEADER_GOT, &mine, 12010);
    assert_int_equal(out.away_ms, 2010); // since the first request that failed was sent
    assert_false(out.elected);
    assert_int_equal(out.action, LEADER_DO_UPDATE);
    mine = record("2", "me", 15, 0);
    out = feed(&f, LEADER_WROTE, &mine, 12020);
    assert_true(out.elected);
    assert_int_equal(out.away_ms, 0);
    assert_true(12020 < leader_fsm_writes_until_ms(&f));
}

static void a_follower_tries_as_soon_as_the_lease_that_it_sees_is_over(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed < 50; seed++) {
        struct leader_fsm f;
        leader_fsm_init(&f, &rules, seed);
        feed(&f, LEADER_TICK, NULL, 0);
        struct lease theirs = record("7", "you", 15, 3);
        int64_t now = feed(&f, LEADER_GOT, &theirs, 0).wait_ms;
        while (feed(&f, LEADER_TICK, NULL, now).action == LEADER_DO_GET) {
            struct leader_output out = feed(&f, LEADER_GOT, &theirs, now);
            if (out.action == LEADER_DO_UPDATE)
                break;
            now += out.wait_ms;
        }
        assert_in_range(now, 15000, 15200);
    }
}

// Somebody has edited the record. Without a limit, nobody would decide for an hour.
static void a_holder_that_does_not_renew_is_not_believed_for_long(void **state)
{
    (void)state;
    static const int32_t seconds[] = {3600, INT32_MAX};
    for (size_t i = 0; i < sizeof seconds / sizeof *seconds; i++) {
        struct leader_fsm f;
        leader_fsm_init(&f, &rules, 1);
        struct lease theirs = record("7", "thief", seconds[i], 3);
        feed(&f, LEADER_TICK, NULL, 0);
        feed(&f, LEADER_GOT, &theirs, 0);
        feed(&f, LEADER_TICK, NULL, 59000);
        struct leader_output out = feed(&f, LEADER_GOT, &theirs, 59999);
        assert_int_equal(out.action, LEADER_DO_NOTHING);
        assert_false(out.disbelieved);
        feed(&f, LEADER_TICK, NULL, 65000);
        out = feed(&f, LEADER_GOT, &theirs, 65000);
        assert_int_equal(out.action, LEADER_DO_UPDATE);
        assert_true(out.disbelieved); // for the log, while the name is still known
        assert_string_equal(f.holder, "thief");
    }
    struct leader_fsm f;
    leader_fsm_init(&f, &rules, 1);
    struct lease negative = record("7", "thief", -5, 3);
    feed(&f, LEADER_TICK, NULL, 0);
    assert_int_equal(feed(&f, LEADER_GOT, &negative, 0).action, LEADER_DO_UPDATE);
}

static void a_lease_that_is_deleted_is_made_again_without_a_loss(void **state)
{
    (void)state;
    struct leader_fsm f = elected_at(0);
    feed(&f, LEADER_TICK, NULL, 2000);
    assert_int_equal(feed(&f, LEADER_CONFLICT, NULL, 2000).action, LEADER_DO_GET);
    struct leader_output out = feed(&f, LEADER_MISSING, NULL, 2010);
    assert_int_equal(out.action, LEADER_DO_CREATE);
    struct lease mine = record("12", "me", 15, 0);
    out = feed(&f, LEADER_WROTE, &mine, 2020);
    assert_false(out.lost || out.elected);
    assert_int_equal(f.state, LEADER_LEADING);
}

// The holder does not know yet that the Lease is gone. It may write until it has failed to renew the Lease.
static void a_follower_leaves_it_to_the_leader_to_make_a_deleted_lease_again(void **state)
{
    (void)state;
    struct leader_fsm f;
    leader_fsm_init(&f, &rules, 1);
    struct lease theirs = record("7", "thief", 3600, 3);
    feed(&f, LEADER_TICK, NULL, 0);
    feed(&f, LEADER_GOT, &theirs, 0);
    feed(&f, LEADER_TICK, NULL, 70000); // our process was frozen meanwhile, so a silent holder means nothing
    struct leader_output out = feed(&f, LEADER_MISSING, NULL, 70000);
    assert_int_equal(out.action, LEADER_DO_NOTHING);
    assert_in_range(out.wait_ms, 2000, 4400);
    feed(&f, LEADER_TICK, NULL, 79999);
    assert_int_equal(feed(&f, LEADER_MISSING, NULL, 79999).action, LEADER_DO_NOTHING);
    feed(&f, LEADER_TICK, NULL, 81000); // the duration in the record does not matter
    out = feed(&f, LEADER_MISSING, NULL, 81000);
    assert_int_equal(out.action, LEADER_DO_CREATE);
    assert_false(out.disbelieved);
    theirs = record("12", "you", 15, 0); // the leader came first
    feed(&f, LEADER_CONFLICT, NULL, 81010);
    assert_int_equal(feed(&f, LEADER_GOT, &theirs, 81020).action, LEADER_DO_NOTHING);
    assert_true(is_held_until(&f, &theirs, 81020 + 15000));
}

static void a_lease_that_was_released_and_deleted_is_made_at_once(void **state)
{
    (void)state;
    struct leader_fsm f;
    leader_fsm_init(&f, &rules, 1);
    struct lease theirs = record("7", "you", 15, 3), released = record("8", "", 1, 3);
    feed(&f, LEADER_TICK, NULL, 0);
    feed(&f, LEADER_GOT, &theirs, 0);
    feed(&f, LEADER_TICK, NULL, 5000);
    feed(&f, LEADER_GOT, &released, 5000);
    feed(&f, LEADER_CONFLICT, NULL, 5010);
    assert_int_equal(feed(&f, LEADER_MISSING, NULL, 5020).action, LEADER_DO_CREATE);
}

static void whose_namespaces_the_holder_acts_on_is_known(void **state)
{
    (void)state;
    struct leader_fsm f;
    leader_fsm_init(&f, &rules, 1);
    struct label label = {ANNOTATION_WATCHES, "team-a"};
    struct lease theirs = record("7", "you", 15, 3);
    theirs.obj.meta.annotations = (struct labels){&label, 1};
    feed(&f, LEADER_TICK, NULL, 0);
    feed(&f, LEADER_GOT, &theirs, 0);
    assert_string_equal(f.watches, "team-a");
    theirs = record("8", "older", 15, 3); // an older version, which does not write the namespaces
    feed(&f, LEADER_TICK, NULL, 9000);
    feed(&f, LEADER_GOT, &theirs, 9000);
    assert_string_equal(f.watches, "");
}

static void a_request_that_hangs_costs_the_lease_too(void **state)
{
    (void)state;
    struct leader_fsm f = elected_at(0);
    feed(&f, LEADER_TICK, NULL, 2000);
    struct leader_output out = feed(&f, LEADER_TICK, NULL, 9999);
    assert_false(out.lost);
    assert_int_equal(out.wait_ms, 1);
    assert_true(feed(&f, LEADER_TICK, NULL, 10000).lost);
}

static void a_success_counts_from_when_it_was_sent(void **state)
{
    (void)state;
    struct leader_fsm f = elected_at(0);
    feed(&f, LEADER_TICK, NULL, 9000);
    struct lease mine = record("2", "me", 15, 0);
    assert_false(feed(&f, LEADER_WROTE, &mine, 12000).lost); // it was sent in time
    assert_int_equal(f.renewed_ms, 9000);
    feed(&f, LEADER_TICK, NULL, 12000);
    struct leader_output out = feed(&f, LEADER_WROTE, &mine, 22000); // too old to be useful
    assert_true(out.lost);
    assert_false(out.elected);
    assert_int_equal(out.wait_ms, 0); // the next read finds it again
}

static void a_leader_that_reads_another_name_has_lost(void **state)
{
    (void)state;
    struct leader_fsm f = elected_at(0);
    feed(&f, LEADER_TICK, NULL, 2000);
    feed(&f, LEADER_CONFLICT, NULL, 2000);
    struct lease theirs = record("9", "you", 15, 1);
    struct leader_output out = feed(&f, LEADER_GOT, &theirs, 2000);
    assert_true(out.lost);
    assert_int_equal(out.action, LEADER_DO_NOTHING); // the other replica may lead
    assert_int_equal(f.state, LEADER_FOLLOWING);
}

static const char *written(const struct leader_fsm *f, bool update)
{
    static char text[1024];
    struct arena a = ARENA_INIT;
    snprintf(text, sizeof text, "%s", leader_fsm_write(f, "ns", "cadre", 1700000000000, update, &a));
    arena_done(&a);
    return text;
}

static void what_is_written_follows_client_go(void **state)
{
    (void)state;
    struct leader_fsm f;
    leader_fsm_init(&f, &rules, 1);
    const char *json = written(&f, false);
    assert_null(strstr(json, "resourceVersion"));
    assert_non_null(strstr(json, "\"annotations\":{\"cadre.dev/watches\":\"*\"}"));
    assert_non_null(strstr(json, "\"holderIdentity\":\"me\",\"leaseDurationSeconds\":15,\"leaseTransitions\":0"));
    feed(&f, LEADER_TICK, NULL, 0);
    struct lease theirs = record("7", "you", 15, 3);
    feed(&f, LEADER_GOT, &theirs, 0);
    json = written(&f, true);
    assert_non_null(strstr(json, "\"resourceVersion\":\"7\""));
    assert_non_null(strstr(json, "\"leaseTransitions\":4,\"acquireTime\":\"2023-11-14T22:13:20.000000Z\""));
    theirs = record("8", "you", 15, INT32_MAX);
    feed(&f, LEADER_GOT, &theirs, 0);
    assert_non_null(strstr(written(&f, true), "\"leaseTransitions\":2147483647"));
    f = elected_at(0);
    json = written(&f, true); // a renewal keeps the time of the election
    assert_non_null(strstr(json, "\"leaseTransitions\":0,\"acquireTime\":\"2020-09-13T12:26:40.000000Z\","
                                 "\"renewTime\":\"2023-11-14T22:13:20.000000Z\""));
    assert_true(leader_fsm_resign(&f));
    json = written(&f, true);
    assert_non_null(strstr(json, "\"resourceVersion\":\"1\""));
    assert_non_null(strstr(json, "\"holderIdentity\":\"\",\"leaseDurationSeconds\":1,\"leaseTransitions\":0"));
    leader_fsm_init(&f, &rules, 1);
    assert_false(leader_fsm_resign(&f)); // there is nothing to release
}

// Five candidates compete for one Lease. The server loses and delays requests and answers, and rejects stale writes.
// Two candidates never lead at the same time. As long as some requests arrive, somebody leads.
enum { CANDIDATES = 5 };

struct sim {
    struct rand rand;
    int64_t now;
    bool exists;
    char version[64], holder[64];
    int32_t transitions;
    int64_t version_number;
    struct candidate {
        struct leader_fsm fsm;
        char identity[16];
        int64_t tick_ms;         // when LEADER_TICK is due, -1 = never
        enum leader_action busy; // LEADER_DO_NOTHING = no request is in progress
        char read_version[64];   // for an update: the version that it is based on
        int64_t answer_ms;       // when its answer arrives
        bool reached;            // the server has handled it
        enum leader_event answer;
        struct lease lease; // in the answer
        char lease_version[64], lease_holder[64];
        int elections;
    } c[CANDIDATES];
};

static void sim_start(struct candidate *c)
{
    struct leader_rules r = {c->identity, 15000, 10000, 2000, NULL};
    leader_fsm_init(&c->fsm, &r, (uint64_t)(uintptr_t)c->identity[1] * 977);
    c->tick_ms = 0;
    c->busy = LEADER_DO_NOTHING;
}

static void sim_write(struct sim *s, struct candidate *c)
{
    bool stale = c->busy == LEADER_DO_CREATE ? s->exists : !s->exists || !str_eq(s->version, c->read_version);
    if (stale) {
        c->answer = LEADER_CONFLICT;
        return;
    }
    s->exists = true;
    snprintf(s->version, sizeof s->version, "%lld", (long long)++s->version_number);
    s->transitions += !str_eq(s->holder, c->identity);
    snprintf(s->holder, sizeof s->holder, "%s", c->identity);
    c->answer = LEADER_WROTE;
}

static void sim_serve(struct sim *s, struct candidate *c)
{
    c->reached = true;
    if (c->busy == LEADER_DO_GET)
        c->answer = s->exists ? LEADER_GOT : LEADER_MISSING;
    else
        sim_write(s, c);
    snprintf(c->lease_version, sizeof c->lease_version, "%s", s->version);
    snprintf(c->lease_holder, sizeof c->lease_holder, "%s", s->holder);
    c->lease = record(c->lease_version, c->lease_holder, 15, s->transitions);
    if (rand_below(&s->rand, 10) == 0) // the answer is lost: the candidate sees a timeout
        c->answer = LEADER_FAILED;
}

static void sim_feed(struct sim *s, struct candidate *c, enum leader_event event, const struct lease *lease)
{
    struct leader_output out = feed(&c->fsm, event, lease, s->now);
    c->elections += out.elected;
    c->tick_ms = out.wait_ms < 0 ? -1 : s->now + out.wait_ms;
    if (out.action == LEADER_DO_NOTHING)
        return;
    c->busy = out.action;
    c->reached = false;
    snprintf(c->read_version, sizeof c->read_version, "%s", c->fsm.version);
    c->answer_ms = s->now + 1 + (int64_t)rand_below(&s->rand, rand_below(&s->rand, 20) ? 50 : 5000);
}

static void sim_advance(struct sim *s, struct candidate *c)
{
    if (c->busy != LEADER_DO_NOTHING && !c->reached && rand_below(&s->rand, 20) == 0)
        sim_serve(s, c); // at any time before the answer
    if (c->busy != LEADER_DO_NOTHING && s->now >= c->answer_ms) {
        if (!c->reached && rand_below(&s->rand, 10))
            sim_serve(s, c);
        enum leader_event answer = c->reached ? c->answer : LEADER_FAILED;
        c->busy = LEADER_DO_NOTHING;
        struct lease lease = c->lease;
        sim_feed(s, c, answer, &lease);
    }
    if (c->tick_ms >= 0 && s->now >= c->tick_ms)
        sim_feed(s, c, LEADER_TICK, NULL);
}

static void never_two_leaders(void **state)
{
    (void)state;
    int elections = 0;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        struct sim s = {0};
        rand_seed(&s.rand, seed);
        for (int i = 0; i < CANDIDATES; i++) {
            snprintf(s.c[i].identity, sizeof s.c[i].identity, "c%d", i);
            sim_start(&s.c[i]);
        }
        int64_t frozen_until = 0;
        int frozen = 0;
        for (; s.now < 1200000; s.now += 10) {
            if (rand_below(&s.rand, 6000) == 0) { // a process is frozen, and continues with its old belief
                frozen = (int)rand_below(&s.rand, CANDIDATES);
                frozen_until = s.now + 30000;
            }
            if (rand_below(&s.rand, 6000) == 0) // somebody deletes the Lease
                s.exists = false;
            int leading = 0;
            for (int i = 0; i < CANDIDATES; i++) {
                if (i == frozen && s.now < frozen_until)
                    continue; // it writes nothing, so it does not count
                sim_advance(&s, &s.c[i]);
                leading += s.now < leader_fsm_writes_until_ms(&s.c[i].fsm);
            }
            assert_true(leading <= 1);
        }
        for (int i = 0; i < CANDIDATES; i++)
            elections += s.c[i].elections;
    }
    assert_true(elections > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_missing_lease_is_created_and_then_held),
        cmocka_unit_test(the_leader_renews_without_reading),
        cmocka_unit_test(a_lease_that_is_free_is_taken_at_once),
        cmocka_unit_test(a_held_lease_is_taken_when_its_record_has_not_changed_for_its_duration),
        cmocka_unit_test(a_conflict_is_answered_by_reading_again_once),
        cmocka_unit_test(who_holds_the_lease_itself_is_no_other_holder),
        cmocka_unit_test(failures_cost_the_lease_only_after_the_deadline),
        cmocka_unit_test(who_has_lost_is_elected_again_when_the_server_is_back),
        cmocka_unit_test(a_follower_tries_as_soon_as_the_lease_that_it_sees_is_over),
        cmocka_unit_test(a_holder_that_does_not_renew_is_not_believed_for_long),
        cmocka_unit_test(a_lease_that_is_deleted_is_made_again_without_a_loss),
        cmocka_unit_test(a_follower_leaves_it_to_the_leader_to_make_a_deleted_lease_again),
        cmocka_unit_test(a_lease_that_was_released_and_deleted_is_made_at_once),
        cmocka_unit_test(whose_namespaces_the_holder_acts_on_is_known),
        cmocka_unit_test(a_request_that_hangs_costs_the_lease_too),
        cmocka_unit_test(a_success_counts_from_when_it_was_sent),
        cmocka_unit_test(a_leader_that_reads_another_name_has_lost),
        cmocka_unit_test(what_is_written_follows_client_go),
        cmocka_unit_test(never_two_leaders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
