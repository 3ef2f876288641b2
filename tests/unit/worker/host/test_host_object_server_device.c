// SPDX-License-Identifier: Apache-2.0
// Objects with values on a device, between two processes. The driver is a stand-in in the library path
// (cuda_stand_in.c).
#include "common/base/mem.h"
#include "common/base/str.h"
#include "common/wire/ref.h"
#include "common/wire/safetensors.h"
#include "tests/unit/support/folder.h"
#include "tests/unit/worker/device/cuda_stand_in.h"
#include "tests/unit/worker/host/bytes_sent.h"
#include "tests/unit/worker/host/store_holds.h"
#include "worker/host/arg_refs.h"
#include "worker/host/object_fetch.h"
#include "worker/host/object_server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECRET "0123456789abcdef"
#define ROOM ((size_t)64 << 20)
#define VALUES (((size_t)5 << 19) + 4) // several pieces
enum { TURN_MS = 5, HEAD_MAX = 512 };

static char folder[64];

struct question { // for the fetcher
    char at[64];
    uint64_t id, bytes;
    int64_t until;
    char key[REF_KEY_SIZE];
};

struct wanted {
    const char *device; // CADRE_DEVICE of the fetcher; NULL = it wants everything on the host
    int code;           // of object_fetch()
    bool on_device;     // whether the values are on the device afterwards
    bool canceled;      // when the copy begins
};

struct fixture {
    struct loop *loop;
    struct rank_device *device;
    struct object_store *store;
    struct object_server *server;
    pid_t fetcher;
    int ask[2];
    struct question question;
};

static char value(size_t i)
{
    return (char)(i * 13 >> 3);
}

// The fetcher, in another process

static bool are_values(const char *at)
{
    for (size_t i = 0; i < VALUES; i++)
        if (at[i] != value(i))
            return false;
    return true;
}

static char *to_host(struct rank_device *d, const struct region *values)
{
    struct err err = ERR_INIT;
    char *out = xmalloc(values->len);
    if (rank_device_download(d, out, values->memory, values->len, NULL, &err) < 0)
        _exit(3);
    return out;
}

// Cancels after the handle was opened.
static void *cancel_late(void *ctx)
{
    char text[64] = "";
    while (!text[0]) {
        usleep(1000);
        folder_read(folder, "imports", text, sizeof text);
    }
    atomic_store((atomic_bool *)ctx, true);
    return NULL;
}

static _Noreturn void be_fetcher(const struct fixture *f, const struct wanted *w)
{
    struct question q;
    struct region *values;
    struct err err = ERR_INIT;
    static atomic_bool canceled;
    pthread_t thread;
    if (w->canceled && (pthread_create(&thread, NULL, cancel_late, &canceled) != 0 || pthread_detach(thread) != 0))
        _exit(6);
    if (w->device)
        setenv("CADRE_DEVICE", w->device, 1);
    if (read(f->ask[0], &q, sizeof q) != sizeof q)
        _exit(2);
    struct rank_device *d = rank_device_new(loop_new(), w->device ? 0 : -1, NULL, NULL);
    const struct object_fetch what = {
        q.at, q.id, q.bytes, q.until, q.key, "rank 2 of ml/actor", &canceled, w->device ? d : NULL};
    char *out = xmalloc(q.bytes);
    int code = object_fetch(&what, out, &values, &err);
    if (code != w->code || (code == 0 && !!values != w->on_device)) {
        fprintf(stderr, "fetcher: %d %s\n", code, err.msg);
        _exit(4);
    }
    if (code == 0)
        _exit(are_values(values ? to_host(d, values) : out + q.bytes - VALUES) ? 0 : 5);
    fprintf(stderr, "%s\n", err.msg);
    _exit(0);
}

// The object server

static void on_lost(void *ctx, const char *why)
{
    (void)ctx, (void)why;
}

static struct region *new_region(struct rank_device *d)
{
    struct copier *copier;
    struct region *g;
    struct err err = ERR_INIT;
    _cleanup_(free_p) char *in = xmalloc(VALUES);
    for (size_t i = 0; i < VALUES; i++)
        in[i] = value(i);
    assert_int_equal(rank_device_enter(d, &err), 0);
    assert_int_equal(rank_device_lend(d, false, &copier, &err), 0);
    assert_int_equal(region_new(d, VALUES, &g, &err), 0);
    assert_int_equal(copier_upload(copier, g->memory, in, VALUES, DEVICE_NO_LIMIT, NULL, &err), 0);
    assert_int_equal(copier_wait(copier, DEVICE_NO_LIMIT, NULL, &err), 0);
    region_share(g);
    rank_device_leave(d);
    rank_device_give(d, copier);
    return g;
}

static void keep(struct fixture *f)
{
    const uint64_t shape[] = {VALUES / 4};
    struct safetensors_tensor t = {.name = "x", .dtype = SAFETENSORS_F32, .n_dims = 1, .shape = shape};
    struct scatter head = SCATTER_INIT;
    struct err err = ERR_INIT;
    const struct kept_object *o;
    assert_int_equal(safetensors_write_head(&head, &t, 1, NULL, 0, &err), 0);
    struct kept_object what = {.blob = blob_copy(head.own.data, head.own.len, NULL), .values = new_region(f->device)};
    assert_int_equal(object_store_put(f->store, &what, f, &o, &err), 0);
    store_holds(f->store, ROOM, 1, head.own.len + STORE_OBJECT_COST); // bytes on the host
    struct question q = {.id = o->id, .bytes = o->len, .until = clock_wall_ms(&clock_system) + 3600 * 1000};
    snprintf(q.at, sizeof q.at, "127.0.0.1:%d", object_server_port(f->server));
    ref_key(SECRET, o->id, q.until, q.key);
    f->question = q;
    blob_unref(what.blob);
    region_unref(what.values);
    scatter_done(&head);
}

static void begin(struct fixture *f, const struct wanted *w, const char *control)
{
    struct err err = ERR_INIT;
    folder_clear(folder);
    folder_write(folder, "control", "");
    assert_int_equal(pipe2(f->ask, O_CLOEXEC), 0);
    f->fetcher = fork();
    if (f->fetcher == 0)
        be_fetcher(f, w);
    f->loop = loop_new();
    f->store = object_store_new(ROOM, 3);
    f->device = rank_device_new(f->loop, 0, on_lost, NULL);
    f->server = object_server_new(
        &(struct object_server_config){.loop = f->loop, .store = f->store, .device = f->device, .local = true}, &err);
    assert_non_null(f->server);
    object_server_secret(f->server, SECRET);
    keep(f);
    folder_write(folder, "control", control);
    assert_int_equal(write(f->ask[1], &f->question, sizeof f->question), sizeof f->question);
}

static void wait_fetcher(struct fixture *f, int want)
{
    int status;
    while (waitpid(f->fetcher, &status, WNOHANG) == 0)
        loop_run_once(f->loop, TURN_MS);
    assert_int_equal(status, want);
}

// Returns how many allocations of device memory this process has.
static int allocated(void)
{
    char own[32];
    int n = 0;
    DIR *d = opendir(folder);
    snprintf(own, sizeof own, "memory.%d.", (int)getpid());
    for (const struct dirent *e; (e = readdir(d));)
        n += str_starts(e->d_name, own);
    closedir(d);
    return n;
}

static void turn_until_freed(struct fixture *f)
{
    while (allocated())
        loop_run_once(f->loop, TURN_MS);
}

static void end(struct fixture *f)
{
    object_store_drop(f->store, f->question.id);
    turn_until_freed(f);
    rank_device_close(f->device);
    object_server_free(f->server);
    object_store_free(f->store);
    rank_device_free(f->device);
    loop_free(f->loop);
    close(f->ask[0]);
    close(f->ask[1]);
}

static int imports(void)
{
    char text[64];
    int n = 0;
    folder_read(folder, "imports", text, sizeof text);
    for (const char *at = text; (at = strchr(at, '\n')); at++)
        n++;
    return n;
}

// Each test runs in a child process, because the fetcher must be forked before the driver is loaded. Returns true in
// the child, which ends with _exit(0). Returns false in the parent, after the child has ended.
static bool in_child(void)
{
    int status;
    pid_t child = fork();
    if (child == 0)
        return true;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    return false;
}

static void apart(const struct wanted *w, const char *control, int n_imports)
{
    if (!in_child())
        return;
    struct fixture f;
    begin(&f, w, control);
    wait_fetcher(&f, 0);
    assert_int_equal(imports(), n_imports);
    folder_write(folder, "control", "");
    end(&f);
    _exit(0);
}

static void a_process_of_the_same_place_copies_from_device_to_device(void **state)
{
    (void)state;
    apart(&(struct wanted){"0", 0, true}, "lag 500\n", 1);
}

static void a_copy_that_has_begun_ends_before_its_memory_is_unmapped(void **state)
{
    (void)state;
    apart(&(struct wanted){"0", 0, true, true}, "lag 200000\n", 1);
}

static void one_that_cannot_open_the_handle_gets_the_bytes(void **state)
{
    (void)state;
    apart(&(struct wanted){"0", 0, true}, "import 201\n", 0);
}

static void one_without_a_gpu_gets_all_on_the_host(void **state)
{
    (void)state;
    apart(&(struct wanted){NULL, 0, false}, "", 0);
    apart(&(struct wanted){"7", 0, false}, "", 0); // it was given a GPU that does not exist
}

static void one_whose_gpu_is_full_hears_how_full(void **state)
{
    (void)state;
    apart(&(struct wanted){"0", ERR_NOMEM, false}, "memory 1000\n", 0);
}

// If memory was freed while the mapping is open, the copy would crash.
static void what_is_freed_while_it_is_lent_stays_until_it_is_copied(void **state)
{
    (void)state;
    if (!in_child())
        return;
    struct fixture f;
    begin(&f, &(struct wanted){"0", 0, true}, "hang\n");
    while (!imports())
        loop_run_once(f.loop, TURN_MS);
    assert_true(object_store_drop(f.store, f.question.id));
    for (int i = 0; i < 20; i++)
        loop_run_once(f.loop, TURN_MS);
    assert_int_equal(allocated(), 1);
    folder_write(folder, "control", "");
    wait_fetcher(&f, 0);
    turn_until_freed(&f);
    end(&f);
    _exit(0);
}

static void a_fetcher_that_dies_gives_its_handle_back(void **state)
{
    (void)state;
    if (!in_child())
        return;
    struct fixture f;
    begin(&f, &(struct wanted){"0", 0, true}, "hang\n");
    while (!imports())
        loop_run_once(f.loop, TURN_MS);
    assert_true(object_store_drop(f.store, f.question.id));
    kill(f.fetcher, SIGKILL);
    wait_fetcher(&f, SIGKILL);
    folder_write(folder, "control", "");
    turn_until_freed(&f);
    end(&f);
    _exit(0);
}

static bool is_over(void *ctx)
{
    return atomic_load((atomic_bool *)ctx);
}

// For example, a collective that waits for the fetcher's rank: it would wait for ever if the copy waited for it.
// Freeing memory does wait for it.
static void what_methods_do_on_the_device_holds_up_no_copy(void **state)
{
    static atomic_bool over;
    (void)state;
    if (!in_child())
        return;
    struct fixture f;
    begin(&f, &(struct wanted){NULL, 0, false}, "");
    struct region *other = new_region(f.device);
    stand_in_put(NULL, is_over, &over);
    region_unref(other);
    wait_fetcher(&f, 0);
    assert_int_equal(allocated(), 2);
    atomic_store(&over, true);
    end(&f);
    _exit(0);
}

// The fetcher does not read, so a copy is under way, or all pieces wait.
static void a_server_that_ends_leaves_nothing_behind(void **state)
{
    (void)state;
    if (!in_child())
        return;
    struct fixture f;
    uint64_t before = bytes_sent();
    begin(&f, &(struct wanted){NULL, ERR_UNAVAILABLE, false}, "hang\n");
    while (bytes_sent() == before)
        loop_run_once(f.loop, TURN_MS);
    rank_device_close(f.device);
    object_server_free(f.server);
    f.server = NULL;
    wait_fetcher(&f, 0);
    folder_write(folder, "control", "");
    object_store_free(f.store);
    rank_device_free(f.device);
    loop_free(f.loop);
    _exit(0);
}

// The end of the server has the same limit. It does not wait for memory that the driver never frees.
static void a_copy_that_never_ends_is_given_up(void **state)
{
    static atomic_bool over;
    struct region *other;
    struct err err = ERR_INIT;
    (void)state;
    if (!in_child())
        return;
    struct fixture f;
    begin(&f, &(struct wanted){NULL, ERR_UNAVAILABLE, false}, "hang\n");
    assert_int_equal(rank_device_enter(f.device, &err), 0);
    assert_int_equal(region_new(f.device, 10, &other, &err), 0);
    rank_device_leave(f.device);
    stand_in_put(NULL, is_over, &over);
    region_unref(other);
    wait_fetcher(&f, 0);
    assert_int_equal(allocated(), 2);
    rank_device_close(f.device);
    object_server_free(f.server);
    object_store_free(f.store);
    rank_device_free(f.device);
    loop_free(f.loop);
    _exit(0);
}

// The client writes the kind into the reference. The host has only the head of this object.
static void a_reference_that_calls_values_on_the_device_json_gets_no_other_bytes(void **state)
{
    (void)state;
    if (!in_child())
        return;
    struct fixture f;
    begin(&f, &(struct wanted){NULL, 0, false}, "");
    wait_fetcher(&f, 0);
    const struct kept_object *kept = object_store_get(f.store, f.question.id);
    struct objects o = {.config = {.group = "uid-1", .attempt = 1, .rank = 2, .call_bytes = ROOM, .device = f.device},
                        .store = f.store};
    struct ref_part part = {.rank = 2, .attempt = 1, .id = kept->id, .bytes = kept->len, .kind = REF_JSON};
    const struct ref ref = {.uid = "uid-1", .form = REF_ONE, .n = 1, .parts = &part};
    struct buf args = BUF_INIT(HEAD_MAX);
    struct arg_refs *refs;
    struct region *values;
    struct err err = ERR_INIT;
    const char *got;
    size_t len;
    ref_write_json(&ref, &args);
    assert_int_equal(arg_refs_new(&o, args.data, args.len, &refs, &err), 0);
    assert_int_equal(arg_refs_fetch(refs, NULL, &got, &len, &values, &err), 0);
    assert_ptr_equal(values, kept->values);
    assert_ptr_equal(got, kept->blob->data);
    assert_int_equal(len, kept->len);
    arg_refs_free(refs);
    buf_done(&args);
    buf_puts(&args, "[");
    ref_write_json(&ref, &args);
    buf_puts(&args, ",1]");
    assert_int_equal(arg_refs_new(&o, args.data, args.len, &refs, &err), ERR_INVALID);
    assert_non_null(strstr(err.msg, "a reference to a batch among other arguments"));
    buf_done(&args);
    end(&f);
    _exit(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_of_the_same_place_copies_from_device_to_device),
        cmocka_unit_test(a_copy_that_has_begun_ends_before_its_memory_is_unmapped),
        cmocka_unit_test(one_that_cannot_open_the_handle_gets_the_bytes),
        cmocka_unit_test(one_without_a_gpu_gets_all_on_the_host),
        cmocka_unit_test(one_whose_gpu_is_full_hears_how_full),
        cmocka_unit_test(what_is_freed_while_it_is_lent_stays_until_it_is_copied),
        cmocka_unit_test(a_fetcher_that_dies_gives_its_handle_back),
        cmocka_unit_test(what_methods_do_on_the_device_holds_up_no_copy),
        cmocka_unit_test(a_server_that_ends_leaves_nothing_behind),
        cmocka_unit_test(a_copy_that_never_ends_is_given_up),
        cmocka_unit_test(a_reference_that_calls_values_on_the_device_json_gets_no_other_bytes),
    };
    folder_new(folder);
    setenv("GPU_STAND_IN", folder, 1);
    setenv("CADRE_DEVICE", "0", 1);
    int r = cmocka_run_group_tests(tests, NULL, NULL);
    folder_free(folder);
    return r;
}
