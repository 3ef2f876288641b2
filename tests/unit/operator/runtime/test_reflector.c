// SPDX-License-Identifier: Apache-2.0
#include "operator/runtime/reflector.h"

#include "common/base/buf.h"
#include "common/base/mem.h"
#include "operator/api/object_decode.h"
#include "tests/unit/support/store_gone.h"
#include "tests/unit/support/stub_client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

enum stop_in { STOP_NOWHERE, STOP_IN_STORE, STOP_IN_BAD, STOP_IN_ERROR, STOP_IN_COMPLETE };

static struct {
    struct loop *loop;
    struct kube_client *client;
    struct store *store;
    struct reflector *reflector;
    enum stop_in stop_in;
    struct buf trace; // errors, bad objects, and that the mirror is complete
} t;

static void stop_if(enum stop_in where)
{
    if (t.stop_in != where)
        return;
    reflector_stop(t.reflector);
    t.reflector = NULL;
}

static void on_store(void *ctx, const struct object *old, const struct object *now)
{
    (void)ctx;
    (void)old;
    (void)now;
    stop_if(STOP_IN_STORE);
}

static void on_error(void *ctx, enum kind kind, const struct err *err, int64_t retry_ms)
{
    (void)ctx;
    assert_int_equal(kind, KIND_SERVICE);
    buf_printf(&t.trace, "%s%s ", err_name(err->code), retry_ms ? "" : " at once");
    stop_if(STOP_IN_ERROR);
}

static void on_bad_object(void *ctx, enum kind kind, const struct err *err)
{
    (void)ctx;
    (void)kind;
    buf_printf(&t.trace, "bad(%s) ", err->msg);
    stop_if(STOP_IN_BAD);
}

static void on_complete(void *ctx, enum kind kind)
{
    (void)ctx;
    (void)kind;
    buf_puts(&t.trace, "complete ");
    stop_if(STOP_IN_COMPLETE);
}

static void on_restored(void *ctx, enum kind kind)
{
    (void)ctx;
    (void)kind;
    buf_puts(&t.trace, "restored ");
}

static void start(void)
{
    t.reflector = reflector_start(t.loop, t.client, t.store,
                                  &(struct reflector_options){.ns = "ml",
                                                              .label_selector = "a=b",
                                                              .field_selector = "c=d",
                                                              .seed = 1,
                                                              .on_error = on_error,
                                                              .on_bad_object = on_bad_object,
                                                              .on_complete = on_complete,
                                                              .on_restored = on_restored});
}

static int setup(void **state)
{
    (void)state;
    memset(&t, 0, sizeof t);
    t.loop = loop_new();
    t.client = stub_client_new(t.loop);
    t.store = store_new(KIND_SERVICE);
    t.trace = BUF_INIT(1 << 16);
    store_subscribe(t.store, on_store, NULL);
    start();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    reflector_stop(t.reflector);
    stub_client_free(t.client);
    store_free(t.store);
    buf_done(&t.trace);
    loop_free(t.loop);
    return 0;
}

static void assert_trace(const char *want)
{
    assert_string_equal(buf_str(&t.trace), want);
    buf_reset(&t.trace);
}

#define OBJECT(name, version)                                                                          \
    "{\"kind\":\"Service\",\"metadata\":{\"name\":\"" name "\",\"namespace\":\"ml\",\"uid\":\"u-" name \
    "\",\"resourceVersion\":\"" version "\"}}"
#define EVENT(type, object) "{\"type\":\"" type "\",\"object\":" object "}\n"
#define BOOKMARK(version)                                                                                        \
    EVENT("BOOKMARK", "{\"kind\":\"Service\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"" version \
                      "\",\"creationTimestamp\":null},\"spec\":{}}")
#define FAILURE(code) EVENT("ERROR", "{\"kind\":\"Status\",\"code\":" code ",\"message\":\"too old\"}")
#define LIST(version, more, items)                                                                     \
    "{\"kind\":\"ServiceList\",\"metadata\":{\"resourceVersion\":\"" version "\",\"continue\":\"" more \
    "\"},\"items\":[" items "]}"

#define BAD(uid, version)                                                                    \
    "{\"kind\":\"Service\",\"metadata\":{\"name\":\"a\",\"namespace\":\"ml\",\"uid\":\"" uid \
    "\",\"resourceVersion\":\"" version "\",\"labels\":{\"x\":7}}}"

static struct stub_call *expect(enum verb verb)
{
    struct stub_call *call = stub_next(t.client);
    assert_non_null(call);
    assert_int_equal(call->request.verb, verb);
    assert_int_equal(call->request.kind, KIND_SERVICE);
    assert_string_equal(call->request.ns, "ml");
    assert_string_equal(call->request.label_selector, "a=b");
    assert_string_equal(call->request.field_selector, "c=d");
    return call;
}

static void say(struct stub_call *call, const char *text)
{
    stub_data(call, text, strlen(text));
}

static void answer_list(const char *list)
{
    struct stub_call *call = expect(VERB_LIST);
    say(call, list);
    stub_end(call);
}

// Answers with a list of "a" at 1 and "b" at 2, as of 10. Returns the watch that follows.
static struct stub_call *complete(void)
{
    answer_list(LIST("10", "", OBJECT("a", "1") "," OBJECT("b", "2")));
    assert_trace("complete ");
    return expect(VERB_WATCH);
}

static const char *held(void)
{
    static char text[256];
    text[0] = '\0';
    for (const char *name = "abcdefg"; *name; name++) {
        const struct object *o = store_get(t.store, "ml", (char[]){*name, '\0'});
        if (o)
            snprintf(text + strlen(text), sizeof text - strlen(text), "%s@%s ", o->meta.name, o->meta.resource_version);
    }
    return text;
}

static void a_list_is_read_page_by_page_then_watched(void **state)
{
    (void)state;
    struct stub_call *call = expect(VERB_LIST);
    assert_int_equal(call->request.limit, 2000);
    assert_null(call->request.continue_token);
    say(call, LIST("10", "next", OBJECT("a", "1")));
    assert_string_equal(held(), "a@1 "); // each object comes as soon as it was read
    stub_end(call);
    call = expect(VERB_LIST);
    assert_string_equal(call->request.continue_token, "next");
    assert_false(store_is_complete(t.store));
    say(call, LIST("10", "", OBJECT("b", "2")));
    stub_end(call);
    assert_true(store_is_complete(t.store));
    assert_trace("complete ");
    call = expect(VERB_WATCH);
    assert_string_equal(call->request.resource_version, "10");
    assert_true(call->request.bookmarks);
    assert_in_range(call->request.timeout_s, 290, 590);
    assert_true(call->timeout_ms > (int64_t)call->request.timeout_s * 1000);
    assert_string_equal(held(), "a@1 b@2 ");
}

static void events_change_the_store(void **state)
{
    (void)state;
    struct stub_call *watch = complete();
    say(watch, EVENT("ADDED", OBJECT("c", "11")) EVENT("MODIFIED", OBJECT("a", "12")));
    assert_string_equal(held(), "a@12 b@2 c@11 ");
    say(watch, EVENT("DELETED", OBJECT("b", "13")));
    assert_string_equal(held(), "a@12 c@11 ");
    say(watch, EVENT("MODIFIED", OBJECT("c", "11"))); // again, and late
    say(watch, EVENT("DELETED", OBJECT("g", "14")));  // an object that it has never seen
    assert_string_equal(held(), "a@12 c@11 ");
    assert_trace("");
}

static void bytes_may_be_cut_anywhere(void **state)
{
    (void)state;
    const char *list = LIST("10", "", OBJECT("a", "1") "," OBJECT("b", "2"));
    const char *events = EVENT("ADDED", OBJECT("c", "11")) BOOKMARK("12") EVENT("DELETED", OBJECT("a", "13"));
    for (size_t cut = 1; cut < MAX(strlen(list), strlen(events)); cut++) {
        struct stub_call *call = expect(VERB_LIST);
        for (size_t i = 0; i < strlen(list); i += cut)
            stub_data(call, list + i, MIN(cut, strlen(list) - i));
        stub_end(call);
        call = expect(VERB_WATCH);
        for (size_t i = 0; i < strlen(events); i += cut)
            stub_data(call, events + i, MIN(cut, strlen(events) - i));
        assert_string_equal(held(), "b@2 c@11 ");
        reflector_stop(t.reflector);
        store_gone(t.store, "ml", "b");
        store_gone(t.store, "ml", "c");
        assert_true(stub_quiet(t.client));
        start();
    }
}

static void a_watch_that_ends_goes_on_from_what_it_saw_last(void **state)
{
    (void)state;
    struct stub_call *watch = complete();
    say(watch, EVENT("ADDED", OBJECT("c", "11")));
    stub_end(watch);
    watch = expect(VERB_WATCH);
    assert_string_equal(watch->request.resource_version, "11");
    say(watch, BOOKMARK("40"));
    stub_end(watch);
    watch = expect(VERB_WATCH);
    assert_string_equal(watch->request.resource_version, "40");
    say(watch, EVENT("DELETED", OBJECT("c", "41")));
    stub_end(watch);
    assert_string_equal(expect(VERB_WATCH)->request.resource_version, "41");
    assert_trace(""); // nothing is reported
}

static void a_bookmark_tells_the_store_what_is_past(void **state)
{
    (void)state;
    struct stub_call *watch = complete();
    const struct object *late;
    struct err err = ERR_INIT;
    say(watch, BOOKMARK("40"));
    assert_int_equal(object_decode(KIND_SERVICE, OBJECT("f", "30"), strlen(OBJECT("f", "30")), &late, &err), 0);
    store_wrote(t.store, late); // the watch would have delivered it, unless it was deleted again
    object_unref(late);
    assert_string_equal(held(), "a@1 b@2 ");
}

static void half_a_line_is_dropped_with_its_connection(void **state)
{
    (void)state;
    struct stub_call *watch = complete();
    say(watch, EVENT("ADDED", OBJECT("c", "11")) "{\"type\":\"ADDED\",\"object\":{\"kind\":\"Serv");
    stub_fail(watch, ERR_IO, "connection reset");
    assert_trace("IO ");
    watch = expect(VERB_WATCH);
    assert_string_equal(watch->request.resource_version, "11");
    say(watch, EVENT("ADDED", OBJECT("d", "12")));
    assert_string_equal(held(), "a@1 b@2 c@11 d@12 ");
    assert_trace("");
}

static void a_version_too_old_means_to_list_and_find_what_was_missed(void **state)
{
    (void)state;
    stub_answer(complete(), 410, "{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\"}");
    assert_trace("GONE at once ");
    answer_list(LIST("50", "", OBJECT("b", "2") "," OBJECT("c", "45")));
    assert_string_equal(held(), "b@2 c@45 "); // "a" was deleted unseen
    assert_trace("");                         // it was complete all the time
    struct stub_call *watch = expect(VERB_WATCH);
    assert_string_equal(watch->request.resource_version, "50");
    say(watch, EVENT("ADDED", OBJECT("d", "51")) FAILURE("410") EVENT("ADDED", OBJECT("e", "52")));
    assert_trace("GONE at once ");
    answer_list(LIST("60", "", OBJECT("d", "51")));
    assert_string_equal(held(), "d@51 ");
}

static void a_version_too_old_again_and_again_is_not_asked_for_in_a_rush(void **state)
{
    (void)state;
    say(complete(), FAILURE("410"));
    answer_list(LIST("50", "", ""));
    say(expect(VERB_WATCH), FAILURE("410"));
    assert_trace("GONE at once GONE ");
}

static void another_error_event_is_told_and_watched_again(void **state)
{
    (void)state;
    say(complete(), FAILURE("500"));
    assert_trace("UNAVAILABLE ");
    assert_string_equal(expect(VERB_WATCH)->request.resource_version, "10");
}

static void a_page_too_old_starts_the_list_over(void **state)
{
    (void)state;
    answer_list(LIST("10", "next", OBJECT("a", "1")));
    struct stub_call *call = expect(VERB_LIST);
    assert_string_equal(call->request.continue_token, "next");
    stub_answer(call, 410, "{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\"}");
    call = expect(VERB_LIST);
    assert_null(call->request.continue_token);
    say(call, LIST("20", "", OBJECT("b", "2")));
    stub_end(call);
    assert_string_equal(held(), "b@2 "); // "a" was only in the canceled list
    assert_trace("GONE at once complete ");
}

static void a_page_that_fails_is_asked_for_again(void **state)
{
    (void)state;
    answer_list(LIST("10", "next", OBJECT("a", "1")));
    stub_answer(expect(VERB_LIST), 503, "{}");
    struct stub_call *call = expect(VERB_LIST);
    assert_string_equal(call->request.continue_token, "next");
    say(call, "{\"kind\":\"ServiceList\",\"metadata\":{\"resourceVersion\":\"10\"},\"items\":[" OBJECT("b", "2"));
    stub_end(call); // without an error, but the document is not complete
    call = expect(VERB_LIST);
    assert_string_equal(call->request.continue_token, "next");
    say(call, LIST("10", "", OBJECT("b", "2")));
    stub_end(call);
    assert_string_equal(held(), "a@1 b@2 ");
    assert_trace("UNAVAILABLE PROTO complete ");
}

static void it_tries_again_at_once_when_the_server_is_known_to_be_back(void **state)
{
    (void)state;
    stub_fail(stub_next(t.client), ERR_IO, "cut");
    assert_true(stub_quiet(t.client)); // it waits for almost a second
    reflector_retry_now(t.reflector);
    assert_false(stub_quiet(t.client));
    reflector_retry_now(t.reflector); // nothing waits
    assert_int_equal(stub_waiting(t.client), 1);
}

static void a_bad_object_is_told_and_does_not_stop_the_others(void **state)
{
    (void)state;
    answer_list(LIST("10", "", "{\"metadata\":{\"name\":7}}," OBJECT("a", "1")));
    assert_non_null(strstr(buf_str(&t.trace), "metadata.name"));
    buf_reset(&t.trace);
    struct stub_call *watch = expect(VERB_WATCH);
    say(watch, EVENT("ADDED", "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"x\"}}") EVENT("ADDED", OBJECT("b", "11")));
    assert_non_null(strstr(buf_str(&t.trace), "bad("));
    assert_string_equal(held(), "a@1 b@11 ");
}

// Says the beginning of a text, 16 MiB of blanks, and its end.
static void say_long(struct stub_call *call, const char *begin, const char *end)
{
    static char blanks[64 * 1024];
    memset(blanks, ' ', sizeof blanks);
    say(call, begin);
    for (int i = 0; i < 256; i++)
        stub_data(call, blanks, sizeof blanks);
    say(call, end);
}

#define LONG(name, version)                                                                                           \
    "{\"metadata\":{\"name\":\"" name "\",\"namespace\":\"ml\",\"uid\":\"u-" name "\",\"resourceVersion\":\"" version \
    "\"},"

static void an_event_that_is_too_long_is_told_and_does_not_stop_the_others(void **state)
{
    (void)state;
    struct stub_call *watch = complete();
    say_long(watch, "{\"type\":\"MODIFIED\",\"object\":" LONG("a", "11"),
             "\"x\":1}}\n" EVENT("ADDED", OBJECT("c", "12")));
    assert_trace("bad(Service ml/a is longer than 16777188 bytes) ");
    assert_string_equal(held(), "a@1 b@2 c@12 "); // as one that cannot be decoded
    say_long(watch, "{\"type\":\"DELETED\",\"object\":" LONG("a", "13"), "\"x\":1}}\n");
    assert_string_equal(held(), "b@2 c@12 ");
    buf_reset(&t.trace);
    stub_end(watch);
    assert_string_equal(expect(VERB_WATCH)->request.resource_version, "12");
    assert_trace("");
}

static void an_item_that_is_too_long_is_told_and_does_not_stop_the_others(void **state)
{
    (void)state;
    stub_answer(complete(), 410, "{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\"}");
    buf_reset(&t.trace);
    struct stub_call *list = expect(VERB_LIST);
    say_long(list, "{\"metadata\":{\"resourceVersion\":\"50\"},\"items\":[" LONG("a", "40"),
             "\"x\":1}," OBJECT("c", "41") "]}");
    stub_end(list);
    assert_trace("bad(Service ml/a is longer than 16777216 bytes) ");
    assert_string_equal(held(), "a@1 c@41 "); // "a" is not gone
}

static void a_list_that_is_older_than_the_watch_means_a_restored_backup(void **state)
{
    (void)state;
    stub_answer(complete(), 410, "{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\"}");
    assert_trace("GONE at once ");
    answer_list(LIST("10", "", OBJECT("a", "1"))); // as new as what was seen
    assert_string_equal(held(), "a@1 ");
    stub_answer(expect(VERB_WATCH), 410, "{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\"}");
    buf_reset(&t.trace);
    answer_list(LIST("9", "", OBJECT("c", "3")));
    assert_non_null(strstr(buf_str(&t.trace), "restored "));
    assert_string_equal(held(), "a@1 c@3 ");
}

// The versions of a restored backup may begin above the old ones (etcdutl --bump-revision).
static void an_older_object_in_a_newer_list_means_a_restored_backup(void **state)
{
    (void)state;
    struct stub_call *watch = complete();
    say(watch, EVENT("MODIFIED", OBJECT("a", "12")));
    stub_answer(watch, 410, "{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\"}");
    assert_trace("GONE at once ");
    answer_list(LIST("1000", "", OBJECT("a", "11") "," OBJECT("b", "2")));
    assert_trace("restored ");
}

// Its owner has changed it so that it cannot be read. It is not gone, and what belongs to it must stay.
static void a_known_object_that_becomes_bad_stays_as_it_was(void **state)
{
    (void)state;
    stub_answer(complete(), 410, "{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\"}");
    answer_list(
        LIST("50", "",
             "{\"spec\":{},\"metadata\":{\"annotations\":{\"x\":\"{}\"},\"name\":\"a\",\"namespace\":\"ml\",\"uid\":"
             "\"u-a\",\"resourceVersion\":\"40\",\"labels\":{\"x\":7}}}"));
    assert_non_null(strstr(buf_str(&t.trace), "bad("));
    assert_string_equal(held(), "a@1 ");
}

static void a_bad_object_that_was_never_read_is_known_by_its_uid(void **state)
{
    (void)state;
    answer_list(LIST("10", "", BAD("u-a", "1") "," OBJECT("b", "2")));
    assert_true(store_is_unread(t.store, "u-a"));
    assert_false(store_is_unread(t.store, "u-b"));
    struct stub_call *watch = expect(VERB_WATCH);
    say(watch, EVENT("DELETED", BAD("u-a", "11")));
    assert_false(store_is_unread(t.store, "u-a"));
    say(watch, EVENT("ADDED", BAD("u-new", "12")));
    assert_true(store_is_unread(t.store, "u-new"));
    stub_answer(watch, 410, "{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\"}");
    answer_list(LIST("20", "", OBJECT("b", "2")));
    assert_false(store_is_unread(t.store, "u-new"));
    watch = expect(VERB_WATCH);
    say(watch, EVENT("ADDED", BAD("u-a", "21")) EVENT("MODIFIED", OBJECT("a", "22")));
    assert_false(store_is_unread(t.store, "u-a")); // it can be read again
    assert_string_equal(held(), "a@22 b@2 ");
}

static void a_known_object_that_becomes_bad_goes_when_it_is_deleted(void **state)
{
    (void)state;
    struct stub_call *watch = complete();
    say(watch, EVENT("MODIFIED", BAD("u-a", "11")));
    assert_string_equal(held(), "a@1 b@2 ");
    say(watch, EVENT("DELETED", BAD("u-other", "12"))); // an earlier object with this name
    assert_string_equal(held(), "a@1 b@2 ");
    say(watch, EVENT("DELETED", BAD("u-a", "13")));
    assert_string_equal(held(), "b@2 ");
}

static void what_is_known_already_is_not_read_again(void **state)
{
    (void)state;
    struct stub_call *watch = complete();
    say(watch, EVENT("ADDED", OBJECT("c", "11")));
    buf_reset(&t.trace);
    // The rest of it is not JSON, but nobody reads it. The watch has seen this version.
    say(watch, "{\"type\":\"ADDED\",\"object\":{\"kind\":\"Service\",\"metadata\":{\"name\":\"c\",\"namespace\":\"ml\","
               "\"uid\":\"u-c\",\"resourceVersion\":\"11\",!}}}\n");
    assert_trace("");
    stub_end(watch);
    watch = expect(VERB_WATCH);
    assert_string_equal(watch->request.resource_version, "11");
    say(watch, EVENT("DELETED", OBJECT("c", "11")));
    assert_string_equal(held(), "a@1 b@2 ");
}

static void an_event_may_be_written_in_any_way(void **state)
{
    (void)state;
    struct stub_call *watch = complete();
    say(watch, "{\"object\":" OBJECT("c", "11") ",\"type\":\"ADDED\"}\n");
    say(watch, "{\"type\":\"ADDED\",\"object\":" OBJECT("d", "12") ",\"more\":{}}\n");
    assert_string_equal(held(), "a@1 b@2 c@11 d@12 ");
}

static void a_line_that_is_no_event_ends_the_watch(void **state)
{
    (void)state;
    say(complete(), "<html>\n");
    assert_trace("PROTO ");
    assert_string_equal(expect(VERB_WATCH)->request.resource_version, "10");
}

static void our_own_writes_survive_a_list_that_is_older(void **state)
{
    (void)state;
    static const char *const written[] = {OBJECT("f", "15"), OBJECT("a", "16")};
    struct stub_call *call = expect(VERB_LIST);
    say(call, "{\"kind\":\"ServiceList\",\"metadata\":{\"resourceVersion\":\"10\"},\"items\":[");
    for (size_t i = 0; i < ARRAY_LEN(written); i++) {
        const struct object *ours;
        struct err err = ERR_INIT;
        assert_int_equal(object_decode(KIND_SERVICE, written[i], strlen(written[i]), &ours, &err), 0);
        store_wrote(t.store, ours);
        object_unref(ours);
    }
    say(call, OBJECT("a", "1") "]}");
    stub_end(call);
    assert_string_equal(held(), "a@16 f@15 ");
    assert_trace("complete ");
}

static void it_may_be_stopped_at_any_time(void **state)
{
    (void)state;
    reflector_stop(t.reflector); // before its first turn
    assert_true(stub_quiet(t.client));
    start();
    expect(VERB_LIST);
    reflector_stop(t.reflector); // while listing
    assert_true(stub_quiet(t.client));
    start();
    complete();
    reflector_stop(t.reflector); // while watching
    assert_true(stub_quiet(t.client));
    start();
    stub_fail(expect(VERB_LIST), ERR_IO, "reset");
    reflector_stop(t.reflector); // while waiting
    t.reflector = NULL;
    assert_true(stub_quiet(t.client));
}

static void it_may_be_stopped_in_its_callbacks(void **state)
{
    (void)state;
    static const struct {
        enum stop_in where;
        const char *list;
    } cases[] = {{STOP_IN_STORE, LIST("10", "", OBJECT("a", "1") "," OBJECT("b", "2"))},
                 {STOP_IN_BAD, LIST("10", "", "{}," OBJECT("b", "2"))},
                 {STOP_IN_COMPLETE, LIST("10", "", "")}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        t.stop_in = cases[i].where;
        struct stub_call *call = expect(VERB_LIST);
        say(call, cases[i].list);
        if (!call->canceled)
            stub_end(call);
        assert_null(t.reflector);
        assert_true(stub_quiet(t.client));
        t.stop_in = STOP_NOWHERE;
        start();
    }
    t.stop_in = STOP_IN_ERROR;
    stub_fail(expect(VERB_LIST), ERR_IO, "reset");
    assert_null(t.reflector);
    t.stop_in = STOP_NOWHERE;
    start();
    answer_list(LIST("10", "", OBJECT("a", "1") "," OBJECT("b", "2")));
    struct stub_call *watch = expect(VERB_WATCH);
    t.stop_in = STOP_IN_STORE;
    say(watch, EVENT("ADDED", OBJECT("c", "11")) EVENT("ADDED", OBJECT("d", "12")));
    assert_null(t.reflector);
    assert_string_equal(held(), "a@1 b@2 c@11 "); // and nothing more
    assert_true(stub_quiet(t.client));
}

static void a_client_that_is_taken_down_is_fine(void **state)
{
    (void)state;
    struct stub_call *watch = complete();
    stub_client_refuse(t.client);
    stub_end(watch);
    assert_true(stub_quiet(t.client));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define REFLECTOR_TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
        REFLECTOR_TEST(a_list_is_read_page_by_page_then_watched),
        REFLECTOR_TEST(events_change_the_store),
        REFLECTOR_TEST(bytes_may_be_cut_anywhere),
        REFLECTOR_TEST(a_watch_that_ends_goes_on_from_what_it_saw_last),
        REFLECTOR_TEST(a_bookmark_tells_the_store_what_is_past),
        REFLECTOR_TEST(half_a_line_is_dropped_with_its_connection),
        REFLECTOR_TEST(a_version_too_old_means_to_list_and_find_what_was_missed),
        REFLECTOR_TEST(a_version_too_old_again_and_again_is_not_asked_for_in_a_rush),
        REFLECTOR_TEST(another_error_event_is_told_and_watched_again),
        REFLECTOR_TEST(a_page_too_old_starts_the_list_over),
        REFLECTOR_TEST(a_page_that_fails_is_asked_for_again),
        REFLECTOR_TEST(it_tries_again_at_once_when_the_server_is_known_to_be_back),
        REFLECTOR_TEST(a_bad_object_is_told_and_does_not_stop_the_others),
        REFLECTOR_TEST(an_event_that_is_too_long_is_told_and_does_not_stop_the_others),
        REFLECTOR_TEST(an_item_that_is_too_long_is_told_and_does_not_stop_the_others),
        REFLECTOR_TEST(a_list_that_is_older_than_the_watch_means_a_restored_backup),
        REFLECTOR_TEST(an_older_object_in_a_newer_list_means_a_restored_backup),
        REFLECTOR_TEST(a_known_object_that_becomes_bad_stays_as_it_was),
        REFLECTOR_TEST(a_bad_object_that_was_never_read_is_known_by_its_uid),
        REFLECTOR_TEST(a_known_object_that_becomes_bad_goes_when_it_is_deleted),
        REFLECTOR_TEST(what_is_known_already_is_not_read_again),
        REFLECTOR_TEST(an_event_may_be_written_in_any_way),
        REFLECTOR_TEST(a_line_that_is_no_event_ends_the_watch),
        REFLECTOR_TEST(our_own_writes_survive_a_list_that_is_older),
        REFLECTOR_TEST(it_may_be_stopped_at_any_time),
        REFLECTOR_TEST(it_may_be_stopped_in_its_callbacks),
        REFLECTOR_TEST(a_client_that_is_taken_down_is_fine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
