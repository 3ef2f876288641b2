// SPDX-License-Identifier: Apache-2.0
// Measured values and what is said of them.
#pragma once

#include <stddef.h>

enum { SAMPLES_MAX = 256 };

struct samples {
    double values[SAMPLES_MAX];
    size_t n;
};

void samples_add(struct samples *s, double value);          // beyond SAMPLES_MAX: dropped
double samples_quantile(const struct samples *s, double q); // nearest rank; 0 of none
double samples_median(const struct samples *s); // of an even number: between the two in the middle; 0 of none
// of[i] / to[i] for each pair that both have: what is measured side by side is compared side by side.
void samples_ratios(const struct samples *of, const struct samples *to, struct samples *ret);
