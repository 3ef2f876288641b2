// SPDX-License-Identifier: Apache-2.0
// A module that misbehaves in all ways in which users' code may.
#include <cadre/worker.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static cadre_result create(cadre_worker *worker, const char *init, size_t init_len, void **ret_self)
{
    (void)init;
    (void)init_len;
    *ret_self = NULL;
    return cadre_method_idempotent(worker, "crash_once");
}

static void say_destroyed(void *self)
{
    (void)self;
    fputs("destroyed\n", stderr);
}

static cadre_result create_fails(cadre_worker *worker, const char *init, size_t init_len, void **ret_self)
{
    (void)init;
    (void)init_len;
    (void)ret_self;
    return cadre_create_fail(worker, "no weights at %s", "/weights/model.bin");
}

static cadre_result create_fails_silently(cadre_worker *worker, const char *init, size_t init_len, void **ret_self)
{
    (void)worker;
    (void)init;
    (void)init_len;
    (void)ret_self;
    return CADRE_NO_DEVICE;
}

// Like a collective whose peers are gone.
static cadre_result create_hangs(cadre_worker *worker, const char *init, size_t init_len, void **ret_self)
{
    (void)worker;
    (void)init;
    (void)init_len;
    (void)ret_self;
    fputs("constructing\n", stderr);
    while (pause() == -1)
        ;
    return CADRE_OK;
}

static cadre_result crash(void *self, cadre_call *call)
{
    (void)self;
    (void)call;
    raise(SIGSEGV);
    return CADRE_OK;
}

// Where there is no file of this name, which is so once.
static cadre_result crash_once(void *self, cadre_call *call)
{
    const char *path;
    cadre_result r = cadre_arg_string(call, 0, "path", &path);
    (void)self;
    if (r != CADRE_OK || access(path, F_OK) == 0)
        return r;
    fclose(fopen(path, "w"));
    raise(SIGSEGV);
    return CADRE_OK;
}

static cadre_result give_up(void *self, cadre_call *call)
{
    (void)self;
    (void)call;
    abort();
}

static cadre_result fail_silently(void *self, cadre_call *call)
{
    (void)self;
    (void)call;
    return CADRE_OUT_OF_MEMORY;
}

static cadre_result hold(void *self, cadre_call *call)
{
    (void)self;
    while (!cadre_call_canceled(call))
        usleep(1000);
    return CADRE_CANCELED;
}

static const cadre_method methods[] = {
    {"crash", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, crash, NULL},
    {"crash_once", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, crash_once, "may run again"},
    {"crash_first", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, crash_once, "may not"},
    {"give_up", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, give_up, NULL},
    {"fail_silently", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, fail_silently, NULL},
    {"hold", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, hold, "runs until it is canceled"},
};

static const cadre_class classes[] = {
    {"Misbehaving", create, say_destroyed, methods, sizeof methods / sizeof *methods},
    {"Failing", create_fails, NULL, NULL, 0},
    {"Silent", create_fails_silently, NULL, NULL, 0},
    {"Hanging", create_hangs, NULL, NULL, 0},
};

const cadre_module_info *cadre_module(void)
{
    static const cadre_module_info info = {CADRE_ABI, "misbehaving", classes, sizeof classes / sizeof *classes};
    return &info;
}
