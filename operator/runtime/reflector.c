// SPDX-License-Identifier: Apache-2.0
// There is one stream or one timer at a time.
#include "operator/runtime/reflector.h"

#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/api/object_decode.h"
#include "operator/api/status.h"
#include "operator/kube/line_splitter.h"
#include "operator/kube/list_splitter.h"
#include "operator/kube/watch.h"
#include "operator/kube/watch_event.h"

#include <stdlib.h>

// Few pages, because each is a round trip in which nothing is read. A page need not fit into memory, because its items
// are read as they arrive.
enum { PAGE_SIZE = 2000, LIST_IDLE_MS = 30000 };

// One list page or one watch. It outlives its reflector, because a canceled stream still calls back.
struct reflector_stream {
    struct reflector *reflector; // NULL = the reflector is gone, or has dropped the stream
    bool listing;
    uint64_t id;
    struct list_splitter *items; // of a list
};

struct reflector {
    struct kube_client *client;
    struct store *store;
    struct reflector_options options;
    char *ns, *label_selector, *field_selector;
    struct watch watch;
    struct line_splitter lines; // of a watch; the next watch uses its memory again
    struct reflector_stream *stream;
    struct loop_timer *timer; // for the start, and for the waits after failures
    struct err failed;        // reported with the delay that follows; code 0 = nothing to report
    bool busy;                // a function on the stack may call back
    bool stopping;            // such a callback has called reflector_stop()
};

static void advance(struct reflector *r);

static void destroy(struct reflector *r)
{
    loop_timer_free(r->timer);
    watch_done(&r->watch);
    line_splitter_done(&r->lines);
    free(r->ns);
    free(r->label_selector);
    free(r->field_selector);
    free(r);
}

// Call this after a callback. Returns false if the callback has stopped the reflector, which is then freed.
static bool leave(struct reflector *r)
{
    r->busy = false;
    if (!r->stopping)
        return true;
    destroy(r);
    return false;
}

// Returns an error that ends the feeding of bytes if a callback has stopped the reflector.
static int go_on(const struct reflector *r, struct err *err)
{
    return r->stopping ? err_set(err, ERR_CANCELED, "stopped") : 0;
}

static void report_bad(struct reflector *r, const struct err *err)
{
    if (r->options.on_bad_object)
        r->options.on_bad_object(r->options.ctx, store_kind(r->store), err);
}

// An object that is longer than the API server can store cannot be decoded, but its beginning says which one it is.
static int too_long(const struct reflector *r, const char *json, size_t len, struct err *err)
{
    struct object_peek g = {0};
    (void)object_identify(json, len, &g);
    return err_set(err, ERR_LIMIT, "%s %s%s%s is longer than %zu bytes", kind_info(store_kind(r->store))->kind, g.ns,
                   *g.ns ? "/" : "", g.name, len);
}

static int on_item(void *ctx, const char *json, size_t len, bool whole, struct err *err)
{
    struct reflector *r = ctx;
    const struct object *o = NULL;
    struct err bad = ERR_INIT;
    struct object_peek g;
    if ((whole ? object_decode(store_kind(r->store), json, len, &o, &bad) : too_long(r, json, len, &bad)) < 0) {
        if (object_identify(json, len, &g))
            store_keep(r->store, &g);
        report_bad(r, &bad);
    } else {
        store_put(r->store, o);
        object_unref(o);
    }
    // An object that cannot be decoded must not keep us from the others.
    return go_on(r, err);
}

// An ERROR event contains a Status instead of an object.
static int on_error_event(const struct watch_event *e, struct err *err)
{
    struct arena a = ARENA_INIT;
    struct api_status status;
    api_status_decode(e->object, e->object_len, &a, &status);
    int code = api_status_err(status.code, e->object, e->object_len, err);
    arena_done(&a);
    return code < 0 ? code : err_set(err, ERR_PROTO, "the watch sent an error without a code");
}

// A bookmark is an object that contains only a resourceVersion.
static void on_bookmark(struct reflector *r, const struct watch_event *e)
{
    struct arena a = ARENA_INIT;
    struct err err = ERR_INIT;
    struct json *root = NULL;
    const char *version = NULL;
    if (json_parse(e->object, e->object_len, NULL, &a, &root, &err) == 0)
        version = json_str(json_get(json_get(root, "metadata"), "resourceVersion"), &a);
    if (!str_empty(version)) {
        store_saw(r->store, version);
        watch_saw(&r->watch, version);
    }
    arena_done(&a);
}

// Takes an object that was added, changed or deleted.
static int on_change(struct reflector *r, const struct watch_event *e, struct err *err)
{
    struct object_peek g;
    if (e->type != WATCH_DELETED && object_peek(e->object, e->object_len, &g) && store_holds(r->store, &g)) {
        watch_saw(&r->watch, g.version); // it is our own write, and its answer came first
        store_saw(r->store, g.version);
        return 0;
    }
    const struct object *o = NULL;
    int code = object_decode(store_kind(r->store), e->object, e->object_len, &o, err);
    if (code < 0)
        return code;
    if (e->type == WATCH_DELETED)
        store_deleted(r->store, o);
    else
        store_put(r->store, o);
    store_saw(r->store, o->meta.resource_version);
    watch_saw(&r->watch, o->meta.resource_version);
    object_unref(o);
    return 0;
}

// An object that cannot be decoded stays as it was, until it is deleted.
static void on_bad_change(struct reflector *r, const struct watch_event *e, const struct err *bad)
{
    struct object_peek g;
    report_bad(r, bad);
    if (r->stopping || !object_identify(e->object, e->object_len, &g))
        return;
    if (e->type == WATCH_DELETED)
        store_deleted_unread(r->store, &g);
    else
        store_keep(r->store, &g);
}

static void on_long_line(struct reflector *r, const char *line, size_t len)
{
    struct watch_event e = {.object = line, .object_len = len};
    struct err bad = ERR_INIT;
    bool begins = watch_event_begins(line, len, &e);
    too_long(r, e.object, e.object_len, &bad);
    if (begins)
        on_bad_change(r, &e, &bad);
    else
        report_bad(r, &bad);
}

static int on_line(void *ctx, const char *line, size_t len, bool whole, struct err *err)
{
    struct reflector *r = ctx;
    struct watch_event e;
    struct err bad = ERR_INIT;
    if (!whole) {
        on_long_line(r, line, len);
        return go_on(r, err);
    }
    if (watch_event_guess(line, len, &e) && on_change(r, &e, &bad) == 0)
        return go_on(r, err);
    if (watch_event_scan(line, len, &e, err) < 0)
        return err->code;
    if (e.type == WATCH_ERROR)
        return on_error_event(&e, err);
    if (e.type == WATCH_BOOKMARK) {
        on_bookmark(r, &e);
        return 0;
    }
    if (on_change(r, &e, &bad) < 0)
        on_bad_change(r, &e, &bad);
    return go_on(r, err);
}

// Drops the stream. Its end then only frees it.
static void stream_drop(struct reflector *r)
{
    struct reflector_stream *s = TAKE_PTR(r->stream);
    if (!s)
        return;
    s->reflector = NULL;
    kube_cancel(r->client, s->id);
}

static void step_failed(struct reflector *r, const struct err *err)
{
    r->failed = *err;
    watch_ended(&r->watch, err);
    advance(r);
}

static void on_data(void *ctx, const char *bytes, size_t n)
{
    struct reflector_stream *s = ctx;
    struct reflector *r = s->reflector;
    if (!r)
        return;
    struct err err = ERR_INIT;
    r->busy = true;
    int code = s->listing ? list_splitter_feed(s->items, bytes, n, on_item, r, &err)
                          : line_splitter_feed(&r->lines, bytes, n, on_line, r, &err);
    if (!leave(r) || code == 0)
        return;
    stream_drop(r);
    step_failed(r, &err);
}

static void stream_free(struct reflector_stream *s)
{
    list_splitter_free(s->items);
    free(s);
}

static void page_ended(struct reflector *r, struct reflector_stream *s, const struct err *end)
{
    struct err err = *end;
    const char *version = NULL, *more = NULL;
    if (err.code == 0 && list_splitter_end(s->items, &version, &more, &err) == 0) {
        watch_page_done(&r->watch, version, more);
        watch_ended(&r->watch, &err);
        advance(r);
    } else {
        step_failed(r, &err);
    }
}

static void on_end(void *ctx, const struct err *err)
{
    struct reflector_stream *s = ctx;
    struct reflector *r = s->reflector;
    if (r) {
        r->stream = NULL;
        if (s->listing)
            page_ended(r, s, err);
        else
            step_failed(r, err);
    }
    stream_free(s);
}

static const struct kube_stream_ops stream_ops = {.data = on_data, .end = on_end};

static void stream_start(struct reflector *r, const struct kube_request *request, bool listing, int64_t idle_ms)
{
    struct reflector_stream *s = xcalloc(1, sizeof *s);
    s->reflector = r;
    s->listing = listing;
    if (listing)
        s->items = list_splitter_new(0);
    else
        line_splitter_reset(&r->lines); // the next watch sends again what a broken watch has left here
    r->stream = s;
    s->id = kube_stream(r->client, request, idle_ms, &stream_ops, s);
    if (!s->id) // the client is being freed
        stream_free(TAKE_PTR(r->stream));
}

static struct kube_request request_for(const struct reflector *r, enum verb verb)
{
    return (struct kube_request){
        .verb = verb,
        .kind = store_kind(r->store),
        .ns = r->ns,
        .label_selector = r->label_selector,
        .field_selector = r->field_selector,
    };
}

static void start_list(struct reflector *r, const struct watch_step *step)
{
    struct kube_request request = request_for(r, VERB_LIST);
    request.limit = r->options.page_size ? r->options.page_size : PAGE_SIZE;
    request.continue_token = step->continue_token;
    stream_start(r, &request, true, LIST_IDLE_MS);
}

static void start_watch(struct reflector *r, const struct watch_step *step)
{
    struct kube_request request = request_for(r, VERB_WATCH);
    request.resource_version = step->resource_version;
    request.bookmarks = true;
    request.timeout_s = step->timeout_s;
    stream_start(r, &request, false, step->idle_ms);
}

// Ends a complete list. Returns false if a callback has stopped the reflector.
static bool swap(struct reflector *r, const struct watch_step *step)
{
    bool first = !store_is_complete(r->store);
    r->busy = true;
    if (r->options.on_restored && store_list_goes_back(r->store, step->resource_version)) {
        r->options.on_restored(r->options.ctx, store_kind(r->store));
        return leave(r);
    }
    store_list_swap(r->store, step->resource_version);
    if (!r->stopping && first && r->options.on_complete)
        r->options.on_complete(r->options.ctx, store_kind(r->store));
    return leave(r);
}

// Reports a failure. A watch that ended without an error is not a failure.
static bool report_failure(struct reflector *r, int64_t retry_ms)
{
    struct err err = r->failed;
    r->failed = ERR_INIT;
    if (err.code == 0 || !r->options.on_error)
        return true;
    r->busy = true;
    r->options.on_error(r->options.ctx, store_kind(r->store), &err, retry_ms);
    return leave(r);
}

// Asks for the next step and starts it.
static void advance(struct reflector *r)
{
    struct watch_step step = watch_next(&r->watch);
    if (!report_failure(r, step.action == WATCH_DO_WAIT ? step.wait_ms : 0))
        return;
    switch (step.action) {
    case WATCH_DO_LIST:
        store_list_begin(r->store);
        start_list(r, &step);
        break;
    case WATCH_DO_PAGE:
        start_list(r, &step);
        break;
    case WATCH_DO_SWAP:
        if (swap(r, &step))
            advance(r);
        break;
    case WATCH_DO_WATCH:
        start_watch(r, &step);
        break;
    case WATCH_DO_WAIT:
        loop_timer_arm(r->timer, step.wait_ms);
        break;
    }
}

static void on_timer(void *ctx)
{
    advance(ctx);
}

struct reflector *reflector_start(struct loop *loop, struct kube_client *client, struct store *store,
                                  const struct reflector_options *options)
{
    struct reflector *r = xcalloc(1, sizeof *r);
    r->client = client;
    r->store = store;
    r->options = *options;
    r->ns = xstrdup(options->ns ? options->ns : "");
    r->label_selector = options->label_selector ? xstrdup(options->label_selector) : NULL;
    r->field_selector = options->field_selector ? xstrdup(options->field_selector) : NULL;
    watch_init(&r->watch, options->seed);
    line_splitter_init(&r->lines, 0);
    r->timer = loop_timer_new(loop, on_timer, r);
    loop_timer_arm(r->timer, 0);
    return r;
}

void reflector_retry_now(struct reflector *r)
{
    if (loop_timer_armed(r->timer))
        loop_timer_arm(r->timer, 0);
}

void reflector_stop(struct reflector *r)
{
    if (!r)
        return;
    stream_drop(r);
    if (r->busy)
        r->stopping = true; // leave() destroys it when no function on the stack needs it
    else
        destroy(r);
}
