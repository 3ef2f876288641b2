// SPDX-License-Identifier: Apache-2.0
#include "bench/groups/report.h"

#include <math.h>
#include <stdio.h>

static const char *verdict(double value, double most)
{
    if (most <= 0)
        return "";
    return value <= most ? "yes" : "NO";
}

// Three digits that say something.
static const char *number(double value, char *text, size_t size)
{
    double v = fabs(value);
    snprintf(text, size, "%.*f", v >= 100 || v == floor(v) ? 0 : v >= 10 ? 1 : 2, value);
    return text;
}

static void row(const char *what, const char *unit, const char *floor, const char *ours, const char *ratio,
                const char *most, const char *reached)
{
    printf("| %-52s | %-6s | %8s | %8s | %6s | %6s | %-7s |\n", what, unit, floor, ours, ratio, most, reached);
}

void report_begin(void)
{
    row("what", "unit", "floor", "Cadre", "ratio", "target", "reached");
    printf("|%.54s|%.8s|%.9s:|%.9s:|%.7s:|%.7s:|%.9s|\n", "------------------------------------------------------",
           "--------", "---------", "---------", "-------", "-------", "---------");
}

void report_pairs(const char *what, const char *unit, const struct samples *floor_values, const struct samples *ours,
                  double factor)
{
    char a[32], b[32], c[32], d[32] = "";
    struct samples ratios;
    if (!ours->n)
        return;
    samples_ratios(ours, floor_values, &ratios);
    double ratio = samples_median(&ratios);
    if (factor > 0)
        snprintf(d, sizeof d, "%.1fx", factor);
    snprintf(c, sizeof c, "%.2fx", ratio);
    row(what, unit, number(samples_median(floor_values), a, sizeof a), number(samples_median(ours), b, sizeof b), c, d,
        verdict(ratio, factor));
}

void report_both(const char *what, const char *unit, double floor_value, double ours)
{
    char a[32], b[32];
    row(what, unit, number(floor_value, a, sizeof a), number(ours, b, sizeof b), "", "", "");
}

void report_quantiles(const char *what, const char *unit, const struct samples *floor_values,
                      const struct samples *ours, double q)
{
    char a[32], b[32], c[32];
    if (!ours->n)
        return;
    double x = samples_quantile(floor_values, q), y = samples_quantile(ours, q);
    snprintf(c, sizeof c, "%.2fx", x > 0 ? y / x : 0);
    row(what, unit, number(x, a, sizeof a), number(y, b, sizeof b), c, "", "");
}

void report_number(const char *what, const char *unit, double value, double most)
{
    char a[32], b[32] = "";
    if (most > 0)
        number(most, b, sizeof b);
    row(what, unit, "", number(value, a, sizeof a), "", b, verdict(value, most));
}

void report_median(const char *what, const char *unit, const struct samples *values, double most)
{
    if (values->n)
        report_number(what, unit, samples_median(values), most);
}
