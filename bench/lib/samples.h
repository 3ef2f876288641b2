// SPDX-License-Identifier: Apache-2.0
// Measured values, and their quantiles.
#pragma once

#include <stddef.h>

enum { SAMPLES_MAX = 256 };

struct samples {
    double values[SAMPLES_MAX];
    size_t n;
};

void samples_add(struct samples *s, double value);          // beyond SAMPLES_MAX: dropped
double samples_quantile(const struct samples *s, double q); // nearest rank; 0 if there are none
double samples_median(const struct samples *s); // of an even number: between the two in the middle; 0 if there are none
// of[i] / to[i] for each pair that both have.
void samples_ratios(const struct samples *of, const struct samples *to, struct samples *ret);
