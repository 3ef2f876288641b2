// SPDX-License-Identifier: Apache-2.0
#include "operator/runtime/recorder.h"

#include "common/base/json.h"
#include "common/base/str.h"
#include "tests/unit/support/stub_client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

static struct {
    struct loop *loop;
    struct kube_client *client;
    struct metrics *metrics;
    struct recorder *recorder;
} t;

static const struct object group = {
    .refs = 1,
    .kind = KIND_WORKERGROUP,
    .meta = {.name = "llama", .ns = "ml", .uid = "u-1", .resource_version = "5"},
};

static int setup(void **state)
{
    (void)state;
    t.loop = loop_new();
    t.client = stub_client_new(t.loop);
    t.metrics = metrics_new();
    t.recorder = recorder_new(t.loop, t.client, "cadre.dev/operator", "cadre-operator-0", t.metrics);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    recorder_free(t.recorder);
    stub_client_free(t.client);
    metrics_free(t.metrics);
    loop_free(t.loop);
    return 0;
}

static void event(const char *reason, const char *note)
{
    recorder_event(t.recorder, &group, false, reason, note);
}

static struct stub_call *expect(enum verb verb)
{
    struct stub_call *call = stub_next(t.client);
    assert_non_null(call);
    assert_int_equal(call->request.kind, KIND_EVENT);
    assert_int_equal(call->request.verb, verb);
    return call;
}

// Returns the next call, NULL if none comes soon.
static struct stub_call *more(void)
{
    return stub_quiet(t.client) ? NULL : stub_next(t.client);
}

static void answer(struct stub_call *call)
{
    stub_answer(call, 200, "{}");
}

// Returns a string in the body of a request, for example metadata.name.
static const char *member(const struct stub_call *call, const char *a, const char *b)
{
    static char text[4096];
    struct arena arena = ARENA_INIT;
    struct err err = ERR_INIT;
    struct json *root = NULL;
    snprintf(text, sizeof text, "not JSON");
    if (json_parse(call->request.body, strlen(call->request.body), NULL, &arena, &root, &err) == 0) {
        const char *s = json_str(b ? json_get(json_get(root, a), b) : json_get(root, a), &arena);
        snprintf(text, sizeof text, "%s", s ? s : "missing");
    }
    arena_done(&arena);
    return text;
}

static int writes(const char *result)
{
    char labels[32];
    snprintf(labels, sizeof labels, "result=\"%s\"", result);
    return (int)metric_value(metrics_counter(t.metrics, "cadre_event_writes_total", "", labels));
}

static void an_event_says_what_happened_to_what(void **state)
{
    (void)state;
    recorder_event(t.recorder, &group, true, "Insufficient", "needs 4 GPUs, \"2\" are free");
    struct stub_call *call = expect(VERB_CREATE);
    assert_string_equal(call->request.ns, "ml");
    assert_string_equal(member(call, "type", NULL), "Warning");
    assert_string_equal(member(call, "reason", NULL), "Insufficient");
    assert_string_not_equal(member(call, "action", NULL), "missing"); // the API server requires it
    assert_string_equal(member(call, "note", NULL), "needs 4 GPUs, \"2\" are free");
    assert_string_equal(member(call, "reportingController", NULL), "cadre.dev/operator");
    assert_string_equal(member(call, "reportingInstance", NULL), "cadre-operator-0");
    assert_string_equal(member(call, "regarding", "kind"), "WorkerGroup");
    assert_string_equal(member(call, "regarding", "apiVersion"), "cadre.dev/v1alpha1");
    assert_string_equal(member(call, "regarding", "namespace"), "ml");
    assert_string_equal(member(call, "regarding", "name"), "llama");
    assert_string_equal(member(call, "regarding", "uid"), "u-1");
    assert_string_equal(member(call, "metadata", "namespace"), "ml");
    const char *name = member(call, "metadata", "name");
    assert_true(str_starts(name, "llama."));
    assert_int_equal(strspn(name + 6, "0123456789abcdef"), strlen(name + 6));
    answer(call);
    assert_int_equal(writes("written"), 1);
}

static void names_fit_and_differ(void **state)
{
    (void)state;
    char long_name[254];
    memset(long_name, 'x', 253);
    long_name[253] = '\0';
    struct object o = group;
    o.meta.name = long_name;
    recorder_event(t.recorder, &o, false, "A", "a");
    recorder_event(t.recorder, &o, false, "B", "b");
    struct stub_call *call = expect(VERB_CREATE);
    char first[300];
    snprintf(first, sizeof first, "%s", member(call, "metadata", "name"));
    assert_int_equal(strlen(first), 253);
    answer(call);
    call = expect(VERB_CREATE);
    assert_string_not_equal(member(call, "metadata", "name"), first);
    answer(call);
}

static void events_of_cluster_wide_objects_go_to_default(void **state)
{
    (void)state;
    struct object node = {.refs = 1, .kind = KIND_NODE, .meta = {.name = "n1", .ns = "", .uid = "u-n"}};
    recorder_event(t.recorder, &node, true, "Lost", "silent");
    struct stub_call *call = expect(VERB_CREATE);
    assert_string_equal(call->request.ns, "default");
    assert_string_equal(member(call, "metadata", "namespace"), "default");
    answer(call);
}

static void repeats_become_one_series(void **state)
{
    (void)state;
    event("Placed", "on n1");
    struct stub_call *call = expect(VERB_CREATE);
    char name[300];
    snprintf(name, sizeof name, "%s", member(call, "metadata", "name"));
    event("Placed", "on n1"); // the first one is still in progress: a patch could arrive earlier
    event("Placed", "on n1");
    assert_ptr_equal(stub_next(t.client), call);
    answer(call);
    call = expect(VERB_PATCH_MERGE);
    assert_string_equal(call->request.name, name);
    assert_string_equal(call->request.ns, "ml");
    assert_non_null(strstr(call->request.body, "\"series\":{\"count\":3,"));
    answer(call);
    assert_true(stub_quiet(t.client));
    event("Placed", "on n1");
    call = expect(VERB_PATCH_MERGE);
    assert_non_null(strstr(call->request.body, "\"count\":4,"));
    answer(call);
}

static void other_types_reasons_and_notes_are_other_events(void **state)
{
    (void)state;
    event("A", "a");
    event("A", "b");
    event("B", "a");
    recorder_event(t.recorder, &group, true, "A", "a");
    struct object other = group;
    other.meta.uid = "u-2";
    recorder_event(t.recorder, &other, false, "A", "a");
    for (int i = 0; i < 5; i++)
        answer(expect(VERB_CREATE));
    assert_true(stub_quiet(t.client));
}

static void of_too_many_series_that_which_is_silent_longest_is_forgotten(void **state)
{
    (void)state;
    char note[16];
    for (int i = 0; i < 17; i++) {
        snprintf(note, sizeof note, "%d", i);
        event("A", note);
        answer(expect(VERB_CREATE));
    }
    event("A", "16");
    answer(expect(VERB_PATCH_MERGE));
    event("A", "1");
    answer(expect(VERB_PATCH_MERGE));
    event("A", "0");
    answer(expect(VERB_CREATE));
}

static void a_series_whose_event_is_gone_starts_again(void **state)
{
    (void)state;
    event("A", "a");
    answer(expect(VERB_CREATE));
    event("A", "a");
    stub_answer(expect(VERB_PATCH_MERGE), 404, "{}");
    event("A", "a");
    answer(expect(VERB_CREATE));
    assert_int_equal(writes("failed"), 1);
    assert_int_equal(writes("written"), 2);
}

static void a_failed_write_is_counted_and_not_tried_again(void **state)
{
    (void)state;
    event("A", "a");
    stub_fail(expect(VERB_CREATE), ERR_FORBIDDEN, "namespace is terminating");
    assert_true(stub_quiet(t.client));
    assert_int_equal(writes("failed"), 1);
}

static void a_flapping_object_is_silenced_others_are_not(void **state)
{
    (void)state;
    char note[16];
    for (int i = 0; i < 40; i++) {
        snprintf(note, sizeof note, "%d", i);
        event("Flap", note);
    }
    int created = 0;
    for (struct stub_call *call; (call = more()); created++)
        answer(call);
    assert_int_equal(created, 25);
    assert_int_equal(writes("dropped"), 15);
    struct object other = group;
    other.meta.uid = "u-2";
    recorder_event(t.recorder, &other, false, "A", "a");
    answer(expect(VERB_CREATE));
}

static void repeats_without_a_token_are_counted_in_the_end(void **state)
{
    (void)state;
    for (int i = 0; i < 60; i++) {
        event("A", "a");
        for (struct stub_call *call; (call = more());)
            answer(call);
    }
    assert_int_equal(writes("written"), 25); // one create and 24 patches; the rest waits for a token
    assert_int_equal(writes("dropped"), 0);
}

static void few_writes_are_on_their_way_at_once_and_not_too_many_wait(void **state)
{
    (void)state;
    struct object o = group;
    char uid[16];
    o.meta.uid = uid;
    for (int i = 0; i < 600; i++) {
        snprintf(uid, sizeof uid, "u-%d", i);
        recorder_event(t.recorder, &o, false, "A", "a");
    }
    expect(VERB_CREATE);
    assert_int_equal(writes("dropped"), 600 - 256); // nothing was sent before the loop turned
    assert_int_equal(stub_waiting(t.client), 4);
    int created = 0;
    for (struct stub_call *call; (call = more()); created++)
        answer(call);
    assert_int_equal(created, 256);
}

static void memory_is_bounded(void **state)
{
    (void)state;
    struct object o = group;
    char uid[16];
    o.meta.uid = uid;
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 3000; i++) {
            snprintf(uid, sizeof uid, "u-%d", i);
            recorder_event(t.recorder, &o, false, "A", "a");
            if (i % 200 == 199)
                for (struct stub_call *call; (call = more());) {
                    assert_int_equal(call->request.verb, VERB_CREATE); // the object was forgotten meanwhile
                    answer(call);
                }
        }
    assert_int_equal(writes("written"), 6000);
}

static void a_long_note_is_cut_between_characters(void **state)
{
    (void)state;
    char note[2001];
    for (int i = 0; i < 1000; i++)
        memcpy(note + 2 * i, "\xc3\xa9", 2);
    note[2000] = '\0';
    event("A", note + 1); // the note begins with half a character
    struct stub_call *call = expect(VERB_CREATE);
    const char *sent = member(call, "note", NULL);
    assert_true(str_utf8_valid(sent, strlen(sent)));
    assert_true(strlen(sent) <= 1024 && strlen(sent) > 1020);
    assert_true(str_starts(sent, "\xef\xbf\xbd\xc3\xa9"));
    answer(call);
}

static void ignore(void *ctx, const struct kube_response *response, const struct err *err)
{
    (void)ctx, (void)response, (void)err;
}

// Another request of the client is in progress.
static struct stub_call *busy(void)
{
    kube_send(t.client, &(struct kube_request){.verb = VERB_CREATE, .kind = KIND_POD, .ns = "ml", .body = "{}"}, 0,
              ignore, NULL);
    return stub_next(t.client);
}

static void turn_until_waiting(int calls)
{
    for (int i = 0; i < 100 && stub_waiting(t.client) < calls; i++)
        loop_run_once(t.loop, 100);
    assert_int_equal(stub_waiting(t.client), calls);
}

static void good_news_waits_for_other_requests(void **state)
{
    (void)state;
    struct stub_call *pod = busy();
    event("Scheduled", "on n1");
    for (int i = 0; i < 5; i++)
        loop_run_once(t.loop, 0);
    assert_int_equal(stub_waiting(t.client), 1);
    answer(pod);
    answer(expect(VERB_CREATE));
    assert_true(stub_quiet(t.client));
}

// There are short gaps between the requests about one object and those about the next.
static void good_news_waits_for_a_calm(void **state)
{
    (void)state;
    answer(busy());
    event("Scheduled", "on n1");
    loop_run_once(t.loop, 0); // not longer, or a slow machine would be calm then
    assert_int_equal(stub_waiting(t.client), 0);
    turn_until_waiting(1);
    answer(expect(VERB_CREATE));
}

static void good_news_of_what_has_gone_is_no_news(void **state)
{
    (void)state;
    struct object other = group;
    other.meta.uid = "u-2";
    struct stub_call *pod = busy();
    event("Scheduled", "on n1");
    recorder_event(t.recorder, &other, false, "Scheduled", "of another");
    recorder_event(t.recorder, &group, true, "BindTimeout", "that went wrong");
    answer(pod);
    recorder_forget(t.recorder, &group);
    struct stub_call *call = expect(VERB_CREATE);
    assert_string_equal(member(call, "note", NULL), "that went wrong");
    answer(call);
    call = expect(VERB_CREATE);
    assert_string_equal(member(call, "note", NULL), "of another");
    answer(call);
    assert_true(stub_quiet(t.client));
    assert_int_equal(writes("dropped"), 1);
}

static void good_news_does_not_wait_for_ever(void **state)
{
    (void)state;
    struct stub_call *pod = busy();
    event("Scheduled", "on n1");
    turn_until_waiting(2);
    answer(pod);
    answer(expect(VERB_CREATE));
}

static void warnings_do_not_wait_nor_stand_behind_what_does(void **state)
{
    (void)state;
    struct stub_call *pod = busy();
    event("Scheduled", "on n1");
    recorder_event(t.recorder, &group, true, "BindTimeout", "first");
    recorder_event(t.recorder, &group, true, "BindTimeout", "second");
    turn_until_waiting(3);
    answer(pod);
    struct stub_call *call = expect(VERB_CREATE);
    assert_string_equal(member(call, "note", NULL), "first");
    answer(call);
    call = expect(VERB_CREATE);
    assert_string_equal(member(call, "note", NULL), "second");
    answer(call);
    call = expect(VERB_CREATE);
    assert_string_equal(member(call, "reason", NULL), "Scheduled");
    answer(call);
}

// The leader alone reports its decisions. After it loses, it writes neither what is in progress nor what waits.
static void what_it_tells_ends_with_the_term_of_the_leader(void **state)
{
    (void)state;
    char note[16];
    for (int i = 0; i < 20; i++) {
        snprintf(note, sizeof note, "%d", i);
        recorder_event(t.recorder, &group, true, "A", note);
    }
    expect(VERB_CREATE);
    for (int i = 0; i < 20 && !stub_quiet(t.client); i++) { // the stub takes these requests; the real client does not
        assert_true(stub_next(t.client)->request.decided);
        kube_cancel_decided(t.client);
    }
    assert_true(stub_quiet(t.client));
    assert_int_equal(writes("failed"), 20);
    event("A", "0"); // the next term writes it again
    answer(expect(VERB_CREATE));
    assert_int_equal(writes("written"), 1);
}

static void it_may_be_freed_with_writes_queued_and_on_their_way(void **state)
{
    (void)state;
    char note[16];
    for (int i = 0; i < 20; i++) {
        snprintf(note, sizeof note, "%d", i);
        event("A", note);
    }
    expect(VERB_CREATE);
    for (int i = 20; i < 24; i++) {
        snprintf(note, sizeof note, "%d", i);
        event("A", note);
    }
    recorder_free(t.recorder);
    t.recorder = NULL;
    assert_true(stub_quiet(t.client));
}

static void a_client_that_is_taken_down_first_is_fine(void **state)
{
    (void)state;
    event("A", "a");
    event("B", "b");
    struct stub_call *call = expect(VERB_CREATE);
    stub_client_refuse(t.client);
    stub_fail(call, ERR_CANCELED, "taken down");
    event("C", "c");
    stub_fail(expect(VERB_CREATE), ERR_CANCELED, "taken down");
    assert_true(stub_quiet(t.client));
    assert_int_equal(writes("dropped"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define RECORDER_TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
        RECORDER_TEST(an_event_says_what_happened_to_what),
        RECORDER_TEST(names_fit_and_differ),
        RECORDER_TEST(events_of_cluster_wide_objects_go_to_default),
        RECORDER_TEST(repeats_become_one_series),
        RECORDER_TEST(other_types_reasons_and_notes_are_other_events),
        RECORDER_TEST(of_too_many_series_that_which_is_silent_longest_is_forgotten),
        RECORDER_TEST(a_series_whose_event_is_gone_starts_again),
        RECORDER_TEST(a_failed_write_is_counted_and_not_tried_again),
        RECORDER_TEST(a_flapping_object_is_silenced_others_are_not),
        RECORDER_TEST(repeats_without_a_token_are_counted_in_the_end),
        RECORDER_TEST(few_writes_are_on_their_way_at_once_and_not_too_many_wait),
        RECORDER_TEST(memory_is_bounded),
        RECORDER_TEST(a_long_note_is_cut_between_characters),
        RECORDER_TEST(good_news_waits_for_other_requests),
        RECORDER_TEST(good_news_waits_for_a_calm),
        RECORDER_TEST(good_news_of_what_has_gone_is_no_news),
        RECORDER_TEST(good_news_does_not_wait_for_ever),
        RECORDER_TEST(warnings_do_not_wait_nor_stand_behind_what_does),
        RECORDER_TEST(what_it_tells_ends_with_the_term_of_the_leader),
        RECORDER_TEST(it_may_be_freed_with_writes_queued_and_on_their_way),
        RECORDER_TEST(a_client_that_is_taken_down_first_is_fine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
