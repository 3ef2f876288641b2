// SPDX-License-Identifier: Apache-2.0
// The table of results: a line a number, each beside its floor of the same run and what is to be reached.
// A number without samples has no line.
#pragma once

#include "bench/lib/samples.h"

void report_begin(void);
// Medians, and the median of the ratios of the pairs. `factor` is the most that the ratio should be.
void report_pairs(const char *what, const char *unit, const struct samples *floor, const struct samples *ours,
                  double factor);
// Prints two numbers side by side.
void report_both(const char *what, const char *unit, double floor_value, double ours);
void report_quantiles(const char *what, const char *unit, const struct samples *floor, const struct samples *ours,
                      double q);
// A single number. `most`: its target is at most this, 0 = it has no target.
void report_number(const char *what, const char *unit, double value, double most);
void report_median(const char *what, const char *unit, const struct samples *values, double most);
