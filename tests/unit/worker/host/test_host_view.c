// SPDX-License-Identifier: Apache-2.0
// Tensors on the device as methods see them. The driver is a stand-in in the library path (cuda_stand_in.c).
#include "common/base/mem.h"
#include "common/base/str.h"
#include "tests/unit/support/folder.h"
#include "tests/unit/worker/device/cuda_stand_in.h"
#include "worker/host/host_call_run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROWS = 1000, TURN_MS = 10 };

static char folder[64];

struct fixture {
    struct loop *loop;
    struct rank_device *device;
    struct cadre_call call;
    struct buf args, answer;
    bool ok;
};

static void on_lost(void *ctx, const char *why)
{
    (void)ctx, (void)why;
}

static void begin(struct fixture *f, int number, const char *control)
{
    folder_clear(folder);
    folder_write(folder, "control", control);
    *f = (struct fixture){.loop = loop_new(), .args = BUF_INIT(1 << 20), .answer = BUF_INIT(1 << 20)};
    f->device = rank_device_new(f->loop, number, on_lost, NULL);
}

static void end(struct fixture *f)
{
    rank_device_close(f->device);
    rank_device_free(f->device);
    loop_free(f->loop);
    buf_done(&f->args);
    buf_done(&f->answer);
}

// A batch of "x": ROWS floats; each value is its row number.
static void write_batch(struct buf *out)
{
    const uint64_t shape[] = {ROWS};
    struct safetensors_tensor t = {.name = "x", .dtype = SAFETENSORS_F32, .n_dims = 1, .shape = shape};
    struct scatter head = SCATTER_INIT;
    struct err err = ERR_INIT;
    assert_int_equal(safetensors_write_head(&head, &t, 1, NULL, 0, &err), 0);
    buf_append(out, head.own.data, head.own.len);
    for (int i = 0; i < ROWS; i++)
        buf_append(out, &(float){(float)i}, sizeof(float));
    scatter_done(&head);
}

static void call_it(struct fixture *f, cadre_result (*fn)(void *, cadre_call *), bool keep)
{
    const cadre_method m = {"foo", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, fn, NULL};
    buf_reset(&f->args);
    write_batch(&f->args);
    call_init(&f->call, f->args.data, f->args.len);
    f->call.device.rank = f->device;
    f->call.keep = keep;
    call_run(&f->call, &m, f);
    f->ok = call_encode(&f->call, &f->answer);
}

static void over(struct fixture *f)
{
    call_done(&f->call);
    buf_reset(&f->answer);
}

static void says(struct fixture *f, const char *what)
{
    if (!strstr(buf_str(&f->answer), what))
        fail_msg("%s\ncame, not %s", buf_str(&f->answer), what);
}

// Returns how many allocations the device has.
static int allocated(void)
{
    int n = 0;
    DIR *d = opendir(folder);
    for (const struct dirent *e; (e = readdir(d));)
        n += str_starts(e->d_name, "memory.");
    closedir(d);
    return n;
}

static void turn_until_freed(struct fixture *f)
{
    while (allocated())
        loop_run_once(f->loop, TURN_MS);
}

// Methods

static void multiply(void *memory, size_t n, double x)
{
    for (size_t i = 0; i < n; i++)
        ((float *)memory)[i] *= (float)x;
}

static const uint64_t result_shape[] = {ROWS};
static const cadre_tensor result = {"y", "F32", result_shape, 1, NULL, 0};

// Computes y = 2 x with a copy and a kernel on the stream. It does not wait for them.
static cadre_result twice(void *self, cadre_call *c)
{
    struct fixture *f = self;
    struct err err = ERR_INIT;
    cadre_view x, again, y;
    cadre_result r = cadre_arg_view(c, "x", &x);
    if (r == CADRE_OK)
        r = cadre_arg_view(c, "x", &again);
    if (r == CADRE_OK)
        r = cadre_return_views(c, &result, 1, NULL, NULL, &y);
    if (r != CADRE_OK)
        return r;
    assert_ptr_equal(x.data, again.data); // copied once
    assert_int_equal(x.device, 0);
    assert_string_equal(x.dtype, "F32");
    assert_int_equal(x.shape[0], ROWS);
    assert_int_equal(x.len, ROWS * sizeof(float));
    assert_int_equal(y.len, ROWS * sizeof(float));
    assert_non_null(x.stream);
    assert_ptr_equal(x.stream, y.stream);
    struct device *d = rank_device_of(f->device);
    assert_int_equal(device_enter(d, &err), 0);
    assert_int_equal(device_copy(d, y.data, x.data, x.len, y.stream, &err), 0);
    stand_in_launch(multiply, y.data, ROWS, 2, y.stream);
    device_leave(d);
    return CADRE_OK;
}

static void is_twice(const float *y)
{
    for (int i = 0; i < ROWS; i++)
        assert_true(y[i] == 2 * (float)i);
}

static void a_result_on_the_device_comes_to_the_host(void **state)
{
    struct fixture f;
    struct arena a = ARENA_INIT;
    struct err err = ERR_INIT;
    struct batch b;
    (void)state;
    begin(&f, 0, "lag 2000\n");
    call_it(&f, twice, false);
    assert_true(f.ok);
    assert_int_equal(batch_read(f.answer.data, f.answer.len, &a, &b, &err), 0);
    assert_string_equal(b.doc.tensors[0].name, "y");
    _Alignas(8) char copy[ROWS * sizeof(float)];
    memcpy(copy, f.answer.data + b.doc.tensors[0].offset, sizeof copy);
    is_twice((const float *)copy);
    arena_done(&a);
    over(&f);
    turn_until_freed(&f);
    end(&f);
}

// The arguments that another call gets for a reference to the object.
static cadre_result look(void *self, cadre_call *c)
{
    const struct fixture *f = self;
    cadre_view v;
    cadre_tensor t;
    size_t len;
    assert_int_equal(cadre_is_batch(c), 1);
    assert_int_equal(cadre_rows(c), ROWS);
    cadre_result r = cadre_arg_view(c, "y", &v);
    if (r == CADRE_OK)
        r = cadre_arg_tensor(c, "y", &t);
    if (r != CADRE_OK)
        return r;
    assert_ptr_equal(v.data, c->device.args->memory); // still at the same address
    is_twice(t.data);
    const char *args = cadre_args(c, &len);
    assert_true(batch_is_safetensors(args, len));
    assert_memory_equal(args + len - t.len, t.data, t.len);
    (void)f;
    return cadre_arg_view(c, "z", &v);
}

static void a_result_that_is_kept_stays_there_and_is_lent_from_there(void **state)
{
    struct fixture f;
    const cadre_method m = {"foo", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, look, NULL};
    struct cadre_call other;
    struct buf answer = BUF_INIT(4096);
    (void)state;
    begin(&f, 0, "lag 500\n");
    call_it(&f, twice, true);
    assert_true(f.ok);
    struct region *kept = region_ref(f.call.device.result);
    assert_true(kept->shared);
    assert_int_equal(kept->len, ROWS * sizeof(float));
    assert_true(batch_is_safetensors(f.answer.data, f.answer.len));
    call_init(&other, NULL, 0);
    other.device.rank = f.device;
    call_set_device_args(&other, f.answer.data, f.answer.len + kept->len, kept);
    call_run(&other, &m, &f);
    assert_false(call_encode(&other, &answer));
    assert_string_equal(buf_str(&answer),
                        "{\"code\":\"INVALID\",\"message\":\"foo() needs 'z', which the batch that it "
                        "was called with does not have\"}");
    buf_done(&answer);
    call_done(&other);
    over(&f);
    while (allocated() > 1)
        loop_run_once(f.loop, TURN_MS);
    region_unref(kept);
    turn_until_freed(&f);
    end(&f);
}

static cadre_result on_host(void *self, cadre_call *c)
{
    cadre_view x, y;
    (void)self;
    assert_int_equal(cadre_arg_view(c, "x", &x), CADRE_OK);
    assert_int_equal(cadre_return_views(c, &result, 1, NULL, "{\"k\":1}", &y), CADRE_OK);
    assert_int_equal(x.device, -1);
    assert_int_equal(y.device, -1);
    assert_null(x.stream);
    for (int i = 0; i < ROWS; i++)
        ((float *)y.data)[i] = 2 * ((const float *)x.data)[i];
    return CADRE_OK;
}

// As with amd.com/gpu: this program cannot open such GPUs, so CADRE_DEVICE is -1.
static void a_worker_without_a_gpu_has_views_in_its_own_memory(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f, -1, "gpus -1\n");
    call_it(&f, on_host, true);
    assert_true(f.ok);
    assert_null(f.call.device.result);
    _Alignas(8) char copy[ROWS * sizeof(float)];
    memcpy(copy, f.answer.data + f.answer.len - sizeof copy, sizeof copy);
    is_twice((const float *)copy);
    over(&f);
    end(&f);
}

static void what_the_device_refuses_fails_the_call_and_not_the_worker(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f, 0, "gpus -1\n");
    call_it(&f, twice, false);
    says(&f,
         "{\"code\":\"NO_DEVICE\",\"message\":\"foo(): NVIDIA's driver sees no GPU here: was this worker given one?");
    over(&f);
    folder_write(folder, "control", "memory 5000\n"); // enough for one of the two
    call_it(&f, twice, true);
    says(&f, "{\"code\":\"NOMEM\",\"message\":\"foo(): the GPU has no room for 4000 bytes: 1000 of its 5000 bytes are "
             "free: CUDA_ERROR_OUT_OF_MEMORY (2)\"}");
    assert_null(f.call.loss);
    over(&f);
    turn_until_freed(&f);
    folder_write(folder, "control", "pin 2\n");
    call_it(&f, twice, false);
    says(&f, "NOMEM");
    over(&f);
    folder_write(folder, "control", "");
    call_it(&f, twice, false);
    assert_true(f.ok);
    over(&f);
    turn_until_freed(&f);
    end(&f);
}

static cadre_result change_its_mind(void *self, cadre_call *c)
{
    cadre_view y;
    (void)self;
    cadre_result r = cadre_return_views(c, &result, 1, NULL, NULL, &y);
    return r == CADRE_OK ? cadre_return_int64(c, 7) : r;
}

static cadre_result no_batch(void *self, cadre_call *c)
{
    const cadre_tensor twins[] = {result, result};
    cadre_view y[2];
    (void)self;
    return cadre_return_views(c, twins, 2, NULL, NULL, y);
}

static void the_last_result_wins_and_a_wrong_one_is_refused(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f, 0, "");
    call_it(&f, change_its_mind, true);
    assert_string_equal(buf_str(&f.answer), "7");
    assert_null(f.call.device.result);
    over(&f);
    call_it(&f, no_batch, false);
    says(&f, "INVALID\",\"message\":\"foo() returns what is not a batch");
    over(&f);
    turn_until_freed(&f);
    end(&f);
}

static cadre_result cancel_itself(void *self, cadre_call *c)
{
    cadre_result r = twice(self, c);
    folder_write(folder, "control", "hang\n");
    struct fixture *f = self;
    struct err err = ERR_INIT;
    struct device *d = rank_device_of(f->device);
    assert_int_equal(device_enter(d, &err), 0);
    stand_in_launch(multiply, c->device.result->memory, ROWS, 2, copier_stream(c->device.copier));
    device_leave(d);
    call_cancel(c);
    return r;
}

static void a_call_that_is_canceled_does_not_wait_for_the_device(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f, 0, "");
    call_it(&f, cancel_itself, false);
    says(&f, "CANCELED");
    folder_write(folder, "control", "");
    over(&f);
    turn_until_freed(&f);
    end(&f);
}

static cadre_result change_its_mind_late(void *self, cadre_call *c)
{
    struct fixture *f = self;
    cadre_view y;
    struct err err = ERR_INIT;
    cadre_result r = cadre_return_views(c, &result, 1, NULL, NULL, &y);
    folder_write(folder, "control", "hang\n");
    assert_int_equal(rank_device_enter(f->device, &err), 0);
    stand_in_launch(multiply, y.data, ROWS, 2, y.stream);
    rank_device_leave(f->device);
    return r == CADRE_OK ? cadre_return_int64(c, 7) : r;
}

// Only the end of the worker waits for this memory, and its wait has a limit.
static void memory_that_the_device_still_uses_holds_up_no_call(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f, 0, "");
    call_it(&f, change_its_mind_late, false);
    assert_string_equal(buf_str(&f.answer), "7");
    assert_int_equal(allocated(), 1);
    folder_write(folder, "control", "");
    over(&f);
    turn_until_freed(&f);
    end(&f);
}

static cadre_result replace(void *self, cadre_call *c)
{
    cadre_result r = change_its_mind_late(self, c);
    folder_write(folder, "control", "memory 5000\nlag 100000\n");
    return r == CADRE_OK ? change_its_mind(self, c) : r;
}

static void memory_that_is_about_to_be_freed_is_waited_for_where_there_is_no_other(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f, 0, "");
    call_it(&f, replace, false);
    assert_string_equal(buf_str(&f.answer), "7");
    over(&f);
    turn_until_freed(&f);
    end(&f);
}

static cadre_result go_astray(void *self, cadre_call *c)
{
    cadre_view y;
    (void)self;
    cadre_result r = cadre_return_views(c, &result, 1, NULL, NULL, &y);
    stand_in_launch(multiply, (void *)16, ROWS, 2, NULL);
    return r;
}

static void an_illegal_address_is_the_end_of_the_worker(void **state)
{
    (void)state;
    pid_t child = fork(); // its context cannot be repaired
    if (child == 0) {
        struct fixture f;
        begin(&f, 0, "");
        call_it(&f, go_astray, true);
        says(&f, "FAILED\",\"message\":\"foo(): the GPU: ");
        says(&f, "CUDA_ERROR_ILLEGAL_ADDRESS (700)");
        _exit(f.call.loss && strstr(f.call.loss, "CUDA_ERROR_ILLEGAL_ADDRESS (700)") ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_illegal_address_is_the_end_of_the_worker), // first: it forks
        cmocka_unit_test(a_worker_without_a_gpu_has_views_in_its_own_memory),
        cmocka_unit_test(a_result_on_the_device_comes_to_the_host),
        cmocka_unit_test(a_result_that_is_kept_stays_there_and_is_lent_from_there),
        cmocka_unit_test(what_the_device_refuses_fails_the_call_and_not_the_worker),
        cmocka_unit_test(the_last_result_wins_and_a_wrong_one_is_refused),
        cmocka_unit_test(a_call_that_is_canceled_does_not_wait_for_the_device),
        cmocka_unit_test(memory_that_the_device_still_uses_holds_up_no_call),
        cmocka_unit_test(memory_that_is_about_to_be_freed_is_waited_for_where_there_is_no_other),
    };
    folder_new(folder);
    setenv("GPU_STAND_IN", folder, 1);
    setenv("CADRE_DEVICE", "0", 1);
    int r = cmocka_run_group_tests(tests, NULL, NULL);
    folder_free(folder);
    return r;
}
