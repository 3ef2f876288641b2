// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/environment.h"

#include "common/base/buf.h"
#include "common/base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

static struct arena arena;

static int teardown(void **state)
{
    (void)state;
    arena_done(&arena);
    return 0;
}

static const struct environment_group group = {.uid = "6e8a",
                                               .name = "llama",
                                               .ns = "ml",
                                               .master_addr = "llama-0.llama.ml.svc",
                                               .master_port = 29500,
                                               .world_size = 8,
                                               .nnodes = 2,
                                               .node_rank = 1,
                                               .local_world_size = 4,
                                               .gpus = {.per_worker = GPUS_SHARE, .count = GPUS_UNKNOWN}};

static const char *build(const char *const *pod, const struct environment_group *g, const struct environment_process *p)
{
    struct err err = ERR_INIT;
    const char *const *env;
    struct buf text = BUF_INIT(16 * 1024);
    if (environment_build(pod, g, p, &arena, &env, &err) < 0)
        return arena_strdup(&arena, err.msg);
    for (; *env; env++)
        buf_printf(&text, "%s\n", *env);
    char *ret = arena_strdup(&arena, buf_str(&text));
    buf_done(&text);
    return ret;
}

static void a_process_gets_the_pods_the_groups_and_its_own(void **state)
{
    (void)state;
    const char *const pod[] = {"PATH=/usr/bin", "RANK=0", "no entry", "NVIDIA_VISIBLE_DEVICES=GPU-a,GPU-b,GPU-c,GPU-d",
                               "EMPTY=",        NULL};
    const struct environment_var vars[] = {{"NCCL_DEBUG", "INFO"}, {"RANK", "99"}, {"NCCL_DEBUG", "WARN"}};
    struct environment_group g = group;
    g.vars = vars;
    g.n_vars = ARRAY_LEN(vars);
    const struct environment_process p = {.rank = 6, .local_rank = 2, .attempt = 3, .ticket = "t0k3n"};
    assert_string_equal(build(pod, &g, &p), "PATH=/usr/bin\n"
                                            "RANK=6\n"
                                            "NVIDIA_VISIBLE_DEVICES=GPU-a,GPU-b,GPU-c,GPU-d\n"
                                            "EMPTY=\n"
                                            "MASTER_ADDR=llama-0.llama.ml.svc\n"
                                            "MASTER_PORT=29500\n"
                                            "WORLD_SIZE=8\n"
                                            "LOCAL_WORLD_SIZE=4\n"
                                            "NNODES=2\n"
                                            "NODE_RANK=1\n"
                                            "GROUP_RANK=1\n"
                                            "GROUP_NAME=llama\n"
                                            "PET_MASTER_ADDR=llama-0.llama.ml.svc\n"
                                            "PET_MASTER_PORT=29500\n"
                                            "PET_NNODES=2\n"
                                            "PET_NODE_RANK=1\n"
                                            "PET_NPROC_PER_NODE=4\n"
                                            "CADRE_GROUP_UID=6e8a\n"
                                            "CADRE_NAMESPACE=ml\n"
                                            "CADRE_INDEX=1\n"
                                            "LOCAL_RANK=2\n"
                                            "CADRE_ATTEMPT=3\n"
                                            "CADRE_DEVICE=0\n"
                                            "CADRE_TICKET=t0k3n\n"
                                            "CUDA_VISIBLE_DEVICES=2\n"
                                            "NCCL_DEBUG=WARN\n");
}

static void values_refer_to_others_as_in_kubernetes(void **state)
{
    (void)state;
    const char *const pod[] = {"HOME=/home/ranks", NULL};
    const struct environment_var vars[] = {{"OUT", "$(HOME)/rank-$(RANK)-of-$(WORLD_SIZE)"},
                                           {"BOTH", "$(OUT).$(LATER)"},
                                           {"LATER", "x"},
                                           {"LITERAL", "$$(RANK) costs $5 $$ $"},
                                           {"OPEN", "$(RANK"},
                                           {"CADRE_INIT", "{\"a\":\"$(RANK)\"}"}};
    struct environment_group g = group;
    g.vars = vars;
    g.n_vars = ARRAY_LEN(vars);
    const struct environment_process p = {.rank = 6, .local_rank = 2, .attempt = 3};
    const char *text = build(pod, &g, &p);
    assert_non_null(strstr(text, "OUT=/home/ranks/rank-6-of-8\n"));
    assert_non_null(
        strstr(text, "BOTH=/home/ranks/rank-6-of-8.$(LATER)\n")); // a variable that comes later is not replaced
    assert_non_null(strstr(text, "LITERAL=$(RANK) costs $5 $ $\n"));
    assert_non_null(strstr(text, "OPEN=$(RANK\n"));
    assert_non_null(strstr(text, "CADRE_INIT={\"a\":\"$(RANK)\"}\n"));
}

static void dollars_are_read_as_by_kubernetes(void **state)
{
    (void)state;
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"$(A)$(B)-$(A)", "12-1"},
        {"$$(A)", "$(A)"},
        {"$$$(A)", "$1"},
        {"$$$$(A)", "$$(A)"},
        {"echo $$ > pid", "echo $ > pid"},
        {"$$", "$"},
        {"$", "$"},
        {"$A ${A} $5", "$A ${A} $5"},
        {"$(NONE)", "$(NONE)"},
        {"$()", "$()"},
        {"$(A", "$(A"},
        {"$(A$(B))", "$(A$(B))"},
        {"$(date +%s) $(A)", "$(date +%s) 1"},
        {"\\$(A)", "\\1"},
        {"$(SELF)", "$(SELF)"},
    };
    const char *const env[] = {"A=1", "B=2", "SELF=$(SELF)", NULL};
    struct arena a = ARENA_INIT;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_string_equal(environment_expand(env, cases[i].text, &a), cases[i].want);
    arena_done(&a);
}

static void a_pod_without_gpus_keeps_what_it_has(void **state)
{
    (void)state;
    const char *const pod[] = {NULL};
    const struct environment_process p = {.rank = 4};
    const char *text = build(pod, &group, &p);
    assert_non_null(strstr(text, "CADRE_DEVICE=-1\n"));
    assert_null(strstr(text, "CUDA_VISIBLE_DEVICES"));
    assert_null(strstr(text, "CADRE_TICKET"));
}

// For bundles with amd.com/gpu, START lists no GPUs for a process.
static void gpus_of_another_maker_stay_as_the_pod_has_them(void **state)
{
    (void)state;
    const char *const pod[] = {"ROCR_VISIBLE_DEVICES=0,1", "HIP_VISIBLE_DEVICES=1", NULL};
    const struct environment_process p = {.rank = 4, .gpus = NULL};
    const char *text = build(pod, &group, &p);
    assert_non_null(strstr(text, "ROCR_VISIBLE_DEVICES=0,1\n"));
    assert_non_null(strstr(text, "HIP_VISIBLE_DEVICES=1\n"));
    assert_null(strstr(text, "CUDA_VISIBLE_DEVICES"));
}

static const int one_three[] = {1, 3}, fifth[] = {5};

// The value of CUDA_VISIBLE_DEVICES that a worker sees ("-" = unchanged), and the number of its own device.
static const struct {
    const char *what;
    struct gpus gpus;
    int local_rank, local_world_size;
    const char *visible;
    int device;
} views[] = {
    {"one of four", {.per_worker = -1, .nvidia_visible = "a,b,c,d"}, 1, 4, "1", 0},
    {"two of four", {.per_worker = -1, .nvidia_visible = "a,b,c,d"}, 1, 2, "2,3", 0},
    {"all of four", {.per_worker = -1, .nvidia_visible = "a,b,c,d"}, 0, 1, "0,1,2,3", 0},
    {"a third is nobody's", {.per_worker = -1, .nvidia_visible = "a,b,c"}, 1, 2, "1", 0},
    {"four share one", {.per_worker = -1, .nvidia_visible = "a"}, 3, 4, "0", 0},
    {"four share two", {.per_worker = -1, .nvidia_visible = "a,b"}, 2, 4, "1", 0},
    {"asked for one", {.per_worker = 1, .nvidia_visible = "a,b,c,d"}, 1, 2, "1", 0},
    {"asked for two, and shared", {.per_worker = 2, .nvidia_visible = "a,b"}, 1, 2, "0,1", 0},
    {"asked for none", {.per_worker = 0, .nvidia_visible = "a,b"}, 0, 1, "", -1},
    {"none, of all", {.per_worker = 0, .visibility = GPUS_ALL, .nvidia_visible = "a,b"}, 0, 1, "", -1},
    {"all are seen", {.per_worker = -1, .visibility = GPUS_ALL, .nvidia_visible = "a,b,c,d"}, 3, 4, "-", 3},
    {"all are seen, two are its own", {.per_worker = 2, .visibility = GPUS_ALL, .count = 4}, 1, 2, "-", 2},
    {"its group has two of four", {.per_worker = -1, .indices = one_three, .n_indices = 2, .count = 4}, 1, 2, "3", 0},
    {"it sees its group's",
     {.per_worker = -1, .visibility = GPUS_ALL, .indices = one_three, .n_indices = 2, .count = 4},
     1,
     2,
     "1,3",
     1},
    {"its group has none", {.per_worker = -1, .indices = one_three, .n_indices = 0, .count = 4}, 0, 1, "", -1},
    {"parts of a GPU have names", {.per_worker = -1, .nvidia_visible = "MIG-x,MIG-y"}, 1, 2, "MIG-y", 0},
    {"a share of what CUDA_VISIBLE_DEVICES leaves", {.per_worker = -1, .cuda_visible = "4,6"}, 1, 2, "6", 0},
    {"hidden is hidden", {.per_worker = -1, .cuda_visible = "", .nvidia_visible = "a,b"}, 0, 1, "-", -1},
    {"no list: the count", {.per_worker = -1, .nvidia_visible = "all", .count = 2}, 1, 2, "1", 0},
    {"no list either: the count", {.per_worker = -1, .nvidia_visible = "void", .count = 2}, 1, 2, "1", 0},
    {"files instead of a list", {.per_worker = -1, .nvidia_visible = "/var/run/x", .count = 2}, 1, 2, "1", 0},
    {"nothing is known", {.per_worker = -1, .count = GPUS_UNKNOWN}, 1, 2, "-", -1},
};

static void a_worker_sees_its_share(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(views); i++) {
        struct err err = ERR_INIT;
        struct gpus_view view;
        const struct gpus_worker worker = {.local_rank = views[i].local_rank,
                                           .local_world_size = views[i].local_world_size};
        int r = gpus_view(&views[i].gpus, &worker, &arena, &view, &err);
        const char *visible = r == 0 && view.visible ? view.visible : "-";
        if (r < 0 || strcmp(visible, views[i].visible) != 0 || view.device != views[i].device)
            fail_msg("%s: \"%s\", device %d %s", views[i].what, visible, view.device, err.msg);
    }
}

static void a_worker_has_the_gpus_that_it_was_given(void **state)
{
    (void)state;
    static const int of_group[] = {2, 3, 4, 5}, own[] = {4, 5};
    struct err err = ERR_INIT;
    struct gpus_view view;
    struct gpus g = {.per_worker = GPUS_SHARE, .count = 8, .indices = of_group, .n_indices = 4};
    struct gpus_worker w = {.local_world_size = 2, .own = own, .n_own = 2};
    assert_int_equal(gpus_view(&g, &w, &arena, &view, &err), 0);
    assert_string_equal(view.visible, "4,5");
    assert_int_equal(view.device, 0);
    g.visibility = GPUS_ALL;
    assert_int_equal(gpus_view(&g, &w, &arena, &view, &err), 0);
    assert_string_equal(view.visible, "2,3,4,5");
    assert_int_equal(view.device, 2);
    w.n_own = 0;
    assert_int_equal(gpus_view(&g, &w, &arena, &view, &err), 0);
    assert_string_equal(view.visible, "");
    assert_int_equal(view.device, -1);
}

static void more_than_there_is_is_refused(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    struct gpus_view view;
    const struct gpus_worker alone = {.local_world_size = 1};
    struct gpus g = {.per_worker = 3, .nvidia_visible = "a,b"};
    assert_int_equal(gpus_view(&g, &alone, &arena, &view, &err), ERR_INVALID);
    assert_string_equal(err.msg, "each process should get 3 GPUs (spec.worker.gpus, or --gpus), but there are 2 here");
    g = (struct gpus){.per_worker = 1, .count = 4, .indices = fifth, .n_indices = 1};
    assert_int_equal(gpus_view(&g, &alone, &arena, &view, &err), ERR_INVALID);
    assert_string_equal(err.msg, "there is no GPU 5 here: there are 4 GPUs");
}

static void a_worker_in_python_finds_what_was_brought(void **state)
{
    (void)state;
    const char *const pod[] = {"PYTHONPATH=/app", NULL};
    const struct environment_var vars[] = {{"CADRE_PYTHON", "pkg.actors"}};
    struct environment_group g = group;
    const struct environment_process p = {.rank = 6, .local_rank = 2, .attempt = 3};
    g.brought = "/cadre";
    assert_null(strstr(build(pod, &g, &p), "/cadre"));
    g.vars = vars;
    g.n_vars = ARRAY_LEN(vars);
    assert_non_null(strstr(build(pod, &g, &p), "PYTHONPATH=/cadre/cadre.zip:/app\n"));
    assert_non_null(strstr(build(pod, &g, &p), "CADRE_CLIENT_LIBRARY=/cadre/libcadre.so\n"));
    assert_non_null(strstr(build(pod + 1, &g, &p), "PYTHONPATH=/cadre/cadre.zip\n"));
    g.vars = (const struct environment_var[]){{"CADRE_PYTHON", "pkg.actors"}, {"CADRE_PACKAGE", "image"}};
    g.n_vars = 2;
    assert_non_null(strstr(build(pod, &g, &p), "PYTHONPATH=/app\n"));
    g.brought = NULL;
    assert_null(strstr(build(pod, &g, &p), "/cadre"));
}

static void changes_make_one_environment_out_of_another(void **state)
{
    static const char *const from[] = {"A=1", "B=2", "C=", "D=4=5", NULL};
    static const char *const to[] = {"E=", "D=4=5", "B=3", "A=1", NULL};
    const char *const *changes = environment_changes(from, to, &arena);
    (void)state;
    assert_string_equal(changes[0], "E=");
    assert_string_equal(changes[1], "B=3");
    assert_string_equal(changes[2], "C");
    assert_null(changes[3]);
}

static void a_template_has_what_is_the_same_for_all_ranks_and_attempts(void **state)
{
    (void)state;
    const char *const pod[] = {"PATH=/usr/bin", "CADRE_OPERATOR=wss://o", NULL};
    const struct environment_var vars[] = {{"CADRE_PYTHON", "pkg.actors"},
                                           {"CADRE_PRELOAD", "torch"},
                                           {"CADRE_CODE", "ab"},
                                           {"HOME", "/home"},
                                           {"CACHE", "$(HOME)/$(RANK)"}};
    struct environment_group g = group;
    struct buf text = BUF_INIT(16 * 1024);
    g.brought = "/cadre";
    g.vars = vars;
    g.n_vars = ARRAY_LEN(vars);
    for (const char *const *env = environment_template(pod, &g, &arena); *env; env++)
        buf_printf(&text, "%s\n", *env);
    assert_string_equal(buf_str(&text), "PATH=/usr/bin\n"
                                        "CADRE_OPERATOR=wss://o\n"
                                        "CADRE_PYTHON=pkg.actors\n"
                                        "CADRE_PRELOAD=torch\n"
                                        "HOME=/home\n"
                                        "CACHE=/home/$(RANK)\n"
                                        "CADRE_GROUP_UID=6e8a\n"
                                        "CADRE_TEMPLATE=1\n"
                                        "PYTHONPATH=/cadre/cadre.zip\n"
                                        "CADRE_CLIENT_LIBRARY=/cadre/libcadre.so\n");
    buf_done(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_worker_in_python_finds_what_was_brought),
        cmocka_unit_test_teardown(a_process_gets_the_pods_the_groups_and_its_own, teardown),
        cmocka_unit_test_teardown(values_refer_to_others_as_in_kubernetes, teardown),
        cmocka_unit_test(dollars_are_read_as_by_kubernetes),
        cmocka_unit_test_teardown(a_pod_without_gpus_keeps_what_it_has, teardown),
        cmocka_unit_test_teardown(gpus_of_another_maker_stay_as_the_pod_has_them, teardown),
        cmocka_unit_test_teardown(a_worker_sees_its_share, teardown),
        cmocka_unit_test_teardown(a_worker_has_the_gpus_that_it_was_given, teardown),
        cmocka_unit_test_teardown(changes_make_one_environment_out_of_another, teardown),
        cmocka_unit_test_teardown(a_template_has_what_is_the_same_for_all_ranks_and_attempts, teardown),
        cmocka_unit_test_teardown(more_than_there_is_is_refused, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
