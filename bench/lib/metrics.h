// SPDX-License-Identifier: Apache-2.0
// The numbers in a page of metrics in Prometheus' text format.
#pragma once

// Returns the sum of the series of a family whose labels contain the text `label` ("" = all), or 0 if there are none.
double metrics_sum(const char *text, const char *family, const char *label);
