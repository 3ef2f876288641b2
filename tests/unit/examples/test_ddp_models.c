// SPDX-License-Identifier: Apache-2.0
// The models of examples/ddp, with sizes that no tile divides. The kernels compute the same addresses as on the
// GPU; each matrix has memory of its own, so a sanitizer sees one that is outside.
#include "examples/ddp/model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

static uint64_t state = 7;

static void fill(float *at, size_t n)
{
    for (size_t i = 0; i < n; i++)
        at[i] = random_next(&state);
}

static float *numbers(size_t n)
{
    float *at = device_alloc(n);
    assert_non_null(at);
    fill(at, n);
    return at;
}

// ---- kernels --------------------------------------------------------------------------------------------------------

struct shape {
    size_t m, n, k, layers;
    bool turned_a, turned_b, add;
};

// Rows one after the other in each layer, or columns.
static struct matrix packed(float *at, size_t rows, size_t columns, bool is_turned)
{
    return (struct matrix){at, is_turned ? 1 : columns, is_turned ? rows : 1, rows * columns};
}

static double term(const struct matrix *m, size_t layer, size_t i, size_t j)
{
    return (double)m->at[layer * m->layer + i * m->row + j * m->column];
}

static void check_product(const struct shape *s)
{
    const size_t len = s->layers * s->m * s->n;
    float *a = numbers(s->layers * s->m * s->k), *b = numbers(s->layers * s->k * s->n), *out = numbers(len);
    float *before = malloc(len * sizeof *before);
    assert_non_null(before);
    memcpy(before, out, len * sizeof *before);
    const struct product p = {.out = packed(out, s->m, s->n, false),
                              .a = packed(a, s->m, s->k, s->turned_a),
                              .b = packed(b, s->k, s->n, s->turned_b),
                              .m = s->m,
                              .n = s->n,
                              .k = s->k,
                              .layers = s->layers,
                              .factor = 0.5f,
                              .add = s->add};
    device_multiply(&p);
    for (size_t layer = 0, at = 0; layer < s->layers; layer++)
        for (size_t i = 0; i < s->m; i++)
            for (size_t j = 0; j < s->n; j++, at++) {
                double want = s->add ? (double)before[at] : 0;
                for (size_t k = 0; k < s->k; k++)
                    want += term(&p.a, layer, i, k) * term(&p.b, layer, k, j) / 2;
                assert_true(fabs((double)out[at] - want) < 1e-4);
            }
    free(before);
    device_free(a);
    device_free(b);
    device_free(out);
}

static void products_of_all_shapes_are_those_of_plain_loops(void **unused)
{
    (void)unused;
    static const size_t sizes[][3] = {{1, 1, 1}, {3, 1, 130}, {1, 65, 17}, {64, 64, 16}, {65, 63, 15}, {67, 129, 33}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (unsigned way = 0; way < 8; way++)
            check_product(
                &(struct shape){sizes[i][0], sizes[i][1], sizes[i][2], 1 + way % 3, way & 1, way & 2, way & 4});
}

static void softmax_of_large_numbers_is_finite(void **unused)
{
    (void)unused;
    float *x = device_alloc(3);
    assert_non_null(x);
    x[0] = x[1] = 1e30f;
    x[2] = -1e30f;
    device_softmax(&(struct rows){.out = x, .n = 1, .width = 3});
    assert_true(x[0] == 0.5f && x[1] == 0.5f && x[2] == 0);
    device_free(x);
}

// ---- models ---------------------------------------------------------------------------------------------------------

static float loss_of(struct model *m, size_t rows)
{
    device_clear(m->grads, m->n_weights + 1);
    m->learn(m, rows, 1 / (float)rows);
    return m->grads[m->n_weights];
}

// Weights from 0 on and rows at which all terms of the gradients count.
static struct model *begin(struct model *m, size_t rows)
{
    assert_non_null(m);
    assert_true(rows <= m->rows_max);
    fill(m->x, rows * m->row_len);
    fill(m->weights, m->n_weights);
    for (size_t i = 0; i < m->n_weights; i++)
        m->weights[i] /= 2;
    return m;
}

// Weights of a model: n rows of `width`, the first one at `first`, the next one after `stride`. Each `step`-th is
// checked.
struct part {
    size_t first, n, width, stride, step;
};

// Each gradient against the change of the loss, beside the largest of the part.
static void check_part(struct model *m, size_t rows, struct part part)
{
    const float little = 4e-3f;
    double worst = 0, largest = 0;
    loss_of(m, rows);
    float *grads = malloc(m->n_weights * sizeof *grads);
    assert_non_null(grads);
    memcpy(grads, m->grads, m->n_weights * sizeof *grads);
    for (size_t i = 0; i < part.n * part.width; i += part.step) {
        const size_t at = part.first + i / part.width * part.stride + i % part.width;
        const float before = m->weights[at];
        m->weights[at] = before + little;
        const double above = (double)loss_of(m, rows);
        m->weights[at] = before - little;
        const double change = (above - (double)loss_of(m, rows)) / (2 * (double)little);
        m->weights[at] = before;
        worst = fmax(worst, fabs(change - (double)grads[at]));
        largest = fmax(largest, fabs((double)grads[at]));
    }
    free(grads);
    if (worst >= largest / 100)
        print_error("weights from %zu on: off by %g, the largest is %g\n", part.first, worst, largest);
    assert_true(largest > 0 && worst < largest / 100);
}

static void gradients_of_the_attention_are_differences_of_its_loss(void **unused)
{
    (void)unused;
    static const size_t shapes[][4] = {{5, 12, 3, 5}, {7, 6, 1, 1}, {67, 70, 2, 601}}; // tokens, width, heads, step
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        const size_t w = shapes[s][1], step = shapes[s][3];
        struct model *m = begin(attention_new(shapes[s][0], w, shapes[s][2]), 1);
        for (size_t i = 0; i < 3; i++) // queries, keys and values
            check_part(m, 1, (struct part){i * w, w, w, 3 * w, step});
        check_part(m, 1, (struct part){3 * w * w, w, w, w, step});
        model_free(m);
    }
}

static void gradients_of_the_mlp_are_differences_of_its_loss(void **unused)
{
    (void)unused;
    static const size_t shapes[][4] = {{7, 5, 3, 1}, {1, 1, 1, 1}, {70, 67, 64, 97}}; // in, hidden, rows, step
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        const size_t in = shapes[s][0], hidden = shapes[s][1], rows = shapes[s][2];
        struct model *m = begin(mlp_new(in, hidden), rows);
        check_part(m, rows, (struct part){0, in, hidden, hidden, shapes[s][3]});
        check_part(m, rows, (struct part){in * hidden, 1, hidden, hidden, 1});
        model_free(m);
    }
}

// One process that learns row by row, or two that learn half of them.
static void rows_that_are_learned_apart_have_the_mean_of_their_gradients(void **unused)
{
    (void)unused;
    struct model *m = begin(mlp_new(70, 5), 6);
    loss_of(m, 6);
    const size_t n = m->n_weights + 1;
    float *together = malloc(n * sizeof *together);
    assert_non_null(together);
    memcpy(together, m->grads, n * sizeof *together);
    device_clear(m->grads, n);
    for (size_t row = 0; row < 6; row++) {
        memmove(m->x, m->x + (row ? m->row_len : 0), (6 - row) * m->row_len * sizeof *m->x);
        m->learn(m, 1, 1.0f / 6);
    }
    for (size_t i = 0; i < n; i++)
        assert_true(fabsf(m->grads[i] - together[i]) < 1e-5f);
    free(together);
    model_free(m);
}

static void gradients_before_the_first_step_are_0(void **unused)
{
    (void)unused;
    struct model *models[] = {attention_new(5, 12, 3), mlp_new(7, 5)};
    for (size_t k = 0; k < 2; k++) {
        assert_non_null(models[k]);
        for (size_t i = 0; i <= models[k]->n_weights; i++)
            assert_true(models[k]->grads[i] == 0);
        model_free(models[k]);
    }
}

static void check_learns(struct model *m, size_t rows)
{
    const float first = loss_of(m, rows);
    for (int i = 0; i < 30; i++) {
        device_descend(&(struct rows){m->weights, m->grads, m->n_weights, 1, m->rate});
        loss_of(m, rows);
    }
    if (!(m->grads[m->n_weights] < first * 0.9f))
        print_error("from %g to %g\n", (double)first, (double)m->grads[m->n_weights]);
    assert_true(m->grads[m->n_weights] < first * 0.9f);
    model_free(m);
}

static void the_loss_falls(void **unused)
{
    (void)unused;
    check_learns(begin(attention_new(6, 8, 2), 1), 1);
    check_learns(begin(mlp_new(20, 8), 10), 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_of_all_shapes_are_those_of_plain_loops),
        cmocka_unit_test(softmax_of_large_numbers_is_finite),
        cmocka_unit_test(gradients_of_the_attention_are_differences_of_its_loss),
        cmocka_unit_test(gradients_of_the_mlp_are_differences_of_its_loss),
        cmocka_unit_test(rows_that_are_learned_apart_have_the_mean_of_their_gradients),
        cmocka_unit_test(gradients_before_the_first_step_are_0),
        cmocka_unit_test(the_loss_falls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
